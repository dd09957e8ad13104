# Drawings are well-formed and show what was asked for.
command -v python3 >/dev/null || { echo "python3 is not installed"; exit 77; }
a=examples/checkout.pb.gz b=examples/checkout-v2.pb.gz
well_formed() { python3 -c 'import sys, xml.dom.minidom as x; x.parse(sys.argv[1])' "$1" && echo "${1##*/}: well-formed"; }
kiln flamegraph $a -o "$TMP/flame.svg" && well_formed "$TMP/flame.svg"
kiln flamegraph --base $a $b -o "$TMP/diff.svg" && well_formed "$TMP/diff.svg"
kiln flamegraph -i --title 'a <b> & c' $a >"$TMP/inverted.svg" && well_formed "$TMP/inverted.svg"
kiln graph $a -o "$TMP/graph.svg" && well_formed "$TMP/graph.svg"
kiln convert $a -o "$TMP/convert.svg" && cmp "$TMP/convert.svg" "$TMP/flame.svg" && echo "convert draws the same"
grep -c 'MustCompile' "$TMP/flame.svg" "$TMP/diff.svg" | sed 's/:[1-9][0-9]*$/: yes/; s/:0$/: no/; s,.*/,,'
kiln graph --to dot --focus sql $a | grep -c -- '->' | sed 's/[1-9][0-9]*/has arrows/'
kiln graph --to otlp $a
kiln flamegraph --base "$TMP/missing" $a; echo "exit $?"
