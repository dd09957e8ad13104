#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The portable tarball on minimal roots of Debian 11, 12 and 13, unpacked anywhere: the program starts, the server answers
# with its web UI, a known program is profiled from outside and from inside, and a collector passes its profiles on.
# Needs root, debootstrap and a network: tools/torture runs it. KILN_ROOTS names a folder with bare roots (bullseye,
# bookworm, trixie) to copy instead, KILN_TARBALL a tarball to test instead of making one.
set -euo pipefail
cd "$(dirname "$0")/../.."
if ((EUID != 0)) || ! command -v debootstrap >/dev/null; then
    echo "skipped: needs root and debootstrap"
    exit 77
fi
tmp=$(mktemp -d)
trap 'rm -rf --one-file-system "$tmp"' EXIT

tarball=${KILN_TARBALL:-}
if [[ -z $tarball ]]; then
    tools/tarball "$tmp/dist" >/dev/null
    tarball=$(find "$tmp/dist" -name 'kiln-*-linux-x86_64.tar.gz')
fi
cat >"$tmp/known.c" <<'END'
#include <stdlib.h>
#include <string.h>
#include <time.h>
static volatile unsigned long sink;
__attribute__((noinline)) static void burn_most(void) { for (int i = 0; i < 30000000; i++) sink += i; }
__attribute__((noinline)) static void burn_some(void) { for (int i = 0; i < 10000000; i++) sink += i; }
__attribute__((noinline)) static char *take_memory(void) { return memset(malloc(100000), 1, 100000); }
int main(int argc, char **argv)
{
    time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 4);
    while (time(NULL) < end) {
        burn_most();
        burn_some();
        free(take_memory());
    }
    return 0;
}
END
sysroot=${KILN_SYSROOT_DIR:-build-portable/sysroot}/root
[[ -d $sysroot ]] || { tools/sysroot "$tmp/sysroot" && sysroot=$tmp/sysroot/root; }
gcc -O1 -g --sysroot="$sysroot" -B"$sysroot/usr/lib/x86_64-linux-gnu/" -o "$tmp/known" "$tmp/known.c"

# What runs in each root; it ends at the first thing that is wrong.
cat >"$tmp/inside.sh" <<'END'
set -euo pipefail
cd /tmp
trap 'tail -n 5 *.log' ERR
PATH=$(echo /srv/*/bin):$PATH
export KILN_DATA_DIR=/tmp/data KILN_SERVER=http://127.0.0.1:4040
ask() { # ask PATH: the answer of the server
    exec 3<>/dev/tcp/127.0.0.1/4040
    printf 'GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n' "$1" >&3
    tr -d '\0' <&3
    exec 3>&-
}
listens() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
has() { grep -q "$2" "$1" || { echo "not in $1: $2" && cat "$1" && exit 1; }; }
kiln version >version
has version '^kiln [0-9.]*$'
kiln server >server.log 2>&1 &
server=$!
until listens 4040 && ask /ready | grep '^HTTP/1.1 200' >/dev/null; do kill -0 $server; done
ask / >page
has page '<!doctype html>'
kiln record -o cpu.pb.gz -- ./known
kiln top cpu.pb.gz >cpu
has cpu 'burn_most.*known\.c'
has cpu 'burn_some.*known\.c'
kiln record --alloc -o alloc.pb.gz -- ./known
kiln top -t alloc_space alloc.pb.gz >alloc
has alloc take_memory
cat >collector.yaml <<X
receivers: {otlp: {protocols: {http: {endpoint: 127.0.0.1:4398}}}}
exporters: {otlp_http: {endpoint: "http://127.0.0.1:4040"}}
service: {telemetry: {metrics: {level: none}}, pipelines: {profiles: {receivers: [otlp], exporters: [otlp_http]}}}
X
kiln collector --config collector.yaml >collector.log 2>&1 &
collector=$!
until listens 4398; do kill -0 $collector; done
OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4398 kiln run --service shop -- ./known
kill $collector
wait $collector
kiln query 'alloc_space{service_name="shop"}' >query 2>&1 || true
has query take_memory
kill $server
wait $server
END

for suite in bullseye bookworm trixie; do
    root=$tmp/$suite
    if [[ -n ${KILN_ROOTS:-} ]]; then
        cp -a --reflink=auto "$KILN_ROOTS/$suite" "$root"
    else
        debootstrap --variant=minbase "$suite" "$root" >"$tmp/log" || { tail -5 "$tmp/log" && exit 1; }
    fi
    tar -C "$root/srv" -xzf "$tarball"
    install -m 755 "$tmp/known" "$tmp/inside.sh" "$root/root/"
    # The mounts and the loopback end with the namespaces.
    # shellcheck disable=SC2016 # the inner shell expands $ROOT
    ROOT=$root unshare --mount --net --propagation private bash -euc '
        ip link set lo up
        for folder in proc sys dev; do mount --rbind "/$folder" "$ROOT/$folder"; done
        mount -t tmpfs tmpfs "$ROOT/tmp"
        cp "$ROOT/root/known" "$ROOT/root/inside.sh" "$ROOT/tmp/"
        exec chroot "$ROOT" bash /tmp/inside.sh' >"$tmp/log" 2>&1 || { echo "$suite:" && tail -30 "$tmp/log" && exit 1; }
    echo "well on $suite"
    rm -rf --one-file-system "$root"
done
