#!/usr/bin/env bash
# A fresh Debian 12 or 13 machine to holdfast's main job done before your eyes, in one command: installs what is needed (and says
# what), builds a release into build/try, runs `holdfast demo`. Arguments go to the demo. Run it again as often as you like.
set -euo pipefail
cd "$(dirname "$0")/.."
. packaging/packages.sh

install_packages build demo
# Debian keeps nats-server in /usr/sbin, where not everybody looks.
export PATH="$PATH:/usr/sbin"

say "building into build/try (a few minutes the first time)"
cmake --preset release -B build/try -DHOLDFAST_TESTS=OFF >/dev/null
cmake --build build/try -j "$(build_jobs)" --target holdfast

say "build/try/holdfast demo $*"
exec build/try/holdfast demo "$@"
