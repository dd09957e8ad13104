# The rules of OTLP profiles: what Kiln writes keeps them all, also the strict ones.
p=examples/checkout.pb.gz
kiln convert $p -o "$TMP/good.otlp"
kiln check --strict --check-dupes --check-orphans "$TMP/good.otlp"; echo "exit $?"
head -c 5000 "$TMP/good.otlp" >"$TMP/cut.otlp"
kiln check -n 3 "$TMP/cut.otlp"; echo "exit $?"
printf '\022\005\022\003\030\200\001' | kiln check -n 2 - | head -2
kiln check "$TMP/good.otlp" $p; echo "exit $?"
printf 'no protobuf' | kiln check -; echo "exit $?"
kiln check --check-sample-shapes=false "$TMP/good.otlp" "$TMP/cut.otlp" | tail -1
