# Requests as files: no server is needed.
kiln loadgen -n 4 --from 2026-03-01T12:00:00Z --out "$TMP/a" --json | grep -E '"(requests|stacks|tree_nodes|profiles|samples)"'
kiln loadgen -n 4 --from 2026-03-01T12:00:00Z --out "$TMP/b" -q
kiln loadgen -n 4 --from 2026-03-01T12:00:00Z --out "$TMP/c" -q --seed 2
echo "== the same seed gives the same requests, another one others"
diff -r "$TMP/a" "$TMP/b" && echo same
cmp -s "$TMP/a/00000000.otlp.gz" "$TMP/c/00000000.otlp.gz" || echo other
ls "$TMP/a"
echo "== they are valid, and of the time asked for"
kiln check "$TMP/a/00000003.otlp.gz"
kiln info "$TMP/a/00000003.otlp.gz" | sed -n '/resource 2/,/process_cpu/p'
echo "== a whole time span, several types, spans"
kiln loadgen --from 2026-03-01T12:00:00Z --to 2026-03-01T12:00:30Z --hosts 2 --types cpu,off_cpu --spans 50 --churn 85 \
    --out "$TMP/d" --compression none --json | grep -E '"(requests|stacks|tree_nodes|profiles|samples)"'
kiln check "$TMP"/d/*.otlp | tail -1
kiln info "$TMP/d/00000011.otlp" | sed -n '/resource 1 /,/^$/p'
echo "== half of the hosts are new in every round"
kiln loadgen -n 6 --hosts 2 --host-churn 50 --from 2026-03-01T12:00:00Z --out "$TMP/f" --compression none -q
for file in "$TMP"/f/*.otlp; do
    kiln info "$file" | grep -m1 -o 'host-[0-9]*'
done
echo "== a real profile, again and again"
for by in address graft frames; do
    kiln loadgen -n 2 --shape pprof --template examples/checkout.pb.gz --services 1 --churn 30 --churn-by $by \
        --from 2026-03-01T12:00:00Z --out "$TMP/$by" --json | grep -E '"(requests|stacks|profiles|samples)"'
done
kiln check "$TMP/graft/00000001.otlp.gz"
kiln loadgen -n 3 --shape pprof --types cpu,heap,block --samples 50 --services 1 --hosts 1 --out "$TMP/e" -q
kiln info --json "$TMP"/e/*.gz | grep -o '"type": .*'
echo "== wrong words"
kiln loadgen --types cpu,heap --out "$TMP/x"
kiln loadgen --types cpo --out "$TMP/x"
kiln loadgen --protocol pyroscope --out "$TMP/x"
kiln loadgen --churn 101
kiln loadgen --host-churn 101
kiln loadgen --tenants 2 --tenant one
kiln loadgen --duration 1s --out "$TMP/x"
kiln loadgen --from yesterday
kiln loadgen --from 2026-03-02 --to 2026-03-01
kiln loadgen --template "$TMP/none" --out "$TMP/x"
kiln loadgen -q -n 3 -j 1 -s unix:/nowhere/kiln.sock
echo "exit $?"
