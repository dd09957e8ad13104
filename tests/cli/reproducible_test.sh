#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Nothing that is built has the folder of the build or the time in it: builds elsewhere and later give the same bytes
# (torture/reproducible compares two).
set -euo pipefail
build=$(realpath "${KILN_BUILD_DIR:-build}")
source=$(realpath "${KILN_SOURCE_DIR:-.}")
grep -q '^KILN_MAP_PATHS:BOOL=ON$' "$build/CMakeCache.txt" || { echo "skipped: this build keeps paths" && exit 77; }
[[ $source != /usr/src/kiln ]] || { echo "skipped: the folder of the build is the one that stands in every build" && exit 77; }

for file in kiln libkiln.so new/libkiln.so libkiln.a libkiln-context.a bpf/sample.bpf.o web/page_files.c; do
    for folder in "$source/" "$build/"; do
        if LC_ALL=C grep -qaF "$folder" "$build/$file"; then
            echo "$file has $folder in it:"
            strings -a "$build/$file" | grep -F "$folder" | head -3
            exit 1
        fi
    done
done
LC_ALL=C grep -qaF /usr/src/kiln/ "$build/kiln"
# Archives have no times and owners.
for file in libkiln.a libkiln-context.a; do
    [[ -z $(ar tv "$build/$file" | grep -v ' 0/0 .* 1970 ') ]] || { ar tv "$build/$file" && exit 1; }
done
if grep -rnwE '__(DATE|TIME|TIMESTAMP)__' "$source/src" "$source/web/pack.c"; then
    echo "the time of the build is in a program"
    exit 1
fi
