# What would be pushed, when it was, and of whom; and what cannot be pushed.  No server is needed.
p=examples/checkout.pb.gz
unset KILN_SERVER KILN_TOKEN
kiln push --dry-run --service checkout $p
mkdir -p "$TMP/d/more" "$TMP/d/.hidden"
kiln convert $p --to collapsed >"$TMP/d/cpu-1772366400123.folded"
cp "$TMP/d/cpu-1772366400123.folded" "$TMP/d/cpu-20260301T120000Z.folded"
cp "$TMP/d/cpu-1772366400123.folded" "$TMP/d/more/cpu_2026-03-01_12-30-00.folded"
cp "$TMP/d/cpu-1772366400123.folded" "$TMP/d/plain.folded"
touch -d 2026-03-02T00:00:00Z "$TMP/d/plain.folded"
cp $p "$TMP/d/.hidden/x.pb.gz"
cp $p "$TMP/d/meta.pb.gz"
echo '{"service.name": "shop", "version": "1.4", "labels": {"region": "eu", "n": 1},
    "window_start": "2026-03-03T01:00:00+01:00", "window_end": 1772496030.5, "on_call": true}' >"$TMP/d/meta.json"
echo "# not a profile" >"$TMP/d/readme.md"
echo "== a directory"
kiln push --dry-run "$TMP/d"
echo "== as JSON"
kiln push --dry-run --json "$TMP/d/meta.pb.gz" "$TMP/d/meta.json"
echo "== a profile whose name would do for metadata, and metadata that is named"
kiln convert $p --to otlp-json -o "$TMP/c.json"
kiln convert $p -o "$TMP/c.otlp"
kiln push --dry-run "$TMP/c.json" "$TMP/c.otlp" "$TMP/d/meta.json"
echo "exit $?"
rm "$TMP/c.json"
kiln push --dry-run "$TMP/c.json"
echo "exit $?"
echo "== a time of one's own"
kiln push --dry-run --time 2026-03-04T00:00:00.25Z $p "$TMP/d/meta.pb.gz"
kiln push -q --dry-run $p
echo "== damaged files and metadata"
head -c 100 $p >"$TMP/cut.pb.gz"
kiln push -j 1 --dry-run "$TMP/cut.pb.gz" "$TMP/nothing" $p
echo "exit $?"
echo '{"time": "soon"}' >"$TMP/cut.json"
kiln push --dry-run "$TMP/cut.pb.gz"
echo "exit $?"
echo "== no server"
kiln push -j 1 -s unix:/nowhere/kiln.sock $p $p $p $p $p $p
echo "exit $?"
echo "== wrong words"
kiln push
kiln push --label region $p
kiln push --time soon $p
kiln push -s ftp://x $p
KILN_TOKEN=$'a\nb' kiln push $p
echo "exit $?"
