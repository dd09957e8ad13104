kiln list validate examples/checkout-v2.pb.gz --source-path examples
kiln list 'store..save' -C 1 examples/checkout.pb.gz --source-path examples
kiln list --json 'order..price' examples/checkout.pb.gz --source-path examples
cd "$TMP" && kiln list 'order..price' "$OLDPWD/examples/checkout.pb.gz"
kiln list no.such.function "$OLDPWD/examples/checkout.pb.gz"
