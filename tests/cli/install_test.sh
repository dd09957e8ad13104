#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What `make install` puts in place: the program runs, its pages are sound, its completions load, programs link its library.
set -euo pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

DESTDIR=$tmp cmake --install "${KILN_BUILD_DIR:-build}" --prefix /usr >/dev/null
"$tmp/usr/bin/kiln" version | grep -q '^kiln '
for page in kiln kiln-top kiln-convert kiln-server kiln-agent kiln-config kiln-run; do
    mandoc -Tlint -Werror "$tmp/usr/share/man/man1/$page.1"
done
grep -q '"spdxVersion": "SPDX-2.3"' "$tmp/usr/share/doc/kiln/kiln.spdx.json"
grep -q '^preact ' "$tmp/usr/share/doc/kiln/THIRD-PARTY-NOTICES"
bash -n "$tmp/usr/share/bash-completion/completions/kiln"
zsh -n "$tmp/usr/share/zsh/site-functions/_kiln"
"$tmp/usr/bin/kiln" config --config "$tmp/usr/share/doc/kiln/kiln.yaml" >/dev/null
library=$(dirname "$(find "$tmp/usr" -name libkiln.so -not -path "*/kiln/new/*")")
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
# What it exports is its interface, and functions in front of those of libc (and of a later one).
exported() { nm -D --defined-only "$1" | awk '{ sub(/@.*/, "", $3); print $3 }' | sort -u; }
libc=$(cc -print-file-name=libc.so.6)
[[ -z $(exported "$library/libkiln.so" | grep -v '^kiln_[^i]\|^kiln_is_enabled$\|^otel_thread_ctx_v1$\|^free_.*sized$' |
    comm -23 - <(exported "$libc")) ]]
# As other builds find it: pkg-config, and find_package() of CMake.
export PKG_CONFIG_SYSROOT_DIR=$tmp PKG_CONFIG_LIBDIR=$library/pkgconfig
read -ra flags <<<"$(pkg-config --cflags --libs kiln)"
cc -o "$tmp/by-pkg-config" "$tmp/program.c" "${flags[@]}" -Wl,-rpath,"$library"
"$tmp/by-pkg-config"
read -ra flags <<<"$(pkg-config --cflags --libs kiln-static)"
cc -o "$tmp/static" "$tmp/program.c" "${flags[@]}"
"$tmp/static"
[[ -z $(readelf -d "$tmp/static" | grep libkiln) ]]
cat >"$tmp/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(program LANGUAGES C)
find_package(kiln $(tools/version) REQUIRED)
add_executable(program program.c)
target_link_libraries(program PRIVATE kiln::kiln)
add_executable(program_static program.c)
target_link_libraries(program_static PRIVATE kiln::static)
END
cmake -S "$tmp" -B "$tmp/build" -DCMAKE_PREFIX_PATH="$tmp/usr" >/dev/null
cmake --build "$tmp/build" >/dev/null
"$tmp/build/program" && "$tmp/build/program_static"
# The program that was installed finds the library that was.
(cd "$tmp" && env -u LD_PRELOAD "$tmp/usr/bin/kiln" run --show -- ls) | grep -q "^LD_PRELOAD='$library/libkiln.so.0'"
[[ $(grep -hc '^ExecStart=/usr/bin/kiln ' "$tmp/usr/lib/systemd/system/"kiln{,-agent}.service | sort -u) == 1 ]]
if command -v systemd-analyze >/dev/null; then
    for unit in kiln kiln-agent; do
        sed "s,^ExecStart=/usr/bin/kiln ,ExecStart=$tmp/usr/bin/kiln ," "$tmp/usr/lib/systemd/system/$unit.service" >"$tmp/$unit.service"
        systemd-analyze verify --man=no "$tmp/$unit.service"
    done
    # How much of the machine the server could reach: tenths, of which fewer are better.
    systemd-analyze security --offline=true --threshold=17 "$tmp/kiln.service" >/dev/null
fi
# Each unit has folders of its own (that of settings is read alone), and the agent's socket is in its.
folders() { sed -nE 's,^(State|Runtime|Cache|Logs)Directory=,\1 ,p' "$tmp/usr/lib/systemd/system/"*.service; }
test -n "$(folders)" && test -z "$(folders | sort | uniq -d)"
test "$(sed -nE 's,^RuntimeDirectory=,,p' "$tmp/usr/lib/systemd/system/kiln-agent.service")" = kiln-agent
grep -q '"/run/kiln-agent/agent.sock"' src/cli/agent_settings.h
