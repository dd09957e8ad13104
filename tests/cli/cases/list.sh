kiln list validate examples/checkout-v2.pb.gz --source examples
kiln list 'store..save' -C 1 examples/checkout.pb.gz --source examples
kiln list --json 'order..price' examples/checkout.pb.gz --source examples
kiln list validate -C 0 examples/checkout-v2.pb.gz --source /src/checkout=examples/checkout --source-path /nowhere
cd "$TMP" && kiln list 'order..price' "$OLDPWD/examples/checkout.pb.gz"
kiln list no.such.function "$OLDPWD/examples/checkout.pb.gz"
