# Damaged and hostile files: one clear line, exit code 3 or 4, no crash.
try() { echo "\$ kiln $*"; kiln "$@" 2>&1; echo "exit $?"; }
p=examples/checkout.pb.gz
: >"$TMP/empty"
printf 'not a profile\n\001\002' >"$TMP/garbage"
head -c 1000 $p >"$TMP/truncated.gz"
{ head -c 500 $p; printf X; tail -c +502 $p; } >"$TMP/flipped.gz"
gzip -dc $p | head -c 3000 >"$TMP/truncated.pb"
head -c 64M /dev/zero | gzip >"$TMP/bomb.gz"
head -c 64M /dev/zero | zstd -q >"$TMP/bomb.zst"
for f in empty garbage truncated.gz flipped.gz truncated.pb missing; do try top "$TMP/$f"; done
for f in bomb.gz bomb.zst; do try top --max-size 16M "$TMP/$f"; done
try top "$TMP"
try top /dev/zero --max-size 1M
try top --from jfr $p
try top - <"$TMP/empty"
