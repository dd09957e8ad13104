#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The sources keep the layers, and tools/check-layers sees it when they do not.
set -euo pipefail
cd "$(dirname "$0")/../.."

tools/check-layers

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/src/base" "$tmp/src/core" "$tmp/src/attic"
cat >"$tmp/ARCHITECTURE.md" <<'TABLE'
## Who may include whom
| Room | May include |
|---|---|
| `base` | |
| `core` | `base` |
TABLE
echo '#include "base/str.h"' >"$tmp/src/core/good.c"
tools/check-layers "$tmp"

# plants FILE TEXT MESSAGE: with TEXT in FILE the check must fail and say MESSAGE.
plants() {
    echo "$2" >"$tmp/src/$1"
    if tools/check-layers "$tmp" >"$tmp/out"; then
        echo "not noticed: $2 in $1" && exit 1
    fi
    grep -qF "$3" "$tmp/out" || { cat "$tmp/out" && exit 1; }
    rm "$tmp/src/$1"
}
plants base/up.c '#include "core/batch.h"' 'src/base/up.c:1: base may not include core'
plants core/bare.c '#include "batch.h"' '"batch.h" is not written from src/'
plants attic/x.c '#include "base/str.h"' 'room attic has no row'
