# What `kiln store` says where there is no store, or no right to it.
try() {
    echo "== kiln $*"
    kiln "$@" 2>&1
    code=$?
    [ $code -eq 0 ] || echo "(exit $code)"
}
export KILN_SOCKET=$TMP/none.sock
cd "$TMP" || exit 1
try store
try store clean
try store check now
try store backup
try store check --data-dir "$TMP/nowhere"
mkdir empty
for verb in check stats compact; do try store $verb --data-dir "$TMP/empty"; done
try store export --data-dir "$TMP/empty" --format collapsed
try store delete --data-dir "$TMP/empty" shop
try store backup --data-dir "$TMP/empty" "$TMP/backup"
try store restore --data-dir "$TMP/restored" "$TMP/empty"
ls -A empty
echo text >file
try store check --data-dir "$TMP/file"
try store stats --data-dir "$TMP/file"
mkdir garbage garbage/blocks garbage/blocks/anonymous garbage/wal garbage/symbols garbage/symbols/anonymous
echo '{"version": 1, "seed": 1}' >garbage/store.json
echo rubbish >garbage/blocks/anonymous/0123456789abcdef0123456789abcdef.kb
echo rubbish >garbage/symbols/anonymous/abc
echo rubbish >garbage/wal/00000000000000000001.log
: >garbage/blocks/anonymous/00000000000000000000000000000000.kb
try store check --data-dir "$TMP/garbage"
try store check --data-dir "$TMP/garbage" --json
try store restore --data-dir "$TMP/restored" "$TMP/garbage"
echo '{"version": 99}' >garbage/store.json
try store check --data-dir "$TMP/garbage"
try store stats --data-dir "$TMP/garbage"
echo 'no json' >garbage/store.json
try store check --data-dir "$TMP/garbage" | grep store.json
try store export --data-dir "$TMP/empty" --type a:b:c:d --format otlp
try store export --data-dir "$TMP/empty" --from soon --format otlp
try store export --data-dir "$TMP/empty" --from now --to now-1h --format otlp
try store export --data-dir "$TMP/empty" --match 'host.name=~(' --format otlp
try store export --data-dir "$TMP/empty"
try store stats --server unix:"$TMP/none.sock"
