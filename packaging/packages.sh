# shellcheck shell=bash
# What holdfast needs from Debian, by purpose, and how it gets there. Sourced by try.sh, build_deb.sh and tests/run.sh.
#
#     install_packages PURPOSE...    purposes: build, demo, test, powercut, deb, fuzz
#
# Says what is missing before it installs it, asks nothing, removes nothing, and does nothing when nothing is missing.
# A service that a package brings along is neither started nor left enabled; what was there before is not touched.
# Works as root and with sudo, on Debian 12 and 13.

say() { printf 'holdfast: %s\n' "$*"; }
die() { printf 'holdfast: %s\n' "$*" >&2; exit 1; }

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

# Compilers that run at once: one a core, and no more than memory carries (a gigabyte and a half each).
build_jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/^MemAvailable:/ { print int($2 / 1572864) }' /proc/meminfo)
  [ "$memory" -ge 1 ] || memory=1
  if [ "$cores" -lt "$memory" ]; then echo "$cores"; else echo "$memory"; fi
}

is_installed() {
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# Boost by its version: Debian 12's unversioned packages are 1.74, which has no JSON, and exclude the 1.81 beside them.
boost_version() {
  local version
  for version in 1.81 1.83 1.88 1.90; do
    if is_installed "libboost$version-dev"; then echo "$version"; return; fi
  done
  for version in 1.81 1.83 1.88 1.90; do
    if apt-cache show "libboost-json$version-dev" 2>/dev/null | grep -q '^Package:'; then echo "$version"; return; fi
  done
}

packages_for() {
  local purpose boost
  for purpose in "$@"; do
    case "$purpose" in
      build)
        boost=$(boost_version)
        echo g++ cmake ninja-build pkg-config \
          "libboost${boost:-1.81}-dev" "libboost-json${boost:-1.81}-dev" \
          libnats-dev libsodium-dev libsqlite3-dev libsystemd-dev libcurl4-openssl-dev libpq-dev libmariadb-dev \
          zlib1g-dev libzstd-dev libfmt-dev libspdlog-dev libtomlplusplus-dev libcli11-dev ;;
      demo) echo nats-server ;;
      test)
        echo libgtest-dev nats-server nginx postgresql mariadb-server-core mariadb-client-core \
          swift-proxy swift-account swift-container swift-object openssl systemd patch ;;
      deb) echo dpkg-dev fakeroot lintian ;;
      fuzz) echo clang llvm ;;
      powercut) echo qemu-system-x86 cpio xz-utils e2fsprogs xfsprogs btrfs-progs ;;
      *) die "packages.sh knows no purpose '$purpose'" ;;
    esac
  done
}

missing_packages() {
  local package
  for package in $(packages_for "$@" | tr ' ' '\n' | sort -u); do
    is_installed "$package" || echo "$package"
  done
}

require_debian() {
  local id='' version=''
  if [ -r /etc/os-release ]; then
    # shellcheck source=/dev/null
    id=$(. /etc/os-release && echo "${ID:-}")
    # shellcheck source=/dev/null
    version=$(. /etc/os-release && echo "${VERSION_ID:-}")
  fi
  case "$id-$version" in
    debian-12 | debian-13) ;;
    *) die "packages are known for Debian 12 and 13 only, and this is '${id:-unknown} ${version}'." \
      "Install what packaging/packages.sh lists by your own means; tests/run.sh takes --no-install." ;;
  esac
  if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
    die "packages are missing and installing them takes root: run this as root, or install sudo."
  fi
}

installed_packages() {
  # shellcheck disable=SC2016  # the dollar is dpkg-query's
  dpkg-query -W -f '${db:Status-Status} ${Package}\n' | sed -n 's/^installed //p' | sort -u
}

enabled_units() {
  find /etc/systemd/system -type l 2>/dev/null | sort
}

# Debian starts what it installs unless a policy file denies it. One that is there already is somebody's decision: it stays.
policy_file=/usr/sbin/policy-rc.d
policy_mark='# holdfast: nothing starts while its packages are installed; safe to remove'

deny_service_starts() {
  if [ -e "$policy_file" ] && ! grep -qxF "$policy_mark" "$policy_file"; then return; fi
  printf '#!/bin/sh\n%s\nexit 101\n' "$policy_mark" | as_root tee "$policy_file" >/dev/null
  as_root chmod 755 "$policy_file"
}

allow_service_starts() {
  if [ -e "$policy_file" ] && grep -qxF "$policy_mark" "$policy_file"; then as_root rm -f "$policy_file"; fi
}

# withdraw_services ENABLED_BEFORE PACKAGE...: of packages that were not here before, whatever unit got enabled or started is taken
# back. systemd's own units are the machine's, not a service.
withdraw_services() {
  local enabled_before=$1 package unit link
  shift
  for package in "$@"; do
    case "$package" in systemd | systemd-* | udev | dbus) continue ;; esac
    for unit in $(dpkg -L "$package" | sed -nE 's,^(/usr)?/lib/systemd/system/([^/]+\.(service|socket|timer|path))$,\2,p'); do
      link=$(comm -13 <(echo "$enabled_before") <(enabled_units) | grep "/$unit\$" || true)
      if [ -n "$link" ]; then
        as_root env DPKG_MAINTSCRIPT_PACKAGE="$package" deb-systemd-helper disable "$unit"
        say "$unit came with $package and was left disabled"
      fi
      if [ -d /run/systemd/system ] && systemctl is-active --quiet "$unit"; then as_root systemctl stop "$unit"; fi
    done
  done
}

apt_get() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 "$@"
}

install_packages() {
  local missing packages_before enabled_before new
  if [ -z "$(missing_packages "$@")" ]; then
    say "every package that is needed is here already"
    return
  fi
  require_debian
  apt_get update
  mapfile -t missing < <(missing_packages "$@")
  say "installing these packages, and what they depend on: ${missing[*]}"
  packages_before=$(installed_packages)
  enabled_before=$(enabled_units)
  trap allow_service_starts EXIT
  deny_service_starts
  apt_get install --no-install-recommends --no-remove -o Dpkg::Options::=--force-confold "${missing[@]}" ||
    die "apt-get could not install them (its reason stands above). Where it speaks of removing libboost packages:" \
      "Debian's versions of libboost*-dev exclude each other; remove the other one, or build in a container."
  mapfile -t new < <(comm -13 <(echo "$packages_before") <(installed_packages))
  withdraw_services "$enabled_before" "${new[@]}"
  allow_service_starts
  trap - EXIT
}
