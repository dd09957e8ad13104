# The help of every command, and that it fits 80 columns.
kiln help
kiln help formats
kiln help diff
for c in $(kiln help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do
    kiln help "$c" >"$TMP/help" || echo "help $c fails"
    kiln "$c" --help | cmp - "$TMP/help"
    awk -v c="$c" 'length > 80 && !/^  (kiln|gzip)/ { print c ": " $0 }' "$TMP/help"
done
kiln --version | cmp - <(kiln version); kiln -h | head -1
