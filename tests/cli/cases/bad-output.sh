# Full disks, directories and closed pipes.
p=examples/checkout.pb.gz
kiln top $p >/dev/full; echo "exit $?"
kiln convert $p --to otlp -o /dev/full; echo "exit $?"
kiln convert $p --to otlp -o "$TMP"; echo "exit $?"
kiln convert $p -o "$TMP/no/such/dir.otlp"; echo "exit $?"
kiln info --json $(yes $p | head -n 80) | head -n 1
echo "closed pipe: ${PIPESTATUS[0]}"
kiln convert $p -o /dev/null --to otlp; echo "exit $?, still a device: $(test -c /dev/null && echo yes)"
