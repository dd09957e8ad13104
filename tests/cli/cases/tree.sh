kiln tree --min-share 4 examples/checkout.pb.gz
kiln tree -n 6 -i examples/checkout.pb.gz
kiln tree --depth 2 --callees scanobject examples/checkout.pb.gz
kiln tree --callers mallocgc --min-share 0 examples/checkout.pb.gz
kiln tree --callees nosuch examples/checkout.pb.gz
echo "no such function: $?"
