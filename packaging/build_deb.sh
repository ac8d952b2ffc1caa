#!/usr/bin/env bash
# Builds the Debian package of this tree for this machine: packaging/build_deb.sh [--no-install]
# Equal trees, built in the same place with the same compiler, give equal bytes. Prints the path of the package.
set -euo pipefail
cd "$(dirname "$0")/.."
. packaging/packages.sh

case "${1:-}" in
  '') install_packages build deb >&2 ;;
  --no-install) ;;
  *) die "build_deb.sh knows no '$1' (--no-install)" ;;
esac
if command -v ccache >/dev/null; then export CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi

cmake --preset release -B build/deb -DHOLDFAST_TESTS=OFF >/dev/null
cmake --build build/deb -j "$(build_jobs)" >&2
packaging/pack_deb.sh build/deb build/deb/package
