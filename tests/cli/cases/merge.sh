p=examples/checkout.pb.gz
kiln merge $p $p -o "$TMP/twice.otlp"
kiln top -n 2 "$TMP/twice.otlp"
kiln merge --keep-apart $p examples/checkout-v2.pb.gz --to otlp | kiln info --json - | grep -c duration_ns
kiln merge $p "$TMP/missing" -o "$TMP/x.otlp"
echo "exit $?, wrote: $(ls "$TMP")"
