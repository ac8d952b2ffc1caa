#!/usr/bin/env bash
# Cuts the power of a real kernel under the real spool, again and again, and looks at what each start finds.
#
#     tests/powercut/run.sh [--no-install] [--cuts N] [--states N] [--seed S] [--fs ext4|xfs|btrfs] [--build DIR] [--mutant NAME]
#
# Boots Debian's cloud kernel under qemu (software emulation) with a program of ours as its first process (guest_main.cc).
# --cuts: the guest is killed, what it flushed is there. --states: the writes of a life are logged, and the disk is made as
# a loss of power could have left it: what was written since the last flush lost, kept or torn, in any order. Without
# either: 10 cuts. Exit status 0: nothing that was acknowledged was missing, torn or taken twice; 1: something was.
#
# --mutant: the spool with one rule taken out (tests/powercut/mutants); exit status 0 means that this was found.
# Kernel and modules are unpacked from their package into the build directory, nothing of them is installed.
set -euo pipefail
cd "$(dirname "$0")/../.."
. packaging/packages.sh

# What keeps the rig from running here: a failure, unless HOLDFAST_MAY_SKIP says that it may be passed over.
cannot() {
  [ -n "${HOLDFAST_MAY_SKIP:-}" ] || die "$*"
  echo "SKIP: powercut: $*"
  exit 0
}

install=yes cuts='' states='' seed=$((RANDOM * 32768 + RANDOM)) fs=ext4 build=build/release mutant=''
while [ $# -gt 0 ]; do
  case "$1" in
    --no-install) install=no; shift; continue ;;
    -h | --help) sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; exit 0 ;;
  esac
  [ $# -ge 2 ] || die "$1 needs a value"
  case "$1" in
    --cuts) cuts=$2 ;;
    --states) states=$2 ;;
    --seed) seed=$2 ;;
    --fs) fs=$2 ;;
    --build) build=$2 ;;
    --mutant) mutant=$2 ;;
    *) die "tests/powercut/run.sh knows no '$1' (see --help)" ;;
  esac
  shift 2
done
case "$cuts$states$seed" in *[!0-9]*) die "--cuts, --states and --seed are numbers" ;; esac
if [ -z "$cuts$states" ]; then cuts=10; fi
case "$fs" in
  ext4) modules='' ;;
  xfs) modules='libcrc32c xfs' ;;
  btrfs) modules='libcrc32c xor raid6_pq zstd_compress blake2b_generic btrfs' ;;
  *) die "--fs is ext4, xfs or btrfs" ;;
esac
[ "$install" = no ] || install_packages build test powercut
export PATH="$PATH:/usr/sbin:/sbin"
for tool in qemu-system-x86_64 cpio "mkfs.$fs"; do
  command -v "$tool" >/dev/null || cannot "there is no $tool"
done
[ "$(uname -m)" = x86_64 ] || cannot "the rig knows x86_64 guests only"

if [ ! -f "$build/CMakeCache.txt" ]; then cmake --preset "$(basename "$build")" >/dev/null; fi
guest=powercut_guest${mutant:+_$mutant}
cmake --build "$build" -j "$(build_jobs)" --target "$guest" powercut_rig >"$build/powercut.build.log" 2>&1 ||
  { tail -n 30 "$build/powercut.build.log" >&2; die "the guest does not build"; }
work=$PWD/$build/powercut
mkdir -p "$work"

# The kernel: from its package, once for a build directory.
kernel_dir=$work/kernel
if [ ! -e "$kernel_dir/done" ]; then
  say "fetching a kernel to boot, into $build/powercut (it is not installed)"
  rm -rf "$kernel_dir"
  mkdir -p "$kernel_dir/packages"
  package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: \(linux-image-.*\)/\1/p' | head -n 1)
  [ -n "$package" ] || cannot "linux-image-cloud-amd64 is not known here (apt-get update?)"
  (cd "$kernel_dir/packages" && apt-get download "$package" >/dev/null 2>&1) || cannot "$package cannot be fetched"
  dpkg -x "$kernel_dir"/packages/*.deb "$kernel_dir"
  rm -rf "$kernel_dir/packages"
  touch "$kernel_dir/done"
fi
kernel=$(find "$kernel_dir/boot" -name 'vmlinuz-*' | head -n 1)
# Debian 13 has merged /usr.
module_dir=$(find "$kernel_dir" -mindepth 3 -maxdepth 4 -path '*lib/modules/*' -type d | head -n 1)

# The guest's own file system, in memory: the program, its libraries, the modules in the order they are loaded.
root=$work/root.$guest.$fs
rm -rf "$root"
mkdir -p "$root"/{dev,proc,sys,disk,modules}
number=10
for module in virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk $modules; do
  file=$(find "$module_dir" -name "$module.ko*" | head -n 1)
  [ -n "$file" ] || continue
  case "$file" in
    *.xz) xz -dc "$file" >"$root/modules/$number-$module.ko" ;;
    *) cp "$file" "$root/modules/$number-$module.ko" ;;
  esac
  number=$((number + 1))
done
program=$build/tests/powercut/$guest
cp "$program" "$root/init"
ldd "$program" | sed -n 's/.*=> \(\/[^ ]*\).*/\1/p; s/^[[:space:]]*\(\/[^ ]*ld-linux[^ ]*\).*/\1/p' | while read -r library; do
  mkdir -p "$root$(dirname "$library")"
  cp -L "$library" "$root$library"
done
initrd=$work/$guest.$fs.initrd
(cd "$root" && find . | cpio -o -H newc 2>/dev/null) | gzip -1 >"$initrd"
rm -rf "$root"

# The disk: a file system, and behind it a megabyte that is not the box's (outside.h).
run=$(mktemp -d "$work/run.XXXXXX")
trap 'rm -rf "$run"' EXIT
size=192
if [ "$fs" = xfs ]; then size=384; fi
disk=$run/disk.img
truncate -s "${size}M" "$disk"
case "$fs" in
  ext4) mkfs.ext4 -q "$disk" ;;
  xfs) mkfs.xfs -q "$disk" ;;
  btrfs) mkfs.btrfs -q "$disk" ;;
esac
truncate -s "$((size + 1))M" "$disk"

say "power cuts on $fs: ${cuts:-0} cuts, ${states:-0} states, seed $seed${mutant:+, with the rule '$mutant' taken out}"
status=0
"$build/tests/powercut/powercut_rig" --kernel "$kernel" --initrd "$initrd" --disk "$disk" --fs "$fs" \
  --cuts "${cuts:-0}" --states "${states:-0}" --seed "$seed" || status=$?
if [ "$status" -ne 0 ] && [ -z "$mutant" ]; then
  trap - EXIT
  say "what it found is kept in $run"
fi
if [ -n "$mutant" ]; then
  [ "$status" -eq 1 ] || die "the rule '$mutant' was taken out, and nothing was found"
  say "found, as it must be"
  status=0
fi
exit "$status"
