#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every program and shared library that is installed is hardened (cmake/hardening.cmake, tools/check-hardened), and so are
# the objects in the static libraries; libkiln-context.a, which links with any libc, has no call that glibc alone knows.
# Each property is also taken away from a small program, which check-hardened must notice.
set -euo pipefail
build=$(realpath "${KILN_BUILD_DIR:-build}")
cd "${KILN_SOURCE_DIR:-.}"
grep -q '^KILN_HARDEN:BOOL=ON$' "$build/CMakeCache.txt" || { echo "skipped: built without hardening" && exit 77; }
grep -qE '^KILN_(SANITIZE:STRING=.|FUZZ:BOOL=ON)' "$build/CMakeCache.txt" && echo "skipped: built with sanitizers" && exit 77
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

fail() {
    echo "$*" >&2
    exit 1
}

# marks FILE...: how many of the objects in FILE, which may be archives, are marked for control-flow protection, of how many.
marks() {
    local notes
    notes=$(readelf -hnW "$@")
    echo "$(grep -cE 'x86 feature: IBT, SHSTK|AArch64 feature: BTI, PAC' <<<"$notes") of $(grep -c '^ELF Header' <<<"$notes")"
}

# all_marked FILE...: whether each of them is.
all_marked() {
    local count
    count=$(marks "$@")
    [[ ${count% of *} == "${count#* of }" ]]
}

# ---- what is installed ----

DESTDIR=$tmp/root cmake --install "$build" --prefix /usr >/dev/null
mapfile -t files < <(find "$tmp/root" -type f ! -name '*.a' -exec sh -c 'head -c4 "$1" | grep -q ELF' sh {} \; -print)
((${#files[@]} >= 3)) || fail "the program and two libraries are installed, not ${files[*]}"
tools/check-hardened "${files[@]}"

mapfile -t objects < <(find "$build"/CMakeFiles/kiln_inproc_{objects,constructor}.dir -name '*.o')
for archive in "$build"/libkiln_{core,symbol,server,host,collector,cli}.a; do
    all_marked "$archive" || fail "$archive: $(marks "$archive") objects are marked for control-flow protection"
    nm "$archive" >"$tmp/names"
    grep -q ' U __stack_chk_fail$' "$tmp/names" || fail "$archive has no stack canaries"
    grep -q ' U __.*_chk$' "$tmp/names" || fail "$archive has no FORTIFY"
done
all_marked "$build/libkiln-context.a" || fail "libkiln-context.a is not marked for control-flow protection"
all_marked "${objects[@]}" || fail "libkiln: $(marks "${objects[@]}") objects are marked for control-flow protection"
nm "$build"/libkiln-context.a | grep '_chk$' && fail "libkiln-context.a needs glibc"

# The linker marks the program if all its inputs are marked, those of the C library and the compiler included.
mapfile -t inputs < <(sed -nE 's/^ +([^ ]+\.[oa]) ?\\?$/\1/p' "$build/link/kiln.d" | sort -u)
mapfile -t inputs < <(cd "$build" && realpath -e "${inputs[@]}")
((${#inputs[@]} > 6)) || fail "the list of the linker's inputs is not understood: ${inputs[*]}"
if all_marked "${inputs[@]}"; then
    KILN_CHECK_CET=1 tools/check-hardened "$tmp/root/usr/bin/kiln"
else
    echo "the program is not marked for IBT and SHSTK: only $(marks "${inputs[@]}") of the linker's inputs are"
fi

# ---- what check-hardened notices ----

cat >"$tmp/x.c" <<'END'
#include <stdio.h>
#include <string.h>
#ifdef WRITABLE_CODE
__asm__(".section .both, \"awx\", @progbits\n.byte 0\n.text");
#endif
#ifdef ADDRESS_IN_CODE
__asm__(".text\n.quad main");
#endif
int main(int argc, char **argv)
{
    char text[64];
    strcpy(text, argv[argc - 1]);
    return printf("%s\n", text) < 0;
}
END
compile=("${CC:-gcc}" -O2 -w -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fPIE -pie
    "-Wl,-z,relro,-z,now,-z,noexecstack")
"${compile[@]}" -o "$tmp/good" "$tmp/x.c"
tools/check-hardened "$tmp/good"

# notices TEXT FLAG...: with FLAG after those, check-hardened says TEXT.
notices() {
    "${compile[@]}" -o "$tmp/bad" "$tmp/x.c" "${@:2}" 2>"$tmp/err" || fail "$2: $(cat "$tmp/err")"
    ! tools/check-hardened "$tmp/bad" >"$tmp/out" || fail "$2 is not noticed"
    grep -q "bad: $1" "$tmp/out" || fail "$2: $(cat "$tmp/out")"
}
notices "is not position-independent" -no-pie
notices "has no RELRO segment" -Wl,-z,norelro
notices "binds symbols lazily" -Wl,-z,lazy
notices "has an executable stack" -Wl,-z,execstack
notices "has a segment that is writable and executable" -DWRITABLE_CODE
notices "has text relocations" -DADDRESS_IN_CODE -Wl,-z,notext
notices "has a search path" -Wl,-rpath,/tmp
notices "has no stack canaries" -fno-stack-protector
notices "has no FORTIFY" -U_FORTIFY_SOURCE
