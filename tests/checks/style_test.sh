#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The sources keep the house style, and tools/check-style sees it when they do not.
set -euo pipefail
cd "$(dirname "$0")/../.."

tools/check-style

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
git -C "$tmp" init -q
mkdir -p "$tmp/src/core"
spdx='/* SPDX-License-Identifier: Apache-2.0 */'

# plants FILE TEXT MESSAGE: with TEXT in FILE the check must fail and say MESSAGE.
plants() {
    printf '%b\n' "$2" >"$tmp/$1"
    if tools/check-style "$tmp" >"$tmp/src/out"; then
        echo "not noticed: $2 in $1" && exit 1
    fi
    grep -qF "$3" "$tmp/src/out" || { cat "$tmp/src/out" && exit 1; }
    rm "$tmp/$1" "$tmp/src/out"
}
printf '%s\n' "$spdx" '/* malloc(1) in a comment; "strcpy(" too */' >"$tmp/src/core/good.c"
tools/check-style "$tmp"

plants src/core/x.c 'int x;' 'SPDX'
plants src/core/x.c "$spdx\nint x = atoi(y);" 'src/core/x.c:2: atoi() is banned'
plants src/core/x.c "$spdx\nvoid *p = malloc(1);" 'malloc() is banned'
plants src/core/x.c "$spdx\nint x = atomic_load(&pair[i]).first;" 'load it into a variable'
plants src/core/x.c "$spdx\nint x; // why" 'comments are'
plants src/core/x.c "$spdx\nint x; " 'white space'
plants src/core/x.h "$spdx\nint x;" 'Threads:'
cp .gitignore "$tmp/src/ignored" && git -C "$tmp" config core.excludesFile "$tmp/src/ignored"
touch "$tmp/gzip.svg" "$tmp/app.pb.gz" # what an example of the README leaves
tools/check-style "$tmp"
plants debris.txt 'x' 'the root folder'
plants src/core/x.c "$spdx\nint f(void)\n{\n$(printf '    x++;\\n%.0s' {1..81})}" 'function of 81 lines'
