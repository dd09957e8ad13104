#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What git does for a living, in a folder of its own.  usage: work.sh FOLDER; prints the same each time.
set -euo pipefail
export GIT_CONFIG_NOSYSTEM=1 HOME=$1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=c \
    GIT_COMMITTER_EMAIL=c@example.org GIT_AUTHOR_DATE='2026-01-01T00:00:00Z' GIT_COMMITTER_DATE='2026-01-01T00:00:00Z'
cd "$1"
git init -q -b main one
cd one
for i in 1 2 3 4 5 6; do
    for j in 1 2 3 4 5 6 7 8; do seq $((i * j)) $((i * j * 40)) >"file-$j"; done
    git add -A
    git commit -qm "commit $i"
done
git checkout -q -b side HEAD~2
echo side >side
git add side
git commit -qm side
git merge -q -m merged main
git rebase -q main
git tag -a -m tagged v1
git gc -q
git repack -adq --depth=50 --window=50 --threads=2
git fsck --strict 2>&1
git log --oneline --graph --stat | cksum
git blame file-3 | cksum
git grep -c 111
git archive HEAD | cksum
git clone -q . ../two
cd ../two
git log --format='%H %an %s' --all
git diff HEAD~3 --patience | cksum
