#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The tools of a release, as far as they take no second build: the source tarball, checksums, the check of what a
# portable program needs, and that tools/sysroot has every library that Kiln is built with.
set -euo pipefail
cd "$(dirname "$0")/../.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null

# Each library of the build has an archive in the sysroot; libcurl is built there.
for library in $(awk '$1 ~ /^(lib.*|zlib1g)-dev$/ { print $1 }' tools/packages.txt); do
    case $library in
    libcurl4-openssl-dev | libc6-dev) continue ;;
    esac
    sed -n '/^static=(/,/)/p' tools/sysroot | grep -qw -- "$library" || { echo "tools/sysroot lacks $library" && exit 1; }
done

# A small checkout, packed twice, has the same bytes, and knows its commit without git.
mkdir -p "$tmp/small/tools"
cp CMakeLists.txt .gitattributes "$tmp/small/"
cp tools/version tools/dist tools/checksums "$tmp/small/tools/"
git -C "$tmp/small" init -q
git -C "$tmp/small" add .
GIT_COMMITTER_DATE='@86400 +0000' git -C "$tmp/small" -c user.name=t -c user.email=t@localhost commit -qm first
"$tmp/small/tools/dist" "$tmp/one"
touch -d @1 "$tmp/small/CMakeLists.txt"
(umask 077 && "$tmp/small/tools/dist" "$tmp/two")
diff -r "$tmp/one" "$tmp/two"
(cd "$tmp/one" && sha256sum -c --quiet SHA256SUMS)
version=$(tools/version)
test "$(cut -d' ' -f3 "$tmp/one/SHA256SUMS")" = "kiln-$version.tar.xz"
tar -C "$tmp" -xJf "$tmp/one/kiln-$version.tar.xz"
test "$("$tmp/kiln-$version/tools/version" --commit)" = "$(git -C "$tmp/small" rev-parse HEAD)"
test "$("$tmp/kiln-$version/tools/version" --epoch)" = 86400
"$tmp/kiln-$version/tools/dist" "$tmp/three" 2>"$tmp/err" && echo "a tarball packs itself" && exit 1
grep -q 'which this is not' "$tmp/err"

# What a portable program may need.
cat >"$tmp/x.c" <<'END'
#include <math.h>
#include <stdio.h>
int main(int argc, char **argv) { return (int)pow(argc, 2.5) + puts(argv[0]); }
END
"${CC:-cc}" -o "$tmp/plain" "$tmp/x.c" -lm
tools/check-portable 99.0 "$tmp/plain"
tools/check-portable 2.0 "$tmp/plain" >"$tmp/out" && echo "a newer glibc is not noticed" && exit 1
grep -q 'plain: needs GLIBC_2\.' "$tmp/out"
echo 'int other(void) { return 0; }' >"$tmp/other.c"
"${CC:-cc}" -shared -fPIC -o "$tmp/libother.so" "$tmp/other.c"
"${CC:-cc}" -Wl,--no-as-needed -o "$tmp/more" "$tmp/x.c" -lm -L"$tmp" -lother
tools/check-portable 99.0 "$tmp/more" >"$tmp/out" && echo "another library is not noticed" && exit 1
grep -q "more: needs libother.so, which is not glibc's" "$tmp/out"
