# A store of format 1, as it was written: every later Kiln reads it, and the same from it.
kiln store check --data-dir examples/store
kiln store stats --data-dir examples/store
kiln store stats --data-dir examples/store --json | grep -v head_bytes | head -22
kiln store export --data-dir examples/store --type cpu --from 2026-03-01T12:06:00Z --format tree | head -20
kiln store export --data-dir examples/store --match host.name=web-2 --format tree
rm -rf "$TMP/restored"
kiln store restore examples/store --data-dir "$TMP/restored"
kiln store compact --data-dir "$TMP/restored"
kiln store delete --data-dir "$TMP/restored" checkout
