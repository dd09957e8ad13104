# Every example of every help works as it stands.
kiln_examples() { for c in $(kiln help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do kiln help "$c"; done |
    awk '/^Examples:/ { on = 1; next } /^$/ { next } /^[A-Z]/ { on = 0 } on && !/^  #/'; }
kiln_examples >"$TMP/all"
[ "$(wc -l <"$TMP/all")" -ge 20 ] || echo "only $(wc -l <"$TMP/all") examples found"
while read -r line; do
    case $line in "kiln server"*) line=${line/server/config} ;; esac # it would not end
    bash -o pipefail -c "$line" >"$TMP/out" 2>&1 || { echo "exit $?: $line"; cat "$TMP/out"; }
done <"$TMP/all"
