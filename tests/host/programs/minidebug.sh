#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# minidebug.sh FROM TO: strips a program and keeps its function names the way Fedora does, as a
# small ELF file, packed with xz, in the section .gnu_debugdata.
set -euo pipefail
from=$1 to=$2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

nm "$from" --format=posix --defined-only | awk '$2 == "T" || $2 == "t" { print $1 }' | sort >"$tmp/keep"
objcopy --only-keep-debug "$from" "$tmp/debug"
objcopy -S --remove-section .gdb_index --remove-section .comment --keep-symbols="$tmp/keep" \
    "$tmp/debug" "$tmp/mini"
xz --compress --check=crc32 "$tmp/mini"
strip --strip-all -o "$tmp/stripped" "$from"
objcopy --add-section ".gnu_debugdata=$tmp/mini.xz" "$tmp/stripped" "$to"
