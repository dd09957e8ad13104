# Any format to any other; what is read back is what was written.
p=examples/checkout.pb.gz
kiln convert $p -o "$TMP/c.otlp"
kiln convert "$TMP/c.otlp" -o "$TMP/back.pb.gz"
cmp <(kiln top -n 0 $p) <(kiln top -n 0 "$TMP/back.pb.gz") && echo "pprof, otlp, pprof: equal"
kiln convert $p --to collapsed | sort >"$TMP/c.folded"
head -3 "$TMP/c.folded"
awk '{ sum += $NF } END { printf "sum %.0f\n", sum }' "$TMP/c.folded"
kiln convert $p -t alloc_space --focus growslice --to collapsed
# A selection that could have no effect is refused, not forgotten.
kiln convert $p --focus json -o "$TMP/x.pb.gz"; echo "exit $?"
kiln merge $p --granularity line -o "$TMP/x.otlp"; echo "exit $?"
