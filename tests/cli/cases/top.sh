# The functions that cost most, in each order and selection.
p=examples/checkout.pb.gz
kiln top -n 5 $p
kiln top -n 3 --sort total $p
kiln top -n 3 --sort name $p
kiln top -n 3 -t alloc_space $p
kiln top -n 3 --focus json --ignore Encode $p
kiln top -n 3 --hide runtime --label endpoint=/cart $p
kiln top -n 3 --show 'main\.' --granularity line $p
kiln top -n 3 --granularity file $p
kiln top -n2 $p examples/checkout-v2.pb.gz
