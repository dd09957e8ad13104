# Pipes in and out, and compression by name.
p=examples/checkout.pb.gz
gzip -dc $p | kiln convert - --to otlp | kiln top -n 1 -
gzip -dc $p | zstd -q | kiln top -n 1 -
kiln convert $p -o "$TMP/c.otlp.gz"
kiln convert $p -o "$TMP/c.otlp.zst"
kiln convert $p --no-compression -o "$TMP/c.pb.gz"
for f in c.otlp.gz c.otlp.zst c.pb.gz; do
    kiln info "$TMP/$f" | grep -E 'format|uncompressed' | sed 's/  size .* \(gzip\|zstd\),.*/  \1/'
done
# pprof is gzip, unless the name says that it is not.
for f in c.pb c.pb.zst c.pb.gz; do
    kiln convert $p -o "$TMP/$f" && echo "$f $(kiln info "$TMP/$f" | grep -oE 'gzip,|zstd,')"
done
