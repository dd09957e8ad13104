/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that make a value.  What is no text has no prefix or case: that is false, or it stays
 * what it is. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/bytetext.h"
#include "base/clock.h"
#include "base/sat.h"
#include "base/sha256.h"
#include "pipeline/ottl/ottl_int.h"

static int flag(struct kiln_ottl_value *ret, bool is)
{
    *ret = (struct kiln_ottl_value){.kind = KILN_OTTL_BOOL, .flag = is};
    return 0;
}

/* Makes a text of what was written, and frees it. */
static int made(struct kiln_ottl_run *run, struct kiln_buf *out, struct kiln_ottl_value *ret)
{
    int r = out->error;

    if (r < 0)
        kiln_ottl_fail(run, r, "%s", kiln_err_text(r));
    else
        r = kiln_ottl_make(run, kiln_buf_str(out), ret);
    kiln_buf_done(out);
    return r;
}

/* A text that says what a value is; of nil there is none. */
static int text_of(struct kiln_ottl_run *run, struct kiln_ottl_value *value)
{
    struct kiln_buf out;

    if (value->kind == KILN_OTTL_TEXT || value->kind == KILN_OTTL_NIL)
        return 0;
    kiln_buf_init(&out, KILN_OTTL_MADE_MAX);
    kiln_ottl_put_text(&out, run->item->batch, value);
    return made(run, &out, value);
}

/* ---- questions ---- */

static int is_match(struct kiln_ottl_run *run, const struct kiln_ottl_node *call,
                    struct kiln_ottl_value *ret)
{
    struct kiln_ottl_value value;
    int r = kiln_ottl_eval(run, call->args[0], &value);

    if (r == 0)
        r = text_of(run, &value);
    if (r < 0)
        return r;
    if (value.kind == KILN_OTTL_NIL)
        return flag(ret, false);
    r = kiln_regex_matches(call->args[1]->pattern, value.text);
    if (r < 0)
        return kiln_ottl_fail(run, r, "IsMatch: %s", kiln_err_text(r));
    return flag(ret, r > 0);
}

/* IsString and its like, by name. */
static int is_kind(struct kiln_ottl_run *run, const struct kiln_ottl_node *call,
                   struct kiln_ottl_value *ret)
{
    static const char *const names[KILN_OTTL_KINDS] = {
        [KILN_OTTL_TEXT] = "IsString",   [KILN_OTTL_INT] = "IsInt",
        [KILN_OTTL_DOUBLE] = "IsDouble", [KILN_OTTL_BOOL] = "IsBool",
        [KILN_OTTL_MAP] = "IsMap",       [KILN_OTTL_LIST] = "IsList",
        [KILN_OTTL_SET] = "IsMap",       [KILN_OTTL_NUMBERS] = "IsList",
    };
    struct kiln_ottl_value value;
    int r = kiln_ottl_eval(run, call->args[0], &value);

    if (r < 0)
        return r;
    return flag(ret, names[value.kind] && strcmp(names[value.kind], call->function->name) == 0);
}

static int has_end(struct kiln_ottl_run *run, const struct kiln_ottl_node *call,
                   struct kiln_ottl_value *ret)
{
    bool prefix = strcmp(call->function->name, "HasPrefix") == 0;
    struct kiln_str end = call->args[1]->value.text;
    struct kiln_ottl_value value;
    int r = kiln_ottl_eval(run, call->args[0], &value);

    if (r < 0)
        return r;
    return flag(ret, value.kind == KILN_OTTL_TEXT && (prefix ? kiln_str_starts(value.text, end)
                                                             : kiln_str_ends(value.text, end)));
}

static int length(struct kiln_ottl_run *run, const struct kiln_ottl_node *call,
                  struct kiln_ottl_value *ret)
{
    struct kiln_ottl_value value;
    int r = kiln_ottl_eval(run, call->args[0], &value);

    if (r < 0)
        return r;
    *ret = (struct kiln_ottl_value){.kind = KILN_OTTL_INT};
    if (value.kind == KILN_OTTL_TEXT || value.kind == KILN_OTTL_BYTES)
        ret->i = (int64_t)value.text.len;
    else if (value.kind == KILN_OTTL_LIST || value.kind == KILN_OTTL_MAP)
        ret->i = value.nested.n;
    else if (value.kind == KILN_OTTL_SET)
        ret->i = run->item->batch->dict.sets[value.set].n;
    else if (value.kind == KILN_OTTL_NUMBERS)
        ret->i = value.numbers.n;
    else if (value.kind == KILN_OTTL_SAMPLES)
        ret->i = value.i;
    else
        return kiln_ottl_fail(run, KILN_E_MALFORMED, "Len: this has no length");
    return 0;
}

/* ---- texts ---- */

static int concat(struct kiln_ottl_run *run, const struct kiln_ottl_node *call,
                  struct kiln_ottl_value *ret)
{
    const struct kiln_ottl_node *items = call->args[0];
    struct kiln_ottl_value value;
    struct kiln_buf out;

    kiln_buf_init(&out, KILN_OTTL_MADE_MAX);
    for (uint32_t i = 0; i < items->n_args; i++) {
        int r = kiln_ottl_eval(run, items->args[i], &value);

        if (r < 0) {
            kiln_buf_done(&out);
            return r;
        }
        if (i)
            kiln_buf_add_str(&out, call->args[1]->value.text);
        if (value.kind == KILN_OTTL_NIL)
            kiln_buf_puts(&out, "<nil>"); /* as the Collector has it */
        kiln_ottl_put_text(&out, run->item->batch, &value);
    }
    return made(run, &out, ret);
}

static int sha256(struct kiln_ottl_run *run, const struct kiln_ottl_node *call,
                  struct kiln_ottl_value *ret)
{
    uint8_t digest[KILN_SHA256_BYTES];
    struct kiln_str text;
    struct kiln_buf out;
    int r = kiln_ottl_eval_text(run, call->args[0], &text);

    if (r < 0)
        return r;
    kiln_sha256(text, digest);
    kiln_buf_init(&out, KILN_OTTL_MADE_MAX);
    kiln_buf_add_hex(&out, digest, sizeof(digest));
    return made(run, &out, ret);
}

/* lower, upper, snake (a_b) and camel (AB); words begin at capitals and behind _, - and blanks. */
static void put_case(struct kiln_buf *out, struct kiln_str text, char to)
{
    bool begins = true;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool between = strchr("_- .", c) && (to == 's' || to == 'c');

        if (to == 's' && isupper((unsigned char)c) && !begins)
            kiln_buf_putc(out, '_');
        if (to == 's' && between && !begins)
            kiln_buf_putc(out, '_');
        if (!between)
            kiln_buf_putc(out, (char)(to == 'u' || (to == 'c' && begins) ? toupper((unsigned char)c)
                                      : to == 'c'                        ? c
                                                  : tolower((unsigned char)c)));
        begins = between;
    }
}

static int change_case(struct kiln_ottl_run *run, const struct kiln_ottl_node *call, char to,
                       struct kiln_ottl_value *ret)
{
    struct kiln_ottl_value value = {0};
    struct kiln_buf out;
    int r = kiln_ottl_eval(run, call->args[0], &value);

    if (r < 0 || value.kind != KILN_OTTL_TEXT) {
        *ret = value;
        return r;
    }
    kiln_buf_init(&out, KILN_OTTL_MADE_MAX);
    put_case(&out, value.text, to);
    return made(run, &out, ret);
}

static int convert_case(struct kiln_ottl_run *run, const struct kiln_ottl_node *call,
                        struct kiln_ottl_value *ret)
{
    static const char *const names[] = {"lower", "upper", "snake", "camel"};

    for (size_t i = 0; i < KILN_ARRAY_LEN(names); i++) {
        if (kiln_str_eq(call->args[1]->value.text, kiln_str_of(names[i])))
            return change_case(run, call, names[i][0], ret);
    }
    return kiln_ottl_fail(run, KILN_E_MALFORMED, "ConvertCase: lower, upper, snake or camel");
}

static int to_lower(struct kiln_ottl_run *run, const struct kiln_ottl_node *call,
                    struct kiln_ottl_value *ret)
{
    return change_case(run, call, 'l', ret);
}

static int to_upper(struct kiln_ottl_run *run, const struct kiln_ottl_node *call,
                    struct kiln_ottl_value *ret)
{
    return change_case(run, call, 'u', ret);
}

static int substring(struct kiln_ottl_run *run, const struct kiln_ottl_node *call,
                     struct kiln_ottl_value *ret)
{
    uint64_t start = (uint64_t)call->args[1]->value.i, len = (uint64_t)call->args[2]->value.i;
    struct kiln_str text;
    int r = kiln_ottl_eval_text(run, call->args[0], &text);

    if (r < 0)
        return r;
    if (start > text.len || len > text.len - start)
        return kiln_ottl_fail(run, KILN_E_RANGE, "Substring: the text is shorter");
    *ret = (struct kiln_ottl_value){.kind = KILN_OTTL_TEXT, .text = {text.ptr + start, len}};
    return 0;
}

/* ---- types ---- */

static int to_text(struct kiln_ottl_run *run, const struct kiln_ottl_node *call,
                   struct kiln_ottl_value *ret)
{
    int r = kiln_ottl_eval(run, call->args[0], ret);

    return r < 0 ? r : text_of(run, ret);
}

/* The number that a value is or says; false: none. */
static bool number_of(const struct kiln_ottl_value *value, double *ret)
{
    char copy[64];
    char *end;

    if (value->kind == KILN_OTTL_TEXT && value->text.len && value->text.len < sizeof(copy)) {
        memcpy(copy, value->text.ptr, value->text.len);
        copy[value->text.len] = '\0';
        *ret = strtod(copy, &end);
        return *end == '\0';
    }
    *ret = value->kind == KILN_OTTL_INT    ? (double)value->i
           : value->kind == KILN_OTTL_BOOL ? value->flag
                                           : value->d;
    return value->kind == KILN_OTTL_INT || value->kind == KILN_OTTL_BOOL ||
           value->kind == KILN_OTTL_DOUBLE;
}

/* What cannot be one is nil. */
static int to_number(struct kiln_ottl_run *run, const struct kiln_ottl_node *call,
                     struct kiln_ottl_value *ret)
{
    bool whole = strcmp(call->function->name, "Int") == 0;
    struct kiln_ottl_value value;
    double d;
    int r = kiln_ottl_eval(run, call->args[0], &value);

    *ret = (struct kiln_ottl_value){0};
    if (r < 0)
        return r;
    if (whole && (value.kind == KILN_OTTL_INT ||
                  (value.kind == KILN_OTTL_TEXT && kiln_str_parse_i64(value.text, &value.i) == 0)))
        *ret = (struct kiln_ottl_value){.kind = KILN_OTTL_INT, .i = value.i};
    else if (number_of(&value, &d) && !whole)
        *ret = (struct kiln_ottl_value){.kind = KILN_OTTL_DOUBLE, .d = d};
    else if (whole && value.kind != KILN_OTTL_TEXT && number_of(&value, &d) && d > -9.2e18 &&
             d < 9.2e18)
        *ret = (struct kiln_ottl_value){.kind = KILN_OTTL_INT, .i = (int64_t)d};
    return 0;
}

/* ---- times ---- */

static int now(struct kiln_ottl_run *run, const struct kiln_ottl_node *call,
               struct kiln_ottl_value *ret)
{
    (void)run;
    (void)call;
    *ret = (struct kiln_ottl_value){.kind = KILN_OTTL_MOMENT, .i = (int64_t)kiln_clock_unix_ns()};
    return 0;
}

static int eval_whole(struct kiln_ottl_run *run, const struct kiln_ottl_node *node, int64_t *ret)
{
    struct kiln_ottl_value value;
    int r = kiln_ottl_eval(run, node, &value);

    if (r == 0 && value.kind != KILN_OTTL_INT)
        return kiln_ottl_fail(run, KILN_E_MALFORMED, "a whole number is needed");
    *ret = r == 0 ? value.i : 0;
    return r;
}

/* A time of seconds, and nanoseconds where they are said. */
static int from_unix(struct kiln_ottl_run *run, const struct kiln_ottl_node *call,
                     struct kiln_ottl_value *ret)
{
    int64_t seconds, ns = 0;
    int r = eval_whole(run, call->args[0], &seconds);

    if (r == 0 && call->n_args > 1)
        r = eval_whole(run, call->args[1], &ns);
    *ret = (struct kiln_ottl_value){
        .kind = KILN_OTTL_MOMENT,
        .i = kiln_sat_add(kiln_sat_mul(seconds, (int64_t)KILN_NS_PER_S), ns),
    };
    return r;
}

/* UnixNano and its like, by name. */
static int to_unix(struct kiln_ottl_run *run, const struct kiln_ottl_node *call,
                   struct kiln_ottl_value *ret)
{
    const char *name = call->function->name + strlen("Unix");
    int64_t unit = strcmp(name, "Nano") == 0    ? 1
                   : strcmp(name, "Micro") == 0 ? 1000
                   : strcmp(name, "Milli") == 0 ? (int64_t)KILN_NS_PER_MS
                                                : (int64_t)KILN_NS_PER_S;
    struct kiln_ottl_value value;
    int r = kiln_ottl_eval(run, call->args[0], &value);

    if (r == 0 && value.kind != KILN_OTTL_MOMENT)
        return kiln_ottl_fail(run, KILN_E_MALFORMED, "a time is needed, this is something else");
    *ret = (struct kiln_ottl_value){.kind = KILN_OTTL_INT, .i = r == 0 ? value.i / unit : 0};
    return r;
}

/* Sixteen bytes, or their digits. */
static int profile_id(struct kiln_ottl_run *run, const struct kiln_ottl_node *call,
                      struct kiln_ottl_value *ret)
{
    uint8_t id[16];
    int r = kiln_ottl_eval(run, call->args[0], ret);

    if (r < 0 || (ret->kind == KILN_OTTL_BYTES && ret->text.len == sizeof(id)))
        return r;
    if (ret->kind != KILN_OTTL_TEXT || ret->text.len != 2 * sizeof(id) ||
        kiln_hex_decode(ret->text, id, sizeof(id)) < 0)
        return kiln_ottl_fail(run, KILN_E_MALFORMED, "ProfileID: 16 bytes, or 32 digits");
    r = kiln_ottl_make(run, (struct kiln_str){(const char *)id, sizeof(id)}, ret);
    ret->kind = KILN_OTTL_BYTES;
    return r;
}

/* ---- the table ---- */

const struct kiln_ottl_function *kiln_ottl_converter(struct kiln_str name)
{
    static const struct kiln_ottl_function functions[] = {
        {"IsMatch", "vr", is_match, NULL},     {"IsString", "v", is_kind, NULL},
        {"IsInt", "v", is_kind, NULL},         {"IsDouble", "v", is_kind, NULL},
        {"IsBool", "v", is_kind, NULL},        {"IsMap", "v", is_kind, NULL},
        {"IsList", "v", is_kind, NULL},        {"HasPrefix", "vs", has_end, NULL},
        {"HasSuffix", "vs", has_end, NULL},    {"Concat", "ls", concat, NULL},
        {"SHA256", "v", sha256, NULL},         {"ConvertCase", "vs", convert_case, NULL},
        {"ToLowerCase", "v", to_lower, NULL},  {"ToUpperCase", "v", to_upper, NULL},
        {"Substring", "vnn", substring, NULL}, {"Len", "v", length, NULL},
        {"String", "v", to_text, NULL},        {"Int", "v", to_number, NULL},
        {"Double", "v", to_number, NULL},      {"Now", "", now, NULL},
        {"Unix", "v?v", from_unix, NULL},      {"UnixNano", "v", to_unix, NULL},
        {"UnixMicro", "v", to_unix, NULL},     {"UnixMilli", "v", to_unix, NULL},
        {"UnixSeconds", "v", to_unix, NULL},   {"ProfileID", "v", profile_id, NULL},
    };

    for (size_t i = 0; i < KILN_ARRAY_LEN(functions); i++) {
        if (kiln_str_eq(name, kiln_str_of(functions[i].name)))
            return &functions[i];
    }
    return NULL;
}
