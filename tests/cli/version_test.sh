#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What `kiln version` prints is what tools/version found out, in a checkout, in a source tarball and in neither.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
unset SOURCE_DATE_EPOCH
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null

# is WHAT EXPECTED GOT
is() {
    [[ $2 == "$3" ]] || { echo "$1: expected $2, got $3" && exit 1; }
}

# The program: the build's constants, for people and for programs.
constant() { sed -n "s/^const char $1\[\] = \"\(.*\)\";/\1/p" "${KILN_BUILD_DIR:-build}/build_info.c"; }
"$KILN" version >"$tmp/text"
is version "kiln $(tools/version)" "$(head -1 "$tmp/text")"
is commit "$(constant kiln_build_commit)" "$(awk '$1 == "commit" { print $2 }' "$tmp/text")"
is date "$(constant kiln_build_date)" "$(awk '$1 == "date" { print $2 }' "$tmp/text")"
"$KILN" version --json | python3 -c '
import json, sys
for name, value in json.load(sys.stdin).items():
    print(f"kiln {value}" if name == "version" else f"{name:<9} {value}")' | diff "$tmp/text" -

# A checkout.
mkdir -p "$tmp/kiln/tools"
cp tools/version "$tmp/kiln/tools/"
cp CMakeLists.txt .gitattributes "$tmp/kiln/"
cd "$tmp/kiln"
is "date without git" unknown "$(tools/version --date)"
is "commit without git" unknown "$(tools/version --commit)"
git init -q
is "commit before the first" unknown "$(tools/version --commit)"
git add .
GIT_COMMITTER_DATE='@86400 +0000' git -c user.name=t -c user.email=t@localhost commit -qm first
commit=$(git rev-parse HEAD)
is commit "$commit" "$(tools/version --commit)"
is date 1970-01-02T00:00:00Z "$(tools/version --date)"
is "SOURCE_DATE_EPOCH" 1970-01-03T00:00:00Z "$(SOURCE_DATE_EPOCH=172800 tools/version --date)"
SOURCE_DATE_EPOCH=yesterday tools/version --date 2>/dev/null && echo "a date that is none passes" && exit 1
touch new
is "commit with a file that git does not track" "$commit" "$(tools/version --commit)"

# The source file is written when it changes, and only then.
tools/version --source "$tmp/info.c"
touch -d @1 "$tmp/info.c"
tools/version --source "$tmp/info.c"
is "time of a file that is the same" 1 "$(stat -c %Y "$tmp/info.c")"
echo >>CMakeLists.txt
is "commit of a changed tree" "$commit-dirty" "$(tools/version --commit)"
tools/version --source "$tmp/info.c"
grep -q "\"$commit-dirty\"" "$tmp/info.c"

# A tarball knows its commit, also where it lies in a checkout of something else.
mkdir other
git archive HEAD | tar -x -C other
is "version of a tarball" "$(tools/version)" "$(other/tools/version)"
is "commit of a tarball" "$commit" "$(other/tools/version --commit)"
is "epoch of a tarball" 86400 "$(other/tools/version --epoch)"
cp tools/version other/tools/
is "commit of files that lie in another checkout" unknown "$(other/tools/version --commit)"
