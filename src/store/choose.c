/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A type becomes a regular expression over five-part ids; the rest are matchers as they stand.
 */
#include "store/choose.h"

#include <errno.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/regex.h"
#include "base/when.h"

#define TEXT_MAX 4096u

void kiln_choice_init(struct kiln_choice *choice)
{
    *choice = (struct kiln_choice){.selection.tenant = KILN_STR("anonymous")};
}

void kiln_choice_done(struct kiln_choice *choice)
{
    for (uint32_t i = 0; i < choice->selection.n_matchers; i++)
        kiln_regex_free(choice->matchers[i].regex);
    for (uint32_t i = 0; i < choice->n_texts; i++)
        kiln_free(choice->texts[i]);
    kiln_choice_init(choice);
}

/* ---- texts ---- */

static int keep_text(struct kiln_choice *choice, struct kiln_str text, struct kiln_str *ret,
                     struct kiln_err *err)
{
    char *copy;

    if (choice->n_texts >= KILN_ARRAY_LEN(choice->texts) || text.len > TEXT_MAX)
        return kiln_err_set(err, KILN_E_LIMIT, NULL, "the selection has too many conditions");
    copy = kiln_malloc(text.len + 1);
    if (!copy)
        return kiln_err_set(err, -ENOMEM, NULL, "out of memory");
    if (text.len)
        memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    choice->texts[choice->n_texts++] = copy;
    *ret = (struct kiln_str){copy, text.len};
    return 0;
}

/* ---- matchers ---- */

static int add_matcher(struct kiln_choice *choice, struct kiln_matcher matcher,
                       struct kiln_err *err)
{
    int r = 0;

    if (choice->selection.n_matchers >= KILN_CHOICE_MAX)
        return kiln_err_set(err, KILN_E_LIMIT, NULL, "the selection has too many conditions");
    if (matcher.op == KILN_MATCH_RE || matcher.op == KILN_MATCH_NRE)
        r = kiln_regex_new(matcher.value, KILN_REGEX_WHOLE, &matcher.regex, err);
    if (r == 0)
        choice->matchers[choice->selection.n_matchers++] = matcher;
    return r;
}

static int add_service(struct kiln_choice *choice, struct kiln_str value, struct kiln_err *err)
{
    struct kiln_matcher matcher = {.name = KILN_STR("service.name")};
    int r = keep_text(choice, value, &matcher.value, err);

    return r < 0 ? r : add_matcher(choice, matcher, err);
}

/* Bytes that mean themselves; \Q...\E cannot hold an \E. */
static void put_quoted(struct kiln_buf *out, struct kiln_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (strchr("\\^$.|?*+()[]{}", text.ptr[i]) && text.ptr[i])
            kiln_buf_putc(out, '\\');
        kiln_buf_putc(out, text.ptr[i]);
    }
}

/* How many parts a type id has. */
static uint32_t parts_of(struct kiln_str type)
{
    uint32_t n = 1;

    for (size_t i = 0; i < type.len; i++)
        n += type.ptr[i] == ':';
    return n;
}

/* One or two parts are the second and third of an id; three are its first, five all of it. */
static int add_type(struct kiln_choice *choice, struct kiln_str value, struct kiln_err *err)
{
    struct kiln_matcher matcher = {.name = KILN_STR("__profile_type__"), .op = KILN_MATCH_RE};
    uint32_t n = parts_of(value);
    struct kiln_buf pattern;
    int r;

    if (n == 4 || n > 5 || value.len == 0)
        return kiln_err_set(err, KILN_E_MALFORMED, NULL,
                            "\"%.*s\" is no profile type (say cpu, or "
                            "process_cpu:cpu:nanoseconds)",
                            (int)(value.len < 60 ? value.len : 60), value.ptr ? value.ptr : "");
    kiln_buf_init(&pattern, 4 * TEXT_MAX);
    kiln_buf_puts(&pattern, n <= 2 ? "[^:]*:" : "");
    put_quoted(&pattern, value);
    kiln_buf_puts(&pattern, n < 5 ? ":.*" : "");
    r = pattern.error ? kiln_err_set(err, pattern.error, NULL, "the type is too long")
                      : keep_text(choice, kiln_buf_str(&pattern), &matcher.value, err);
    kiln_buf_done(&pattern);
    return r < 0 ? r : add_matcher(choice, matcher, err);
}

/* name=value, name!=value, name=~REGEX, name!~REGEX */
static int add_match(struct kiln_choice *choice, struct kiln_str value, struct kiln_err *err)
{
    struct kiln_matcher matcher = {0};
    struct kiln_str kept;
    size_t at = 0;
    bool differs;
    int r = keep_text(choice, value, &kept, err);

    if (r < 0)
        return r;
    while (at < kept.len && kept.ptr[at] != '=' && kept.ptr[at] != '!')
        at++;
    differs = at < kept.len && kept.ptr[at] == '!';
    if (at == 0 || at + differs >= kept.len ||
        (differs && kept.ptr[at + 1] != '=' && kept.ptr[at + 1] != '~'))
        return kiln_err_set(err, KILN_E_MALFORMED, NULL,
                            "\"%.60s\" is no condition (say host.name=web-1, !=, =~ or !~)",
                            kept.ptr);
    matcher.name = (struct kiln_str){kept.ptr, at};
    matcher.op =
        differs ? (kept.ptr[at + 1] == '~' ? KILN_MATCH_NRE : KILN_MATCH_NE) : KILN_MATCH_EQ;
    at += differs ? 2 : 1;
    if (!differs && at < kept.len && kept.ptr[at] == '~') {
        matcher.op = KILN_MATCH_RE;
        at++;
    }
    matcher.value = (struct kiln_str){kept.ptr + at, kept.len - at};
    return add_matcher(choice, matcher, err);
}

/* ---- times ---- */

static int set_time(struct kiln_str value, uint64_t *to, struct kiln_err *err)
{
    int r = kiln_when_parse(value, kiln_clock_unix_ns(), to);

    if (r < 0)
        return kiln_err_set(err, r, NULL,
                            "\"%.*s\" is no time (say 2026-03-01T12:00:00Z, 1772366400, now-1h)",
                            (int)(value.len < 60 ? value.len : 60), value.ptr ? value.ptr : "");
    return 0;
}

/* ---- words ---- */

int kiln_choice_add(struct kiln_choice *choice, struct kiln_str name, struct kiln_str value,
                    struct kiln_err *err)
{
    int r;

    if (kiln_str_eq(name, KILN_STR("tenant")))
        r = keep_text(choice, value, &choice->selection.tenant, err);
    else if (kiln_str_eq(name, KILN_STR("service")))
        r = add_service(choice, value, err);
    else if (kiln_str_eq(name, KILN_STR("type")))
        r = add_type(choice, value, err);
    else if (kiln_str_eq(name, KILN_STR("match")))
        r = add_match(choice, value, err);
    else if (kiln_str_eq(name, KILN_STR("from")))
        r = set_time(value, &choice->selection.start_ns, err);
    else if (kiln_str_eq(name, KILN_STR("to")))
        r = set_time(value, &choice->selection.end_ns, err);
    else
        return 0;
    return r < 0 ? r : 1;
}

int kiln_choice_end(struct kiln_choice *choice, struct kiln_err *err)
{
    struct kiln_selection *s = &choice->selection;

    s->matchers = choice->matchers;
    if (s->end_ns == 0 && s->start_ns)
        s->end_ns = UINT64_MAX;
    if (s->end_ns < s->start_ns)
        return kiln_err_set(err, -EINVAL, NULL, "the selection ends before it begins");
    return 0;
}
