#!/usr/bin/env bash
# Packs what a build directory holds: packaging/pack_deb.sh BUILD_DIR OUT_DIR. Prints the path of the package.
set -euo pipefail
build=$(realpath "$1")
mkdir -p "$2"
out=$(realpath "$2")
cd "$(dirname "$0")/.."

# Every time inside the package is the release's own.
SOURCE_DATE_EPOCH=$(dpkg-parsechangelog -l packaging/debian/changelog -S Timestamp)
export SOURCE_DATE_EPOCH
umask 022
log=$(cpack --config "$build/CPackConfig.cmake" -G DEB -B "$out" 2>&1) || { echo "$log" >&2; exit 1; }
rm -rf "$out/_CPack_Packages"
ls "$out"/holdfast_*.deb
