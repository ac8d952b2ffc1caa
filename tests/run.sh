#!/usr/bin/env bash
# All tests on a fresh Debian 12 or 13 machine, in one command: installs what they need (and says what), builds, runs them.
#
#     tests/run.sh [--no-install] [--preset NAME]...
#
# Without --preset: everything under `dev`, ten power cuts of a real kernel (tests/powercut), then the tests of the rooms,
# crashes included, under `asan-ubsan`. With it: everything under each preset named. Exit status 0 means that every test
# passed; what was skipped is counted and listed with its reason.
set -euo pipefail
cd "$(dirname "$0")/.."
. packaging/packages.sh

install=yes
presets=()
while [ $# -gt 0 ]; do
  case "$1" in
    --no-install) install=no ;;
    --preset)
      [ $# -ge 2 ] || die "--preset needs a name (see CMakePresets.json)"
      presets+=("$2")
      shift ;;
    -h | --help) sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) die "tests/run.sh knows no '$1' (--no-install, --preset NAME)" ;;
  esac
  shift
done

[ "$install" = no ] || install_packages build test powercut deb
# Debian keeps nats-server in /usr/sbin, where not everybody looks.
export PATH="$PATH:/usr/sbin"
if command -v ccache >/dev/null; then
  # What was compiled in another clone of this tree is good here too.
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
fi

# Every test that was skipped, with its reason, from ctest's log of one preset. Without a reason are those that come after
# a mutant was found.
report_skips() {
  awk '
    / Skipped$/ || /: Skipped$/ { reading = 1; reason = ""; next }
    /^\[=+\]/ { reading = 0 }  # of a program that a test ran
    reading && /^\[  SKIPPED \] / && reason == "" { reading = 0; next }
    reading && /^\[  SKIPPED \] / { skipped[++count] = $4 ": " reason; reading = 0; next }
    reading && NF { reason = reason (reason == "" ? "" : " ") $0 }
    /^SKIP: / { skipped[++count] = substr($0, 7) }
    END {
      for (i = 1; i <= count; i++) print "  skipped " skipped[i]
      print "holdfast: skipped in " preset ": " count + 0
    }' preset="$1" "build/$1/Testing/Temporary/LastTest.log"
}

# What failed under one preset, once more at the end, where it is found: each test with the last lines that it printed.
report_failures() {
  local temporary=build/$1/Testing/Temporary
  [ -s "$temporary/LastTestsFailed.log" ] || return 0
  say "failed in $1:"
  awk -F: 'NR == FNR { failed[$2] = 1; next }
    / Testing: / { name = $0; sub(/.* Testing: /, "", name); reading = name in failed; count = 0; next }
    reading && /^Test time = / {
      print "  " name
      for (i = count > 40 ? count - 39 : 1; i <= count; i++) print "    " line[i]
      reading = 0
    }
    reading { line[++count] = $0 }' "$temporary/LastTestsFailed.log" "$temporary/LastTest.log"
}

# run_preset NAME TARGET CTEST_ARGUMENTS...
run_preset() {
  local preset=$1 target=$2 began=$SECONDS
  shift 2
  ran+=("$preset")
  rm -f "build/$preset/Testing/Temporary/LastTestsFailed.log"
  say "$preset: building"
  # What does not build is not tested: without "set -e", which does not reach into a function of a list.
  cmake --preset "$preset" >/dev/null || return
  cmake --build "build/$preset" -j "$(build_jobs)" --target "$target" || return
  say "$preset: testing, after $((SECONDS - began)) s of building"
  local status=0
  ctest --test-dir "build/$preset" --output-on-failure --no-tests=error -j "$(nproc)" "$@" || status=$?
  report_skips "$preset"
  say "$preset: $((SECONDS - began)) s"
  return "$status"
}

status=0
ran=()
if [ ${#presets[@]} -gt 0 ]; then
  for preset in "${presets[@]}"; do run_preset "$preset" all || status=$?; done
else
  run_preset dev all || status=$?
  cuts=0
  HOLDFAST_MAY_SKIP=yes tests/powercut/run.sh --no-install --build build/dev --cuts 10 || cuts=$?
  run_preset asan-ubsan room_tests --label-exclude '^(integration|identity|house|packaging|mutants)$' || status=$?
fi
[ "${cuts:-0}" -eq 0 ] || { status=$cuts; say "failed: the power cuts (above)"; }
for preset in "${ran[@]}"; do report_failures "$preset"; done
exit "$status"
