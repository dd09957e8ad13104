#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The lists of packaging/debian: each file that `make install` puts in place is in one Debian package or is named as left
# out, and what packages need to be built is what tools/packages.txt has. tests/torture/debian.py builds and installs them.
set -euo pipefail
shopt -s nullglob
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0
lists=packaging/debian

fail() {
    echo "$*" >&2
    failed=1
}

DESTDIR=$tmp/root cmake --install "${KILN_BUILD_DIR:-build}" --prefix /usr >/dev/null
cp -R packaging "$tmp/root/"

# A build for /usr has its libraries in lib/x86_64-linux-gnu, one for /usr/local in lib.
declare -A owner=() placed=()
while read -r list pattern place; do
    files=()
    [[ -d $tmp/root/usr/lib/pkgconfig ]] && pattern=${pattern/lib\/\*\//lib/}
    # shellcheck disable=SC2231 # the lists have patterns
    for path in "$tmp/root/"$pattern; do
        if [[ -d $path ]]; then
            mapfile -t -O "${#files[@]}" files < <(find "$path" ! -type d)
        elif [[ -e $path ]]; then
            files+=("$path")
        fi
    done
    ((${#files[@]})) || fail "$list: no file matches $pattern"
    for path in "${files[@]}"; do
        [[ -z ${owner[$path $place]:-} ]] || fail "$pattern: both in ${owner[$path $place]} and in $list"
        owner[$path $place]=$list
        placed[$path]=1
    done
done < <(awk '{ print FILENAME, $1, $2 }' "$lists"/*.install "$lists/not-installed")
while read -r path; do
    [[ -n ${placed[$path]:-} ]] || fail "$path: in no package; packaging/debian/not-installed names what is left out"
done < <(find "$tmp/root/usr" ! -type d ! -name '*.service')
for unit in "$tmp/root/usr/lib/systemd/system/"*; do
    name=$(basename "$unit" .service)
    grep -q "^Package: $name\$" "$lists/control" || fail "$unit: no package has its name"
done

needed() { sed 's/#.*//' tools/packages.txt | awk 'NF { gsub(/\|/, " | ", $1); print $1 }'; }
listed() { sed -n '/^Build-Depends:/,/^$/s/^ \(.*\),$/\1/p' "$lists/control"; }
difference=$(diff <(needed | grep -vx 'gcc\|libc6-dev' | sort) <(listed | grep -v '^debhelper' | sort)) ||
    fail "tools/packages.txt and Build-Depends differ (gcc and libc6-dev are build-essential):" $'\n'"$difference"
exit $failed
