#!/usr/bin/env bash
# The unit parses, says what the appliance relies on, and its sandbox is as tight as systemd can measure.
#     check_unit.sh PROGRAM        77 = skipped
set -euo pipefail
program=$1
unit=$(dirname "$0")/../../systemd/holdfast.service

fail() { echo "FAIL: $*"; exit 1; }
skip() { echo "SKIP: unit: $*"; exit 77; }

# What other parts count on, word for word: changing one here means changing the other there.
for line in Type=notify Restart=always RestartPreventExitStatus=2 StartLimitIntervalSec=0 MemorySwapMax=0 LimitCORE=0 \
  StateDirectory=holdfast StateDirectoryMode=0700 RuntimeDirectory=holdfast RuntimeDirectoryMode=0750 TimeoutStopSec=30 \
  User=holdfast Group=holdfast LoadCredential=spool.key:/etc/holdfast/spool.key; do
  grep -qx "$line" "$unit" || fail "holdfast.service lost the line $line"
done
grep -q '^WatchdogSec=' "$unit" || fail "holdfast.service has no watchdog"

command -v systemd-analyze >/dev/null || skip "systemd-analyze is not installed (package systemd), so the sandbox was not measured"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# Checked with a program that exists and without the manual, which a build does not install.
sed -e "s,^ExecStart=/usr/bin/holdfast,ExecStart=$program," -e '/^Documentation=/d' "$unit" >"$scratch/holdfast.service"
complaints=$(systemd-analyze verify "$scratch/holdfast.service" 2>&1) || fail "systemd-analyze verify: $complaints"
[ -z "$complaints" ] || fail "systemd-analyze verify: $complaints"

exposure=$(systemd-analyze security --offline=true "$scratch/holdfast.service" | sed -n 's/.*exposure level for [^:]*: \([0-9.]*\).*/\1/p')
[ -n "$exposure" ] || fail "systemd-analyze security gave no exposure level"
awk -v exposure="$exposure" 'BEGIN { exit !(exposure <= 2.0) }' || fail "exposure $exposure is above 2.0"
echo "exposure $exposure (at most 2.0)"
