# Growth beyond the threshold, of the whole or of one function, is exit code 1.
a=examples/checkout.pb.gz b=examples/checkout-v2.pb.gz
kiln diff --fail-on-growth 20 $a $b >/dev/null; echo "below: $?"
kiln diff --fail-on-growth 5 $a $b >/dev/null; echo "the whole: $?"
kiln diff --fail-on-growth 2 --normalize total $a $b >/dev/null; echo "one function: $?"
kiln diff --fail-on-growth 0 $a $a >/dev/null; echo "no change: $?"
kiln diff --fail-on-growth 5 $a $b >/dev/null
