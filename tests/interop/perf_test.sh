#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What perf records here and now, and prints, is read as CPU time of that program.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"

# Few pages: what may be locked is shared with all others that profile the machine at the moment.
record() {
    # shellcheck disable=SC2016 # the loop runs in the program that is recorded
    perf record -q -g -m 8 -e cpu-clock -F 199 -o data \
        sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done' >/dev/null && perf script -i data >burn.perf
}

# Some versions of perf fall over now and then on what they have recorded themselves.
tries=0
until (record) 2>why; do
    if ((++tries == 10)); then
        echo "skipped: perf is not installed, or cannot record here: $(grep -m1 . why)"
        exit 77
    fi
done
"$KILN" info burn.perf | tee info
grep -q 'format *perf' info
grep -q 'process_cpu:cpu:nanoseconds' info

# Nothing is lost: the total is the sum of the periods that perf counts itself.
periods=$(perf script -i data -F period 2>/dev/null | awk '/^ *[0-9]+/ { sum += $1 } END { print sum }')
total=$("$KILN" top --json burn.perf | sed -n 's/^  "total": \([0-9]*\),$/\1/p')
echo "perf $periods, kiln $total"
[[ $periods == "$total" ]]
