#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Two builds of one commit, in two folders with names of different lengths, at different times and without a cache of
# compilations: the source tarball, the program, the libraries, the portable tarball and the Debian packages are equal
# to the byte.  Without debhelper, the Debian packages are left out.
# Long: tools/torture runs it. KILN_SYSROOT_DIR names a root of tools/sysroot to use instead of making one.
set -euo pipefail
cd "$(dirname "$0")/../.."
if ! git rev-parse -q --verify HEAD >/dev/null; then
    echo "skipped: no checkout of git"
    exit 77
fi
export CCACHE_DISABLE=1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export KILN_SYSROOT_DIR=${KILN_SYSROOT_DIR:-$tmp/sysroot}
tools/sysroot "$KILN_SYSROOT_DIR"

outputs=(build/kiln build/libkiln.so build/new/libkiln.so build/libkiln.a build/libkiln-context.a)
# build FOLDER: what `make` and the release make of a clone in FOLDER.
build() {
    git clone -q . "$1"
    (
        cd "$1"
        cmake --preset default >/dev/null
        ninja -C build >/dev/null
        tools/dist dist
        tools/tarball dist >/dev/null
        if command -v dh >/dev/null; then tools/deb >/dev/null 2>&1; fi
    )
}
build "$tmp/a"
build "$tmp/another/folder-with-a-longer-name"
cd "$tmp/a"
shopt -s nullglob
for file in "${outputs[@]}" dist/* build/deb/*.deb; do
    cmp "$file" "$tmp/another/folder-with-a-longer-name/$file"
    echo "equal: $file"
done
(cd dist && sha256sum -c --quiet SHA256SUMS)
