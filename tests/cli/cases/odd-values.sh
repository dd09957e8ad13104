# Nothing at all, nothing but losses, and units that would talk to the terminal.
printf 'main;a 0\n' >"$TMP/zero"
printf 'main;a 30\n' >"$TMP/some"
printf 'main;a -30\nmain;b 10\n' >"$TMP/below"
for profile in zero below; do
    kiln top "$TMP/$profile"
    kiln tree "$TMP/$profile"
done
kiln top --focus nowhere "$TMP/some"
kiln diff "$TMP/zero" "$TMP/zero"
kiln diff "$TMP/below" "$TMP/some"
kiln diff --fail-on-growth 1000 "$TMP/zero" "$TMP/some"
echo "from nothing: $?"
# Sums stop at the largest number there is, and so does the number of samples behind them.
printf 'main;a 9223372036854775807\nmain;b 9223372036854775807\n' >"$TMP/huge"
kiln top "$TMP/huge"
kiln tree "$TMP/huge"
cat >"$TMP/unit.json" <<'JSON'
{"dictionary": {"stringTable": ["", "heat", "\u001b[31mred\u001b[0m\n", "main"],
  "functionTable": [{}, {"nameStrindex": 3}], "locationTable": [{}, {"lines": [{"functionIndex": 1}]}],
  "stackTable": [{}, {"locationIndices": [1]}],
  "mappingTable": [{}], "linkTable": [{}], "attributeTable": [{}]},
 "resourceProfiles": [{"scopeProfiles": [{"profiles": [{"sampleType": {"typeStrindex": 1, "unitStrindex": 2},
  "samples": [{"stackIndex": 1, "values": ["7"]}]}]}]}]}
JSON
kiln top "$TMP/unit.json"
kiln diff "$TMP/unit.json" "$TMP/unit.json"
kiln info "$TMP/unit.json" | sed 's/, [^,]* in memory//'
