#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: own_tmp.sh COMMAND...
# Runs a test with a temporary folder of its own and removes it afterwards, and with it the perf-maps that
# runtimes write into /tmp, wherever TMPDIR is: those of processes that began meanwhile and have ended.
TMPDIR=$(mktemp -d /tmp/kt.XXXXXX) || exit 1
export TMPDIR
chmod 1777 "$TMPDIR" # tests have users of their own
begin=$(date +%s)
"$@"
code=$?
rm -rf --one-file-system "$TMPDIR"
find /tmp -maxdepth 1 -name 'perf-*.map' -user "$(id -u)" -newermt "@$begin" | while read -r map; do
    pid=${map##*-}
    [ -e "/proc/${pid%.map}" ] || rm -f "$map"
done
exit $code
