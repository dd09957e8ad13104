#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tools/install-deps against a package manager that only pretends: what it would install, and what it reports.
set -euo pipefail
unset KILN_NO_INSTALL # which `make test` passes on
tool=$(cd "$(dirname "$0")/../.." && pwd)/tools/install-deps
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/bin"

# Packages in $tmp/has are installed, those in $tmp/offers can be; apt-get fails when it is asked for one it does not offer.
cat >"$tmp/bin/dpkg-query" <<'END'
#!/bin/bash
while [[ $1 == -* ]]; do shift; done
for name; do grep -qx "$name" "$STATE/has" && echo "$name installed"; done
exit 0
END
cat >"$tmp/bin/apt-cache" <<'END'
#!/bin/bash
shift
for name; do
    if grep -qx "$name" "$STATE/offers"; then printf '%s:\n  Installed: (none)\n  Candidate: 1.0\n' "$name"
    elif grep -qx "$name" "$STATE/virtual"; then printf '%s:\n  Installed: (none)\n  Candidate: (none)\n' "$name"; fi
done
END
cat >"$tmp/bin/apt-get" <<'END'
#!/bin/bash
echo "$*" >>"$STATE/calls"
[[ " $* " == *" update "* ]] && exit 0
all=$*
packages=${all#*--no-install-recommends}
for name in $packages; do grep -qx "$name" "$STATE/offers" && ! grep -qx "$name" "$STATE/broken" || exit 100; done
for name in $packages; do echo "$name" >>"$STATE/has"; done
END
printf '#!/bin/bash\nexec "$@"\n' >"$tmp/bin/sudo"
chmod +x "$tmp/bin/"*
cat >"$tmp/list" <<'END'
compiler        no-such-command # a needed package
shell           bash            # its command is here
run-time-19|run-time-14         # the first that is offered
peer:judge                      # a peer that is offered
peer:oldest|older               # one that this release lacks
END

# try WHAT STATUS: runs the tool and compares its exit status.
try() {
    local status=0
    PATH=$tmp/bin:$PATH STATE=$tmp "$tool" "$tmp/list" >"$tmp/out" 2>&1 || status=$?
    if [[ $status != "$2" ]]; then
        echo "$1: status $status, not $2"
        cat "$tmp/out"
        exit 1
    fi
}
# state OFFERED INSTALLED [BROKEN]
state() {
    : >"$tmp/calls"
    tr ' ' '\n' <<<"$1" >"$tmp/offers"
    tr ' ' '\n' <<<"$2" >"$tmp/has"
    tr ' ' '\n' <<<"${3:-}" >"$tmp/broken"
    echo oldest >"$tmp/virtual"
}
installs() { grep -c -- --no-install-recommends "$tmp/calls" || true; }

state "compiler run-time-14 judge" ""
try "a fresh machine" 0
[[ $(installs) == 1 ]]
grep -q -- "--no-install-recommends compiler run-time-14 judge$" "$tmp/calls"
grep -q "tests that use them skip: oldest" "$tmp/out"

state "compiler run-time-14 judge" "compiler run-time-14 judge"
try "nothing to do, but for a peer that is not offered" 0
[[ ! -s $tmp/calls ]]

state "compiler run-time-19 judge" "" judge
try "a peer that cannot be installed" 0
grep -q -- "--no-install-recommends compiler run-time-19$" "$tmp/calls"
grep -q "tests that use them skip: judge oldest" "$tmp/out"

state "run-time-14 judge" "judge"
try "a needed package that is not offered" 1
grep -q "apt-get install --no-install-recommends compiler run-time-14$" "$tmp/out"

state "compiler run-time-14 judge" ""
KILN_NO_INSTALL=1 try "no installation" 1
[[ ! -s $tmp/calls ]]
grep -q "apt-get install --no-install-recommends compiler run-time-14$" "$tmp/out"
echo "install-deps: all well"
