/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A string of a recording is a byte that says how it is encoded, and then
 *
 *   0 null   1 empty   2 id of a java.lang.String   3 length, Java's UTF-8
 *   4 count, UTF-16 units as integers   5 length, Latin-1
 *
 * All become well-formed UTF-8: halves of a pair are joined, what cannot be decoded is U+FFFD.
 */
#include "base/attr.h"
#include "codec/jfr_int.h"

#define REPLACEMENT 0xfffdu

uint64_t kiln_jfr_varint_long(struct kiln_jfr_in *in)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < 9; i++) {
        uint8_t byte;

        if (in->at == in->end) {
            kiln_jfr_in_fail(in, KILN_E_TRUNCATED);
            return 0;
        }
        byte = *in->at++;
        if (i == 8)
            return value | (uint64_t)byte << 56;
        value |= (uint64_t)(byte & 0x7f) << 7 * i;
        if (byte < 0x80)
            break;
    }
    return value;
}

struct kiln_jfr_text kiln_jfr_read_text(struct kiln_jfr_in *in)
{
    struct kiln_jfr_text text = {0};
    uint64_t n = 0;

    if (in->at == in->end) {
        kiln_jfr_in_fail(in, KILN_E_TRUNCATED);
        return text;
    }
    text.encoding = *in->at++;
    text.ptr = in->at;
    switch (text.encoding) {
    case KILN_JFR_NULL:
    case KILN_JFR_EMPTY:
        break;
    case KILN_JFR_REF:
        kiln_jfr_varint(in);
        break;
    case KILN_JFR_UTF8:
    case KILN_JFR_LATIN1:
        n = kiln_jfr_count(in);
        text.ptr = in->at;
        in->at += n;
        break;
    case KILN_JFR_CHARS:
        n = kiln_jfr_count(in);
        text.ptr = in->at;
        for (; n; n--)
            kiln_jfr_varint(in);
        break;
    default:
        kiln_jfr_in_fail(in, KILN_E_MALFORMED);
    }
    n = in->error ? 0 : (uint64_t)(in->at - text.ptr);
    if (n > UINT32_MAX)
        kiln_jfr_in_fail(in, KILN_E_LIMIT);
    text.len = (uint32_t)n;
    return text;
}

/* ---- to UTF-8 ---- */

/* The text being written, and the first half of a pair that waits for its second. */
struct writer {
    char *out;
    size_t len;
    uint32_t high; /* 0: none waits */
    bool full;
};

static void put_code_point(struct writer *w, uint32_t c)
{
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};

    if (w->full || n > KILN_JFR_TEXT_MAX - w->len) {
        w->full = true;
        return;
    }
    for (size_t i = n; i-- > 1; c >>= 6)
        w->out[w->len + i] = (char)(0x80 | (c & 0x3f));
    w->out[w->len] = (char)(lead[n] | c);
    w->len += n;
}

/* Takes UTF-16 units, or whole code points. */
static void put_unit(struct writer *w, uint32_t c)
{
    bool low = c >= 0xdc00 && c < 0xe000;

    if (w->high) {
        put_code_point(w, low ? 0x10000 + ((w->high - 0xd800) << 10) + (c - 0xdc00) : REPLACEMENT);
        w->high = 0;
        if (low)
            return;
    }
    if (c >= 0xd800 && c < 0xdc00)
        w->high = c;
    else
        put_code_point(w, low || c > 0x10ffff ? REPLACEMENT : c);
}

/* One character of Java's UTF-8, or of the real one.  Returns its bytes. */
static size_t decode_utf8(const uint8_t *p, size_t left, uint32_t *ret)
{
    size_t n = p[0] < 0x80   ? 1
               : p[0] < 0xc0 ? 0
               : p[0] < 0xe0 ? 2
               : p[0] < 0xf0 ? 3
               : p[0] < 0xf8 ? 4
                             : 0;
    uint32_t c = n > 1 ? p[0] & (0xffu >> (n + 1)) : p[0];

    *ret = REPLACEMENT;
    if (n == 0 || n > left)
        return 1;
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 1;
        c = c << 6 | (p[i] & 0x3f);
    }
    *ret = c;
    return n;
}

/* Copies the ASCII characters at the start of the input: most texts are nothing else. */
static void put_ascii(struct writer *w, struct kiln_jfr_in *in)
{
    size_t left = kiln_jfr_in_left(in), room = KILN_JFR_TEXT_MAX - w->len;
    size_t n = left < room ? left : room, i = 0;
    uint64_t eight;

    for (; n - i >= 8; i += 8) {
        memcpy(&eight, in->at + i, 8);
        if (eight & 0x8080808080808080u)
            break;
        memcpy(w->out + w->len + i, &eight, 8);
    }
    for (; i < n && in->at[i] < 0x80; i++)
        w->out[w->len + i] = (char)in->at[i];
    in->at += i;
    w->len += i;
    w->full = i == room && left > room;
}

size_t kiln_jfr_text_format(struct kiln_jfr_text text, char *out)
{
    struct writer w = {.out = out};
    struct kiln_jfr_in in = {0};

    if (text.len == 0)
        return 0;
    in = (struct kiln_jfr_in){text.ptr, text.ptr + text.len, 0};
    while (in.at < in.end && !w.full) {
        uint32_t c = 0;

        if (text.encoding == KILN_JFR_CHARS) {
            c = (uint32_t)kiln_jfr_varint(&in);
        } else if (*in.at < 0x80 && !w.high) {
            put_ascii(&w, &in);
            continue;
        } else if (text.encoding == KILN_JFR_UTF8) {
            in.at += decode_utf8(in.at, kiln_jfr_in_left(&in), &c);
        } else {
            c = *in.at++;
        }
        put_unit(&w, c);
    }
    if (w.high)
        put_code_point(&w, REPLACEMENT);
    return w.len;
}

/* ---- names that differ from run to run ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f');
}

/* How many characters from the start of `s` are hexadecimal, or decimal, digits. */
static size_t span(struct kiln_str s, bool (*is)(char))
{
    size_t n = 0;

    while (n < s.len && is(s.ptr[n]))
        n++;
    return n;
}

static struct kiln_str tail(struct kiln_str s, size_t from)
{
    return (struct kiln_str){s.ptr + from, s.len - from};
}

/* `#` in a pattern stands for decimal digits, `&` for hexadecimal ones, at least one of them. */
static bool fits(struct kiln_str s, const char *pattern)
{
    for (; *pattern; pattern++) {
        size_t n = *pattern == '#'   ? span(s, is_digit)
                   : *pattern == '&' ? span(s, is_hex)
                                     : s.len && s.ptr[0] == *pattern;

        if (n == 0)
            return false;
        s = tail(s, n);
    }
    return s.len == 0;
}

/* What follows $$Lambda: $21/0x0800c03000, $21.0x08, /0x08, 1234. */
static bool is_lambda_number(struct kiln_str s)
{
    static const char *const rest[] = {"/0x&", ".0x&", "/&", ".&"};
    size_t digits;
    bool dollar = s.len && s.ptr[0] == '$';

    s = tail(s, dollar);
    digits = span(s, is_digit);
    if (digits == s.len)
        return digits && !dollar;
    s = tail(s, digits);
    for (size_t i = 0; i < KILN_ARRAY_LEN(rest); i++) {
        if (fits(s, rest[i]))
            return true;
    }
    return false;
}

/* Where `needle` occurs last in `s`, but not at its start: the position after it, or 0. */
static size_t after_last(struct kiln_str s, struct kiln_str needle)
{
    char last = needle.ptr[needle.len - 1];

    while (s.len > needle.len) {
        const char *at = memrchr(s.ptr + needle.len, last, s.len - needle.len);

        if (!at)
            return 0;
        s.len = (size_t)(at - s.ptr);
        if (memcmp(at + 1 - needle.len, needle.ptr, needle.len) == 0)
            return s.len + 1;
    }
    return 0;
}

/*
 * Hidden classes, as the JDK writes them: Shop$$Lambda$21+0x0000000800c03000/1285524499, with dots
 * between packages.  Returns how much of the name stays; 0 if it is no such name.
 */
static size_t hidden_class(struct kiln_str s)
{
    size_t at = after_last(s, KILN_STR("+0x"));

    if (at == 0 || (!fits(tail(s, at), "&") && !fits(tail(s, at), "&/#")))
        return 0;
    s.len = at - strlen("+0x");
    at = after_last(s, KILN_STR("$$Lambda"));
    return at ? at : s.len;
}

/* How much of the name of a generated class stays; 0 if it is no such name. */
static size_t generated_class(struct kiln_str s)
{
    static const char *const accessors[] = {
        "jdk/internal/reflect/GeneratedMethodAccessor#",
        "jdk/internal/reflect/GeneratedConstructorAccessor#",
        "sun/reflect/GeneratedMethodAccessor#",
        "sun/reflect/GeneratedConstructorAccessor#",
    };
    size_t at;

    if (kiln_str_contains(s, KILN_STR("$$"))) {
        at = after_last(s, KILN_STR("$$Lambda"));
        if (at && is_lambda_number(tail(s, at)))
            return at;
        return after_last(s, KILN_STR("$$EnhancerBySpringCGLIB$$"));
    }
    for (size_t i = 0; i < KILN_ARRAY_LEN(accessors); i++) {
        if (fits(s, accessors[i]))
            return strlen(accessors[i]) - 1;
    }
    return 0;
}

/* The name of a library that is unpacked under a new name in every run; empty if it is no such. */
static struct kiln_str unpacked_library(struct kiln_str s)
{
    static const struct {
        const char *pattern;
        const char *plain;
    } libraries[] = {
        {"libzstd-jni-#.#.#-#.so", "libzstd-jni-_.so"},
        {"libamazonCorrettoCryptoProvider&.so", "libamazonCorrettoCryptoProvider_.so"},
        {"amazonCorrettoCryptoProviderNativeLibraries.&/libcrypto.so",
         "libamazonCorrettoCryptoProvider_.so"},
        {"amazonCorrettoCryptoProviderNativeLibraries.&/libamazonCorrettoCryptoProvider.so",
         "libamazonCorrettoCryptoProvider_.so"},
        {"libasyncProfiler-linux-x#-&.so", "libasyncProfiler-_.so"},
        {"libasyncProfiler-linux-arm#-&.so", "libasyncProfiler-_.so"},
        {"libasyncProfiler-linux-musl-x#-&.so", "libasyncProfiler-_.so"},
        {"libasyncProfiler-macos-&.so", "libasyncProfiler-_.so"},
    };
    static const struct kiln_str deleted = {" (deleted)", 10};

    if (kiln_str_ends(s, deleted))
        s.len -= deleted.len;
    if (kiln_str_starts(s, KILN_STR("./tmp/")))
        s = tail(s, 6);
    else if (kiln_str_starts(s, KILN_STR("/tmp/")))
        s = tail(s, 5);
    for (size_t i = 0; i < KILN_ARRAY_LEN(libraries); i++) {
        if (fits(s, libraries[i].pattern))
            return kiln_str_of(libraries[i].plain);
    }
    return KILN_STR_NONE;
}

size_t kiln_jfr_plain_name(char *name, size_t len)
{
    struct kiln_str s = {name, len};
    size_t hidden = hidden_class(s);
    size_t kept = hidden ? hidden : generated_class(s);
    struct kiln_str library;

    if (kept == len)
        return len;
    if (kept) {
        name[kept] = '_';
        for (size_t i = 0; i < kept; i++)
            name[i] = name[i] == '.' ? '/' : name[i];
        return kept + 1;
    }
    library = unpacked_library(s);
    if (library.len == 0)
        return len;
    memcpy(name, library.ptr, library.len);
    return library.len;
}
