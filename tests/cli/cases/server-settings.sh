# Where settings of a server come from, and what is said of wrong ones.
unset "${!KILN_@}" "${!OTEL_@}" STATE_DIRECTORY
export XDG_DATA_HOME=/data
cat >"$TMP/kiln.yaml" <<'END'
server:
  listen: 127.0.0.1:1
  otlp_grpc: 127.0.0.1:2
  otlp_http: off
  memory_limit: 512MiB
  tls: {cert_file: "${env:CERT:-/c's.pem}", key_file: /k.pem}
store: {data_dir: /from-file, retention: 2d12h, rules: [{service: web, retention: 1d}]}
scrape: [{job_name: x, static_configs: [{targets: [a:1]}]}]
redaction: [{match: name, regex: x, action: hash}]
watch: {anything: goes}
agent: {frequency: 97, only: {comm: [a, b]}}
END
echo "- file"
kiln config --config "$TMP/kiln.yaml"
echo "- variables over the file, flags over variables"
KILN_CONFIG=$TMP/kiln.yaml KILN_LISTEN=127.0.0.1:3 KILN_OTLP_GRPC=127.0.0.1:4 KILN_MULTITENANT=true \
    kiln config --listen 127.0.0.1:5 --retention 30d --retention-size 2G
echo "- what it prints can be read again"
values() { sed '/^#/d; s/ *#.*//' "$1"; }
kiln config --config "$TMP/kiln.yaml" >"$TMP/once"
kiln config --config "$TMP/once" >"$TMP/twice" && diff <(values "$TMP/once") <(values "$TMP/twice")
echo "- where a service keeps its profiles"
STATE_DIRECTORY=/state/kiln:/other kiln config | grep data_dir
echo "- as JSON"
KILN_LISTEN=127.0.0.1:3 kiln config --json --config "$TMP/kiln.yaml" --query-timeout 5s --memory-limit 256M
wrong() { printf '%s\n' "$1" >"$TMP/wrong.yaml"; kiln config --config "$TMP/wrong.yaml" 2>&1; echo "exit $?"; }
echo "- wrong files"
wrong 'sever: {}'
wrong 'server: {listn: x}'
wrong 'server: {memory_limit: lots}'
wrong 'store: {rules: [{service: web}]}'
wrong 'query: {tenants: [{timeout: 5s}]}'
wrong 'query: {tenants: [{tenant: shop, time: 5s}]}'
wrong 'scrape: [{job_name: x, static_configs: [{targets: [a], label: {}}]}]'
wrong 'server: [1'
wrong 'redaction: [{match: what}]'
kiln config --config "$TMP/absent.yaml" 2>&1; echo "exit $?"
echo "- tokens"
kiln config --data-dir /d --listen :4040 2>&1; echo "exit $?"
kiln config --data-dir /d --listen :4040 --tokens "$TMP/absent.yaml" 2>&1; echo "exit $?"
echo '- {name: x}' >"$TMP/tokens.yaml"
kiln config --data-dir /d --listen :4040 --tokens "$TMP/tokens.yaml" 2>&1; echo "exit $?"
kiln config --data-dir /d --listen :4040 --tokens examples/tokens.yaml --memory-limit 256M
echo "- host names"
kiln config --host-names kiln.example,kiln --host-names other | grep host_names
KILN_HOST_NAMES=server,pyroscope kiln config | grep host_names
for name in http://kiln kiln:4040 '*.example.com' 'a, b'; do kiln config --host-names "$name" 2>&1; echo "exit $?"; done
echo "- wrong words"
KILN_RETENTION=soon kiln config 2>&1; echo "exit $?"
kiln config --retention soon 2>&1; echo "exit $?"
kiln config --log-level loud 2>&1; echo "exit $?"
kiln config --tls-cert x 2>&1; echo "exit $?"
kiln config --memory-limit 5M 2>&1; echo "exit $?"
kiln config --listen off --otlp-grpc off --otlp-http off --socket off 2>&1; echo "exit $?"
kiln config extra 2>&1; echo "exit $?"
kiln config --backup-dir here 2>&1; echo "exit $?"
kiln config --audit-log here 2>&1; echo "exit $?"
kiln config --anonymous-orders some 2>&1; echo "exit $?"
KILN_ANONYMOUS_ORDERS=some kiln config 2>&1; echo "exit $?"
KILN_ORDERS=some kiln config 2>&1; echo "exit $?"
kiln config --resource-per pod 2>&1; echo "exit $?"
echo "- quotas of debug files"
kiln config --multitenant --symbols-quota 8G | grep quota
kiln config --symbols-tenant-quota 1G | grep quota
