# Colours only where asked for, or on a terminal.
kiln top -n 2 --color always examples/checkout.pb.gz | cat -v
NO_COLOR=1 kiln top -n 1 examples/checkout.pb.gz | cat -v
