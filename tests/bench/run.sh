#!/usr/bin/env bash
# How fast holdfast is, side by side with the limit, from the same run: one JSON object a line,
# {"name":…, "ours":…, "limit":…, "ratio":…, "unit":…}.
#
#     tests/bench/run.sh [--quick] [--no-install] [--dir DIRECTORY] [NAME]...
#
# NAME: commits, servers, http, s3, databases, identities, backlog, device. Without one all of them, but with --quick only
# commits, servers, backlog and device.
#
# Builds the release preset. Measures on the file system of DIRECTORY (/var/tmp): let it be the one that the spool will lie
# on. --quick: smaller counts, within 50 s. What each name means, and what it must reach: ARCHITECTURE.md.
set -euo pipefail
cd "$(dirname "$0")/../.."
. packaging/packages.sh

install=yes directory=/var/tmp quick=() names=()
while [ $# -gt 0 ]; do
  case "$1" in
    --quick) quick=(--quick) ;;
    --no-install) install=no ;;
    --dir)
      [ $# -ge 2 ] || die "--dir needs a directory"
      directory=$2
      shift ;;
    commits | servers | http | s3 | databases | identities | backlog | device) names+=("$1") ;;
    -h | --help) sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) die "tests/bench/run.sh knows no '$1' (see --help)" ;;
  esac
  shift
done
# The figures are the only thing on the standard output.
{
  [ "$install" = no ] || install_packages build test
  cmake --preset release >/dev/null
  cmake --build build/release -j "$(build_jobs)" --target holdfast_bench
} >&2
export PATH="$PATH:/usr/sbin"
exec build/release/tests/bench/holdfast_bench "${quick[@]}" "$directory" "${names[@]}"
