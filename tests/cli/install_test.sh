#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What `make install` puts in place: the program runs, its pages are sound, its completions load, programs link its library.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

DESTDIR=$tmp cmake --install "${KILN_BUILD_DIR:-build}" --prefix /usr >/dev/null
"$tmp/usr/bin/kiln" version | grep -q '^kiln '
for page in kiln kiln-top kiln-convert kiln-server kiln-agent kiln-config; do
    mandoc -Tlint -Werror "$tmp/usr/share/man/man1/$page.1"
done
bash -n "$tmp/usr/share/bash-completion/completions/kiln"
zsh -n "$tmp/usr/share/zsh/site-functions/_kiln"
"$tmp/usr/bin/kiln" config --config "$tmp/usr/share/doc/kiln/kiln.yaml" >/dev/null
library=$(dirname "$(find "$tmp/usr" -name libkiln.so)")
cat >"$tmp/program.c" <<'END'
#include <kiln.h>
int main(void)
{
    struct kiln_span span;
    kiln_span_enter(&span, (const uint8_t[16]){1}, (const uint8_t[8]){2}, 0);
    kiln_span_leave(&span);
    return kiln_context_publish((struct kiln_attribute[]){{"service.name", "shop"}}, 1);
}
END
cc -I"$tmp/usr/include" -o "$tmp/shared" "$tmp/program.c" -L"$library" -lkiln -Wl,-rpath,"$library"
"$tmp/shared"
[[ $(nm -D --defined-only "$library/libkiln.so" | grep -cv ' kiln_\| otel_thread_ctx_v1$') == 0 ]]
if command -v systemd-analyze >/dev/null; then
    for unit in kiln kiln-agent; do
        sed "s,^ExecStart=kiln,ExecStart=$tmp/usr/bin/kiln," "$tmp/usr/lib/systemd/system/$unit.service" >"$tmp/$unit.service"
        systemd-analyze verify --man=no "$tmp/$unit.service"
    done
fi
