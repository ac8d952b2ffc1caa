#!/usr/bin/env bash
# The Debian package of a build directory: equal twice, clean by lintian, complete, and harmless to records and keys when it goes.
#     check_deb.sh BUILD_DIR       77 = skipped
set -euo pipefail
build=$1
tree=$(realpath "$(dirname "$0")/../..")
# Debian keeps what only root needs in sbin.
export PATH="$PATH:/usr/sbin:/sbin"

fail() { echo "FAIL: $*"; exit 1; }
skip() { echo "SKIP: deb: $*"; exit 77; }
for tool in cpack dpkg-deb dpkg-shlibdeps dpkg-parsechangelog; do
  command -v "$tool" >/dev/null || skip "$tool is not installed (packages cmake, dpkg-dev)"
done

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

equal_twice() {
  deb=$("$tree/packaging/pack_deb.sh" "$build" "$scratch/first") || fail "the package was not built"
  local again
  again=$("$tree/packaging/pack_deb.sh" "$build" "$scratch/second") || fail "the package was not built a second time"
  cmp "$deb" "$again" || fail "two packages of one build differ"
  echo "built twice, equal: $(basename "$deb"), $(stat -c %s "$deb") bytes"
}

clean_by_lintian() {
  if ! command -v lintian >/dev/null; then echo "SKIP: deb: lintian is not installed"; return; fi
  local words
  words=$(lintian --allow-root --fail-on error,warning "$deb" 2>&1) || fail "lintian: $words"
  echo "lintian has neither errors nor warnings"
}

complete() {
  local wanted
  dpkg-deb -c "$deb" >"$scratch/contents"
  while read -r wanted; do
    grep -q "^$wanted\$" "$scratch/contents" || fail "the package has no line '$wanted'"
  done <<'LINES'
-rwxr-xr-x root/root .* ./usr/bin/holdfast
-rw-r--r-- root/root .* ./usr/lib/systemd/system/holdfast.service
-rw-r--r-- root/root .* ./usr/lib/sysusers.d/holdfast.conf
-rw-r--r-- root/root .* ./etc/holdfast/holdfast.toml
-rw-r--r-- root/root .* ./usr/share/man/man1/holdfast.1.gz
-rw-r--r-- root/root .* ./usr/share/man/man5/holdfast.toml.5.gz
-rw-r--r-- root/root .* ./usr/share/doc/holdfast/copyright
-rw-r--r-- root/root .* ./usr/share/doc/holdfast/changelog.gz
LINES
  if grep -vE ' \./(usr|etc)/' "$scratch/contents" | grep .; then fail "the package has something outside /usr and /etc"; fi
  [ "$(dpkg-deb --ctrl-tarfile "$deb" | tar -xO ./conffiles)" = /etc/holdfast/holdfast.toml ] || fail "the configuration is no conffile"
  local depends
  depends=$(dpkg-deb -f "$deb" Depends)
  for wanted in libmariadb3 libnats libpq5 libsodium23 libsqlite3-0 libsystemd0 systemd-sysusers; do
    [[ "$depends" == *"$wanted"* ]] || fail "Depends does not name $wanted: $depends"
  done
  [ "$(dpkg-deb -f "$deb" Version)" = "$(dpkg-parsechangelog -l "$tree/packaging/debian/changelog" -S Version)" ] ||
    fail "packaging/debian/changelog and CMakeLists.txt name different versions"
  echo "complete; depends on $depends"
}

# The scripts respect DPKG_ROOT, so the whole life of the package can pass in a directory.
as_dpkg() {
  "${root[@]}" dpkg --root="$scratch/root" --log=/dev/null --force-not-root --force-script-chrootless --force-depends "$@" \
    >>"$scratch/dpkg.log" 2>&1 || fail "dpkg $*: $(cat "$scratch/dpkg.log")"
}

lives_and_goes() {
  if [ "$(id -u)" -eq 0 ]; then root=(env); else root=(fakeroot); fi
  command -v "${root[0]}" >/dev/null || { echo "SKIP: deb: installing into a scratch root takes root, or fakeroot"; return; }
  command -v systemd-sysusers >/dev/null || { echo "SKIP: deb: systemd-sysusers is not installed"; return; }
  local box=$scratch/root
  mkdir -p "$box/var/lib/dpkg" "$box/etc"
  : >"$box/var/lib/dpkg/status"
  echo 'root:x:0:0::/root:/bin/sh' >"$box/etc/passwd"
  echo 'root:x:0:' >"$box/etc/group"

  as_dpkg -i "$deb"
  grep -q '^holdfast:' "$box/etc/passwd" || fail "the package made no user"
  grep -q 'neither enabled nor started' "$scratch/dpkg.log" || fail "the first installation does not say what is left to do"
  [ ! -e "$box/etc/systemd/system/multi-user.target.wants/holdfast.service" ] || fail "the service was enabled"

  mkdir -p "$box/var/lib/holdfast/spool/records" "$box/etc/systemd/system/multi-user.target.wants"
  echo record >"$box/var/lib/holdfast/spool/records/kept"
  echo key >"$box/etc/holdfast/spool.key"
  echo '# an operator was here' >>"$box/etc/holdfast/holdfast.toml"
  ln -s /usr/lib/systemd/system/holdfast.service "$box/etc/systemd/system/multi-user.target.wants/holdfast.service"

  : >"$scratch/dpkg.log"
  as_dpkg -i "$deb"
  grep -q 'neither enabled' "$scratch/dpkg.log" && fail "an upgrade speaks as if it were the first installation"
  grep -q 'an operator was here' "$box/etc/holdfast/holdfast.toml" || fail "an upgrade replaced the configuration"

  as_dpkg --remove holdfast
  [ ! -e "$box/usr/bin/holdfast" ] || fail "removal left the program"
  [ -e "$box/etc/holdfast/holdfast.toml" ] || fail "removal took the configuration"
  left_alone removal
  as_dpkg --purge holdfast
  [ ! -e "$box/etc/holdfast/holdfast.toml" ] || fail "purge left the configuration"
  [ ! -L "$box/etc/systemd/system/multi-user.target.wants/holdfast.service" ] || fail "purge left the service enabled"
  left_alone purge
  grep -q 'var/lib/holdfast was left' "$scratch/dpkg.log" || fail "nobody was told that the spool was left"
  echo "installed, upgraded, removed and purged in a scratch root: spool and key were left alone"
}

left_alone() {
  [ "$(cat "$scratch/root/var/lib/holdfast/spool/records/kept")" = record ] || fail "$1 touched the spool"
  [ "$(cat "$scratch/root/etc/holdfast/spool.key")" = key ] || fail "$1 touched the key"
}

equal_twice
clean_by_lintian
complete
lives_and_goes
