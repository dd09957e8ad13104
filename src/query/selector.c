/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass over the text with a cursor that knows its place.  The grammar, in which blanks and
 * comments (# to the end of the line) may stand anywhere:
 *
 *   selector = [type] [ "{" [ item { "," item } [","] ] "}" ]
 *   item     = name op string | string op string | string      (the last: the type, in quotes)
 *   op       = "=" | "!=" | "=~" | "!~"
 *   type     = letter, "_" or ":", then also digits, ".", "-" and "/"
 *   name     = letter or "_", then also digits and "."
 *   string   = "..." | '...' with Go's escapes, or `...` as it is
 *
 * PromQL has no dots, dashes and slashes outside of quotes; here they are no error, for
 * OpenTelemetry names have them.  Expressions are RE2's there and PCRE2's here: all of RE2 that
 * people use in selectors reads the same.
 */
#include "query/selector.h"

#include <errno.h>
#include <stdio.h>

#include "base/bytetext.h"
#include "base/mem.h"
#include "base/regex.h"

#define MEMORY_MAX                                                                                 \
    ((size_t)1 << 20) /* texts and matchers; expressions are bounded by their size                 \
                       */
#define SHOWN_MAX 40  /* bytes of the text that an error quotes */

struct cursor {
    const char *start, *at, *end;
    struct kiln_selector *selector;
    struct kiln_err *err;
};

/* ---- errors ---- */

/* "1:15": the line, and the byte in it. */
static int fail_at(struct cursor *c, const char *place, int code, const char *what,
                   struct kiln_str shown)
{
    size_t line = 1;
    const char *line_start = c->start;

    for (const char *p = c->start; p < place; p++) {
        if (*p == '\n') {
            line++;
            line_start = p + 1;
        }
    }
    if (shown.len > SHOWN_MAX) {
        shown.len = SHOWN_MAX;
        while (shown.len && ((unsigned char)shown.ptr[shown.len] & 0xc0) == 0x80)
            shown.len--;
    }
    return kiln_err_set(c->err, code, NULL, "%zu:%zu: parse error: %s%.*s", line,
                        (size_t)(place - line_start) + 1, what, KILN_STR_ARG(shown));
}

static int fail(struct cursor *c, const char *what)
{
    return fail_at(c, c->at, KILN_E_MALFORMED, what, KILN_STR_NONE);
}

/* What stands here is not what was expected. */
static int unexpected(struct cursor *c, const char *expected)
{
    char what[96];
    size_t len =
        c->at < c->end ? kiln_utf8_len((struct kiln_str){c->at, (size_t)(c->end - c->at)}) : 0;

    if (c->at == c->end)
        return fail(c, "unexpected end of input inside braces");
    snprintf(what, sizeof(what), "in label matching %s is expected, not ", expected);
    return fail_at(c, c->at, KILN_E_MALFORMED, what, (struct kiln_str){c->at, len ? len : 1});
}

static int no_memory(struct cursor *c)
{
    bool limit = c->selector->budget.limit - c->selector->budget.used < KILN_SELECTOR_BYTES_MAX;

    return fail_at(c, c->at, limit ? KILN_E_LIMIT : -ENOMEM, "the selector takes too much memory",
                   KILN_STR_NONE);
}

/* ---- words ---- */

static void skip_blanks(struct cursor *c)
{
    for (; c->at < c->end; c->at++) {
        if (*c->at == '#') {
            while (c->at < c->end && *c->at != '\n')
                c->at++;
            if (c->at == c->end)
                return;
        }
        if (*c->at != ' ' && *c->at != '\t' && *c->at != '\n' && *c->at != '\r')
            return;
    }
}

static bool take(struct cursor *c, char wanted)
{
    if (c->at == c->end || *c->at != wanted)
        return false;
    c->at++;
    return true;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static struct kiln_str take_word(struct cursor *c, const char *first, const char *later)
{
    const char *start = c->at;

    while (c->at < c->end && *c->at) {
        bool digit = *c->at >= '0' && *c->at <= '9';

        if (!is_letter(*c->at) && !(c->at > start && digit) &&
            !strchr(c->at > start ? later : first, *c->at))
            break;
        c->at++;
    }
    return (struct kiln_str){start, (size_t)(c->at - start)};
}

/* ---- strings ---- */

/* A character as UTF-8. */
static size_t put_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

static int digit_of(char c, uint32_t base)
{
    int value = kiln_hex_digit(c);

    return value < (int)base ? value : -1;
}

/* Exactly `n` digits. */
static bool take_number(struct cursor *c, uint32_t n, uint32_t base, uint32_t *ret)
{
    uint64_t value = 0;

    if ((size_t)(c->end - c->at) < n)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        int digit = digit_of(c->at[i], base);

        if (digit < 0)
            return false;
        value = value * base + (uint32_t)digit;
    }
    c->at += n;
    *ret = (uint32_t)value;
    return true;
}

/* The escape behind a backslash, which is at most as long as what it stands for. */
static bool take_escape(struct cursor *c, char quote, char *out, size_t *len)
{
    static const char names[] = "abfnrtv\\", values[] = "\a\b\f\n\r\t\v\\";
    char kind = c->at < c->end ? *c->at : 0;
    const char *simple = kind ? strchr(names, kind) : NULL;
    uint32_t code;

    if (simple || (kind && kind == quote)) {
        c->at++;
        out[(*len)++] = simple ? values[simple - names] : quote;
        return true;
    }
    if (kind >= '0' && kind <= '7') {
        if (!take_number(c, 3, 8, &code) || code > 255)
            return false;
        out[(*len)++] = (char)code;
        return true;
    }
    if (kind != 'x' && kind != 'u' && kind != 'U')
        return false;
    c->at++;
    if (!take_number(c, kind == 'x' ? 2 : kind == 'u' ? 4 : 8, 16, &code))
        return false;
    if (kind == 'x') {
        out[(*len)++] = (char)code;
        return true;
    }
    if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return false;
    *len += put_utf8(out + *len, code);
    return true;
}

/* Where a string ends: the closing quote; NULL without one. */
static const char *closing(const struct cursor *c, char quote)
{
    for (const char *p = c->at + 1; p < c->end; p++) {
        if (*p == quote)
            return p;
        if (quote != '`' && *p == '\n')
            return NULL;
        if (quote != '`' && *p == '\\')
            p++;
    }
    return NULL;
}

/* The string that starts here, in the arena. */
static int take_string(struct cursor *c, struct kiln_str *ret)
{
    char quote = *c->at;
    const char *close = closing(c, quote), *escape;
    char *out;
    size_t len = 0;

    if (!close)
        return fail(c, "unterminated quoted string");
    out = kiln_arena_alloc(&c->selector->arena, (size_t)(close - c->at));
    if (!out)
        return no_memory(c);
    c->at++;
    while (c->at < close) {
        if (*c->at != '\\' || quote == '`') {
            out[len++] = *c->at++;
            continue;
        }
        escape = c->at++;
        if (!take_escape(c, quote, out, &len) || c->at > close) {
            c->at = escape;
            return fail(c, "unknown escape sequence in a string");
        }
    }
    c->at++;
    *ret = (struct kiln_str){out, len};
    return 0;
}

static bool at_string(const struct cursor *c)
{
    return c->at < c->end && (*c->at == '"' || *c->at == '\'' || *c->at == '`');
}

/* ---- matchers ---- */

static bool take_op(struct cursor *c, enum kiln_match_op *ret)
{
    bool negated = c->at < c->end && *c->at == '!';

    if (negated ? c->end - c->at < 2 || (c->at[1] != '=' && c->at[1] != '~') : !take(c, '='))
        return false;
    if (!negated) {
        *ret = take(c, '~') ? KILN_MATCH_RE : KILN_MATCH_EQ;
        return true;
    }
    *ret = c->at[1] == '~' ? KILN_MATCH_NRE : KILN_MATCH_NE;
    c->at += 2;
    return true;
}

static int compile(struct cursor *c, const char *place, struct kiln_matcher *m)
{
    struct kiln_err why = {0};
    int r;

    if (m->op != KILN_MATCH_RE && m->op != KILN_MATCH_NRE)
        return 0;
    r = kiln_regex_new(m->value, KILN_REGEX_WHOLE | KILN_REGEX_RE2 | KILN_REGEX_GIVES_UP, &m->regex,
                       &why);
    if (r < 0)
        return fail_at(c, place, r, why.text, KILN_STR_NONE);
    return 0;
}

static int set_type(struct cursor *c, const char *place, struct kiln_str type)
{
    struct kiln_str copy;

    if (c->selector->type.len)
        return fail_at(c, place, KILN_E_MALFORMED, "the type is said twice: ", type);
    copy = kiln_arena_copy(&c->selector->arena, type);
    if (!copy.ptr)
        return no_memory(c);
    c->selector->type = copy;
    return 0;
}

static int add_matcher(struct cursor *c, const char *place, const struct kiln_matcher *m)
{
    struct kiln_selector *s = c->selector;
    uint32_t cap = s->cap;
    int r;

    if (s->n_matchers == KILN_SELECTOR_MATCHERS_MAX)
        return fail_at(c, place, KILN_E_LIMIT, "more matchers than are taken", KILN_STR_NONE);
    r = kiln_grow(&s->budget, (void **)&s->matchers, &cap, s->n_matchers + 1, sizeof(*m),
                  KILN_SELECTOR_MATCHERS_MAX);
    if (r < 0)
        return no_memory(c);
    s->cap = cap;
    s->matchers[s->n_matchers] = *m;
    r = compile(c, place, &s->matchers[s->n_matchers]);
    if (r == 0)
        s->n_matchers++;
    return r;
}

/* What stands before the operator; a type in quotes has none. */
static int take_name(struct cursor *c, struct kiln_str *ret)
{
    struct kiln_str word;

    if (at_string(c))
        return take_string(c, ret);
    word = take_word(c, "", ".");
    if (word.len == 0)
        return unexpected(c, "a name or \"}\"");
    *ret = kiln_arena_copy(&c->selector->arena, word);
    return ret->ptr ? 0 : no_memory(c);
}

static int take_item(struct cursor *c)
{
    const char *place = c->at;
    bool quoted = at_string(c);
    struct kiln_matcher m = {0};
    int r = take_name(c, &m.name);

    if (r < 0)
        return r;
    skip_blanks(c);
    if (quoted && c->at < c->end && (*c->at == ',' || *c->at == '}'))
        return m.name.len ? set_type(c, place, m.name) : fail(c, "the type is empty");
    if (m.name.len == 0)
        return fail_at(c, place, KILN_E_MALFORMED, "the name of a label is empty", KILN_STR_NONE);
    if (!take_op(c, &m.op))
        return unexpected(c, "=, !=, =~ or !~");
    skip_blanks(c);
    if (!at_string(c))
        return unexpected(c, "a string");
    r = take_string(c, &m.value);
    return r < 0 ? r : add_matcher(c, place, &m);
}

static int take_braces(struct cursor *c)
{
    int r;

    for (;;) {
        skip_blanks(c);
        if (take(c, '}'))
            return 0;
        r = take_item(c);
        if (r < 0)
            return r;
        skip_blanks(c);
        if (!take(c, ',') && (c->at == c->end || *c->at != '}'))
            return unexpected(c, "\",\" or \"}\"");
    }
}

static int parse(struct cursor *c)
{
    const char *place;
    struct kiln_str type;
    int r = 0;

    skip_blanks(c);
    place = c->at;
    type = take_word(c, ":", ":.-/");
    if (type.len)
        r = set_type(c, place, type);
    skip_blanks(c);
    if (r == 0 && take(c, '{'))
        r = take_braces(c);
    skip_blanks(c);
    if (r == 0 && c->at < c->end)
        r = fail_at(c, c->at, KILN_E_MALFORMED,
                    "unexpected text: ", (struct kiln_str){c->at, (size_t)(c->end - c->at)});
    return r;
}

int kiln_selector_add(struct kiln_selector *selector, struct kiln_str text, struct kiln_err *err)
{
    const char *start = text.ptr ? text.ptr : "";
    struct cursor c = {start, start, start + text.len, selector, err};

    if (!selector->arena.budget) {
        selector->budget.limit = MEMORY_MAX;
        kiln_arena_init(&selector->arena, &selector->budget);
    }
    if (text.len > KILN_SELECTOR_BYTES_MAX)
        return kiln_err_set(err, KILN_E_LIMIT, NULL, "the selector has more than %d bytes",
                            KILN_SELECTOR_BYTES_MAX);
    return parse(&c);
}

const struct kiln_matcher *kiln_selector_gave_up(const struct kiln_selector *selector)
{
    for (uint32_t i = 0; i < selector->n_matchers; i++) {
        if (selector->matchers[i].regex && kiln_regex_gave_up(selector->matchers[i].regex))
            return &selector->matchers[i];
    }
    return NULL;
}

void kiln_selector_done(struct kiln_selector *selector)
{
    for (uint32_t i = 0; i < selector->n_matchers; i++)
        kiln_regex_free(selector->matchers[i].regex);
    kiln_array_free(&selector->budget, (void **)&selector->matchers, &selector->cap,
                    sizeof(*selector->matchers));
    if (selector->arena.budget)
        kiln_arena_done(&selector->arena);
    *selector = (struct kiln_selector){0};
}

void kiln_selector_quote(struct kiln_str text, struct kiln_buf *out)
{
    kiln_buf_putc(out, '"');
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];

        if (c == '"' || c == '\\')
            kiln_buf_printf(out, "\\%c", c);
        else if (c < ' ')
            kiln_buf_printf(out, "\\x%02x", c);
        else
            kiln_buf_putc(out, (char)c);
    }
    kiln_buf_putc(out, '"');
}
