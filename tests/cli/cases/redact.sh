# Redaction and relabelling happen before anybody looks.
p=examples/checkout.pb.gz
kiln convert --redact examples/redaction.yaml $p -o "$TMP/r.otlp"
kiln top -n 2 --focus json --show '^[0-9a-f]{16}$' "$TMP/r.otlp"
grep -c -a -F -e 'main.(' -e /src/checkout "$TMP/r.otlp"
kiln info "$TMP/r.otlp" | grep labels
kiln top -n 1 --show 'main.*load' --relabel /src=/home/me --granularity line $p
kiln top -n 1 --show 'main.*load' --trim-path /src/checkout --granularity line $p
kiln list price --relabel /src=examples $p | tail -n +3 | head -3
kiln top --relabel =x $p; echo "exit $?"
printf -- '- match: path\n  regex: "("\n  action: drop\n' >"$TMP/bad.yaml"
kiln top --redact "$TMP/bad.yaml" $p; echo "exit $?"
kiln top --redact "$TMP/missing.yaml" $p; echo "exit $?"
