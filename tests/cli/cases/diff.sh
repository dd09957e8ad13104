kiln diff -n 4 examples/checkout.pb.gz examples/checkout-v2.pb.gz
kiln diff -n 4 --normalize total --sort total examples/checkout.pb.gz examples/checkout-v2.pb.gz
kiln diff examples/checkout.pb.gz examples/checkout.pb.gz
kiln diff -n 1 --json examples/checkout.pb.gz examples/checkout-v2.pb.gz
