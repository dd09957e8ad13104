# Every example of every help works as it stands.
kiln_examples() { for c in $(kiln help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do kiln help "$c"; done |
    awk '/^Examples:/ { on = 1; next } /^$/ { next } /^[A-Z]/ { on = 0 } on && !/^  #/'; }
kiln_examples >"$TMP/all"
[ "$(wc -l <"$TMP/all")" -ge 20 ] || echo "only $(wc -l <"$TMP/all") examples found"
# Those that ask a server have one that was sent two versions of a shop.
kiln server --listen 127.0.0.1:0 --otlp-grpc 127.0.0.1:0 --otlp-http 127.0.0.1:0 --socket "$TMP/sock" --data-dir "$TMP/data" \
    --ready-file "$TMP/ready" >"$TMP/log" 2>&1 &
trap 'kill %1' EXIT
until [ -s "$TMP/ready" ]; do kill -0 %1 || { cat "$TMP/log"; exit 1; }; sleep 0.01; done
export KILN_SERVER=http://127.0.0.1:$(sed 's/.*"http": *\([0-9]*\).*/\1/' <<<$(tr -d '\n' <"$TMP/ready"))
for v in 1.1 1.2; do
    cp examples/checkout.pb.gz "$TMP/$v.pb.gz"
    echo '{"service": "shop", "version": "'$v'", "time": "'$(date -u -d '-20 min' +%FT%TZ)'"}' >"$TMP/$v.json"
    kiln push -q "$TMP/$v.pb.gz" || exit 1
done
# And one agent that reports.
curl -sf "$KILN_SERVER/api/v1/agents/web-1" -d '{"id": "web-1", "host": "web-1"}' >/dev/null || echo "no agent"
while read -r line; do
    line=${line//\/tmp\//$TMP/}
    case $line in
    "kiln server"*) line=${line/server/config} ;;        # it would not end
    "kiln ready -s "*) line="kiln ready" ;;              # of an agent, and by the socket of a service
    "kiln agent" | "kiln agent "*) line=${line/agent/config} ;;          # nor would it
    "kiln collector --config"*) line="${line% validate} validate" ;;     # nor this
    "kiln pause"* | "kiln resume"*) line="KILN_SERVER=unix:$TMP/sock $line" ;; # pauses need an authenticated user
    "kiln record"*) line=${line/record/record --help} ;; # not everybody may; tests/host does it
    "kiln live"* | "kiln doctor"*) line="kiln help $(cut -d" " -f2 <<<"$line")" ;; # the same, and these are about this host
    esac
    bash -o pipefail -c "$line" >"$TMP/out" 2>&1 || { echo "exit $?: $line"; cat "$TMP/out"; }
done <"$TMP/all"
