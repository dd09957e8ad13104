/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any line as a name of the linker, and as a text to shorten.  A short form is bounded, leaves
 * things out but adds none, and its brackets close where those of the full one do.
 */
#include "fuzz.h"
#include "symbol/demangle.h"

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Angle brackets are also operators, and are not looked at. */
static bool is_balanced(struct kiln_str s)
{
    static const char opens[] = "([{", closes[] = ")]}";
    char open[KILN_DEMANGLED_MAX];
    size_t n = 0;

    for (size_t i = 0; i < s.len; i++) {
        const char *o = s.ptr[i] ? strchr(opens, s.ptr[i]) : NULL;
        const char *c = s.ptr[i] ? strchr(closes, s.ptr[i]) : NULL;

        if (o)
            open[n++] = closes[o - opens];
        if (c && (n == 0 || open[--n] != *c))
            return false;
    }
    return n == 0;
}

/* All letters of the short form, in its order. */
static bool has_letters(struct kiln_str full, struct kiln_str shown)
{
    size_t at = 0;

    for (size_t i = 0; i < shown.len; i++) {
        if (!is_word(shown.ptr[i]))
            continue;
        while (at < full.len && full.ptr[at] != shown.ptr[i])
            at++;
        if (at++ >= full.len)
            return false;
    }
    return true;
}

static void check_name(struct kiln_demangler *d, struct kiln_str name)
{
    char text[KILN_DEMANGLED_MAX];
    struct kiln_str full = kiln_demangle_full(d, name), shown;

    if (name.len > KILN_DEMANGLED_MAX)
        return;
    FUZZ_CHECK(full.len <= KILN_DEMANGLED_MAX);
    if (full.len)
        memcpy(text, full.ptr, full.len);
    full.ptr = text;
    shown = kiln_demangle(d, name);
    FUZZ_CHECK(shown.len <= KILN_DEMANGLED_MAX && (shown.len > 0 || name.len == 0));
    if (full.len == KILN_DEMANGLED_MAX || kiln_str_starts(name, shown))
        return;
    FUZZ_CHECK(has_letters(full, shown));
    FUZZ_CHECK(is_balanced(shown) || !is_balanced(full));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_str rest = {(const char *)data, size};
    struct kiln_demangler *d = NULL;
    char to[KILN_DEMANGLED_MAX];

    FUZZ_CHECK(kiln_demangler_new(&d) == 0);
    while (d && rest.ptr) {
        struct kiln_str line = kiln_str_cut(&rest, '\n');

        check_name(d, line);
        FUZZ_CHECK(kiln_name_shorten(line, true, to, sizeof(to)) <= sizeof(to));
        FUZZ_CHECK(kiln_name_shorten(line, false, to, sizeof(to)) <= sizeof(to));
    }
    kiln_demangler_free(d);
    return 0;
}
