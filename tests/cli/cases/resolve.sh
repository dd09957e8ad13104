# kiln symbols resolve: addresses from the command line and from standard input, and what goes wrong.
program=$(command -v kiln)
begin=$(nm "$program" | awk '$3 == "kiln_demangle" { print $1 }') || exit 77
[ -n "$begin" ] || { echo "the program has no symbols"; exit 77; }
short=$(sed 's/^0*//' <<<"$begin")
hide() { sed "s/$begin/BEGIN/g; s/$short/BEGIN/g; s,\t[^\t]*demangle.c:.*,\tPLACE,; s,\t??:0$,\tPLACE,"; }
kiln symbols resolve "$program" "$begin" 0x10 | hide
printf '10 %s\n\n  0x%s\n' "$begin" "$begin" | kiln symbols resolve "$program" | hide
kiln symbols resolve --addr2line "$program" 0X10 "$begin" | sed 3q | sed 's/^0x0*10$/TEN/'
kiln symbols resolve --addr2line "$program" "$begin" | sed -n 2p
kiln symbols resolve --json "$program" 10 | cut -d, -f2-
kiln symbols resolve --json "$program" "$begin" | grep -c '"function":"kiln_demangle"'
kiln symbols resolve "$program" </dev/null
# A program without symbols, its debug file, and another one's.
strip -o "$TMP/stripped" "$program"
kiln symbols resolve "$TMP/stripped" "$begin" | hide
kiln symbols resolve --debug "$program" "$TMP/stripped" "$begin" | hide
kiln symbols resolve --debug /bin/true "$TMP/stripped" "$begin" 2>&1 >/dev/null
echo $?
# Hundreds of thousands, each printed as often as it is asked for, in that order.
seq 0 3 700000 | awk '{ printf "%x\n", $1 }' >"$TMP/many"
kiln symbols resolve "$program" <"$TMP/many" | cut -f1 | grep . | sed 's/^0x//' | cmp - "$TMP/many"
for words in '' "$program 12g" "$program 0x" "$program 11112222333344445" README.md "$TMP/none 1" "$TMP 1" "/dev/null 1"; do
    kiln symbols resolve $words </dev/null 2>&1 | sed "s,$program,PROGRAM,"
    echo "${PIPESTATUS[0]}"
done
printf '1\n2 3\n4 five\n' | kiln symbols resolve "$program"
