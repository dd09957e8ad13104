# What --json prints is JSON, and every name in it is documented.
command -v python3 >/dev/null || { echo "python3 is not installed"; exit 77; }
a=examples/checkout.pb.gz b=examples/checkout-v2.pb.gz
kiln top --json $a >"$TMP/top"
kiln top --json --granularity address $a >"$TMP/address"
kiln tree --json $a >"$TMP/tree"
kiln list --json load $a --source examples >"$TMP/list"
kiln diff --json $a $b >"$TMP/diff"
kiln info --json $a >"$TMP/info"
kiln convert $a --to otlp | kiln info --json - >"$TMP/info-otlp"
kiln convert $a --to otlp | kiln check --json - >"$TMP/check"
printf '\022\005\022\003\030\200\001' | kiln check --json - >"$TMP/check-findings"
kiln config --json --memory-limit 512M --config packaging/kiln.yaml >"$TMP/config"
kiln version --json >"$TMP/version"
python3 - "$TMP"/* <<'END'
import json, re, sys
documented = set(re.findall(r'`(\w+)`', open('docs/formats/cli-json.md').read()))
def names(value):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            if key != 'attributes':
                yield from names(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from names(inner)
for path in sys.argv[1:]:
    missing = set(names(json.load(open(path)))) - documented
    print(path.rsplit('/')[-1], 'documented' if not missing else sorted(missing))
END
