#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# usage: run.sh FILE.ts [ARGUMENT]...
# Runs a test of the page, or a program like it, where there is what it needs, and skips it where not.
set -euo pipefail
cd "$(dirname "$0")/../../.."

skip() {
    echo "skipped: $1"
    exit 77
}

KILN_CHROMIUM=$(command -v chromium-headless-shell chromium chromium-browser google-chrome | head -n 1) || true
[[ -n $KILN_CHROMIUM ]] || skip "no Chromium here"
export KILN_CHROMIUM
if [[ $(basename "$1") == host* ]]; then
    PYTHONPATH=tests/support python3 -c 'import host_kit; host_kit.need_host("chain")' || exit 77
fi
exec node web/run.mjs "$@"
