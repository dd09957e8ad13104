# Every manual page is clean mdoc.  That a page it refers to is not installed does not count.
command -v mandoc >/dev/null || { echo "mandoc is not installed"; exit 77; }
kiln help --man >"$TMP/kiln.1"
for c in $(kiln help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do kiln help --man "$c" >"$TMP/kiln-$c.1"; done
mandoc -T lint -W all "$TMP"/*.1 | grep -v 'referenced manual not found'
mandoc -T ascii "$TMP/kiln-version.1" | col -b | sed -n '1,/^EXIT/p'
