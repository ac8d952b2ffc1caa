#!/usr/bin/env bash
# Every strategy of identity under every fault, between real nats-servers, with the built program: one line a cell.
#
#     tests/identity/matrix.sh [--no-install] [--build DIR] [NAME]...
#
# NAME: of a strategy or a fault; without one: all. Takes a minute and a half. Exit status 0: every cell is ok; 1: one is not,
# and why is on the standard error, with the log of the program.
#
# What a line says:
#     messages    told by the producer, into the edge server's stream
#     events      that they tell of: different ids, as the producer gives them
#     records     taken into custody, those set aside included
#     hub         messages in the hub's stream
#     resent      sent to the hub once more, under a key that it had: only where the program was killed
#     accepted, duplicates, conflicts, refused    the program's verdicts, of all its lives in the cell
#     ok | FAIL   and, where events are not hub messages and the strategy does not promise it, why
#
# The hub's stream has a duplicate window of ten minutes, as it should in the field, so hub messages are what a consumer
# there reads. It can hide nothing that we send twice: a second listener hears every publish before JetStream has judged it,
# and its count must be that of the stream but for `resent`. The edge stream hides nothing either: the producer's ids are
# in a header (message-id) that the server does not know.
set -euo pipefail
cd "$(dirname "$0")/../.."
. packaging/packages.sh

install=yes build=build/dev names=()
while [ $# -gt 0 ]; do
  case "$1" in
    --no-install) install=no ;;
    --build)
      [ $# -ge 2 ] || die "--build needs a directory"
      build=$2
      shift ;;
    -h | --help) sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) die "tests/identity/matrix.sh knows no '$1' (see --help)" ;;
    *) names+=("$1") ;;
  esac
  shift
done
# The cells are the only thing on the standard output.
{
  [ "$install" = no ] || install_packages build test
  if [ ! -f "$build/CMakeCache.txt" ]; then cmake --preset "$(basename "$build")" >/dev/null; fi
  cmake --build "$build" -j "$(build_jobs)" --target identity_matrix
} >&2
export PATH="$PATH:/usr/sbin"
exec "$build/tests/identity/identity_matrix" "${names[@]}"
