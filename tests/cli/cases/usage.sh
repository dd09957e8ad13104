# One line and exit code 2 for each way to be wrong.
try() { echo "\$ kiln $*"; kiln "$@" 2>&1; echo "exit $?"; }
p=examples/checkout.pb.gz
try tpo
try frobnicate
try top
try top --limt 3 $p
try top --limit
try top --limit many $p
try top -z $p
try top --sort sideways $p
try top --json=yes $p
try top --from svg $p
try top --focus '(' $p
try top --label nonsense $p
try top -t wall $p
try tree --min-share -3 $p
try top --max-size lots $p
try diff $p
try diff $p $p $p
try convert $p
try convert $p -o "$TMP/x.unknown"
try convert $p --to jfr
try completion tcsh
try help nothing
try version extra
try --frobnicate
