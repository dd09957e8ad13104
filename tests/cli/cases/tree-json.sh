kiln tree --json -n 3 examples/checkout.pb.gz
