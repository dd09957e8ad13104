kiln top --json -n 2 examples/checkout.pb.gz
