#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# CMakeLists.txt alone has the version; a Python package that installs by itself has to repeat it.
# In tests, a line with the version counts only if it names Kiln: versions of invented services are theirs.
set -euo pipefail
cd "$(dirname "$0")/../.."
version=$(tools/version)
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || { echo "tools/version prints $version" && exit 1; }
grep -qx "version = \"$version\"" bridges/python/pyproject.toml || { echo "bridges/python/pyproject.toml has another version" && exit 1; }

if ! git rev-parse -q --verify HEAD >/dev/null 2>&1; then
    echo "skipped: no checkout of git"
    exit 77
fi
# find_copies FILE...: lines that repeat the version.
find_copies() {
    git grep -nIwF "$version" -- "$@" ':!CMakeLists.txt' ':!CHANGELOG.md' ':!bridges/python/pyproject.toml' \
        ':!*.sum' ':!web/package-lock.json' || true
}
copies=$(
    find_copies . ':!tests' ':!fuzz' ':!bench'
    find_copies tests fuzz bench | grep -i 'kiln.*'"${version//./\\.}" || true
)
if [[ -n $copies ]]; then
    echo "the version stands elsewhere than in CMakeLists.txt:"
    echo "$copies"
    exit 1
fi
