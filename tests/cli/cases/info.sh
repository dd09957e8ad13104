# How much memory a batch takes may change; the rest may not.
kiln info examples/checkout.pb.gz | sed 's/, [^,]* in memory//'
kiln convert examples/checkout.pb.gz -o "$TMP/c.otlp"
kiln info -n 1 "$TMP/c.otlp" | sed 's/, [^,]* in memory//'
