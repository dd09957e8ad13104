#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs command line cases: cases/NAME.sh must print exactly NAME.stdout and NAME.stderr and leave with
# the code in NAME.exit (a missing file: nothing, 0).  Cases start at the top of the repository, find
# the program as `kiln`, a scratch directory as $TMP, captures in $KILN_TEST_DATA; 77 means skipped.
#
#   tests/cli/run.sh [--update] [NAME]...     all cases where none is named; --update writes what is expected
set -u
here=$(cd "$(dirname "$0")" && pwd)
top=${KILN_SOURCE_DIR:-$(cd "$here/../.." && pwd)}
kiln=${KILN:-$top/build/kiln}
update=
[ "${1:-}" = --update ] && { update=1; shift; }
if [ $# -eq 0 ]; then
    for case in "$here"/cases/*.sh; do set -- "$@" "$(basename "$case" .sh)"; done
fi

run_case() {
    local name=$1 scratch code
    scratch=$(mktemp -d)
    mkdir "$scratch/bin" "$scratch/tmp"
    ln -s "$kiln" "$scratch/bin/kiln"
    (
        cd "$top" || exit 1
        unset NO_COLOR COLUMNS
        export TMP=$scratch/tmp PATH=$scratch/bin:$PATH LC_ALL=C.UTF-8 TERM=dumb TZ=UTC
        exec bash "$here/cases/$name.sh" </dev/null >"$scratch/stdout" 2>"$scratch/stderr"
    )
    code=$?
    sed -i "s,$scratch/tmp,TMP,g" "$scratch/stdout" "$scratch/stderr"
    echo $code >"$scratch/exit"
    if [ $code -eq 77 ]; then
        cat "$scratch/stdout"
    elif [ -n "$update" ]; then
        record "$name" "$scratch"
    else
        compare "$name" "$scratch"
        code=$?
    fi
    rm -rf "$scratch"
    return $code
}

record() {
    for part in stdout stderr exit; do
        rm -f "$here/cases/$1.$part"
        case $part:$(cat "$2/$part") in
        *: | exit:0) ;;
        *) cp "$2/$part" "$here/cases/$1.$part" ;;
        esac
    done
}

compare() {
    local same=0
    for part in stdout stderr exit; do
        expected=$here/cases/$1.$part
        [ -e "$expected" ] || { expected=$2/expected; [ $part = exit ] && echo 0 >"$expected" || : >"$expected"; }
        diff -u --label "$1.$part (expected)" --label "$1.$part" "$expected" "$2/$part" || same=1
    done
    return $same
}

worst=0
for name; do
    run_case "$name"
    code=$?
    if [ $code -eq 77 ] && [ $# -eq 1 ]; then
        exit 77
    elif [ $code -ne 0 ] && [ $code -ne 77 ] && [ -z "$update" ]; then
        echo "FAILED: $name"
        worst=1
    fi
done
exit $worst
