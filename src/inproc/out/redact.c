/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/out/redact.h"

#include <errno.h>

#include "base/mem.h"
#include "core/remap.h"

enum { RULES_MAX = 256, TEXT_MAX = 16 << 10, RESULT_MAX = 1 << 20 };

static const struct kiln_str mark = {"[redacted]", 10};

/* What a rule is for, and what a text is. */
enum what { PATH = 1, NAME = 2, THREAD = 4, VALUE = 8, ANY = 15 };

struct rule {
    unsigned what;
    bool keyed;                   /* `key` must fit the key of an attribute */
    bool drop;                    /* the attribute goes */
    struct kiln_str key, pattern; /* into the text of all rules */
};

struct kiln_in_redact {
    uint32_t n;
    struct rule rules[RULES_MAX];
    char text[];
};

/* ---- reading ---- */

static const struct {
    struct kiln_str word;
    unsigned what;
} kinds[] = {
    {{"path:", 5}, PATH},
    {{"name:", 5}, NAME},
    {{"thread:", 7}, THREAD},
    {{"attribute:", 10}, VALUE},
};

static struct rule read_rule(struct kiln_str text)
{
    struct rule rule = {.what = ANY, .pattern = text};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (!kiln_str_starts(text, kinds[i].word))
            continue;
        text.ptr += kinds[i].word.len;
        text.len -= kinds[i].word.len;
        rule = (struct rule){.what = kinds[i].what, .pattern = text};
        break;
    }
    if (rule.what == VALUE) {
        rule.keyed = true;
        rule.key = kiln_str_cut(&rule.pattern, '=');
        rule.drop = !rule.pattern.ptr;
    }
    return rule;
}

static int add_rule(struct kiln_in_redact *rules, struct kiln_str text, struct kiln_err *err)
{
    struct rule rule = read_rule(text);

    if (rules->n == RULES_MAX)
        return kiln_err_set(err, KILN_E_LIMIT, NULL, "more than %d rules", RULES_MAX);
    if ((rule.keyed && !rule.key.len) || (!rule.drop && !rule.pattern.len))
        return kiln_err_set(err, KILN_E_PATTERN, NULL, "rule %u says nothing", rules->n + 1);
    rules->rules[rules->n++] = rule;
    return 0;
}

int kiln_in_redact_parse(struct kiln_str text, struct kiln_in_redact **ret_rules,
                         struct kiln_err *err)
{
    struct kiln_in_redact *rules;
    struct kiln_str rest;
    int r = 0;

    if (text.len > TEXT_MAX)
        return kiln_err_set(err, KILN_E_LIMIT, NULL, "more than %d bytes of rules", TEXT_MAX);
    rules = kiln_calloc(1, sizeof(*rules) + text.len + 1);
    if (!rules)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    if (text.len)
        memcpy(rules->text, text.ptr, text.len);
    for (size_t i = 0; i < text.len; i++)
        if (rules->text[i] == '\n')
            rules->text[i] = ',';
    rest = (struct kiln_str){rules->text, text.len};
    while (r == 0 && rest.len) {
        struct kiln_str one = kiln_str_trim(kiln_str_cut(&rest, ','));

        r = one.len ? add_rule(rules, one, err) : 0;
    }
    if (r < 0) {
        kiln_free(rules);
        return r;
    }
    *ret_rules = rules;
    return 0;
}

void kiln_in_redact_free(struct kiln_in_redact *rules)
{
    kiln_free(rules);
}

/* ---- matching ---- */

static bool is_glob(struct kiln_str pattern)
{
    return memchr(pattern.ptr, '*', pattern.len) || memchr(pattern.ptr, '?', pattern.len);
}

/* What stands behind the last star is tried at one place after the other: no more than the product
 * of both lengths. */
static bool glob_fits(struct kiln_str pattern, struct kiln_str text)
{
    size_t p = 0, t = 0, star = SIZE_MAX, again = 0;

    while (t < text.len) {
        if (p < pattern.len && pattern.ptr[p] == '*') {
            star = p++;
            again = t;
        } else if (p < pattern.len && (pattern.ptr[p] == '?' || pattern.ptr[p] == text.ptr[t])) {
            p++;
            t++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            t = ++again;
        } else {
            return false;
        }
    }
    while (p < pattern.len && pattern.ptr[p] == '*')
        p++;
    return p == pattern.len;
}

/* How much of the front of a text a pattern takes; 0: it does not fit. */
static size_t taken(struct kiln_str pattern, struct kiln_str text)
{
    if (is_glob(pattern))
        return glob_fits(pattern, text) ? text.len : 0;
    return kiln_str_starts(text, pattern) ? pattern.len : 0;
}

static bool key_fits(const struct rule *rule, struct kiln_str key)
{
    return is_glob(rule->key) ? glob_fits(rule->key, key) : kiln_str_eq(rule->key, key);
}

/* One change after the other; two buffers take turns. */
struct changing {
    struct kiln_buf bufs[2];
    unsigned turn;
    struct kiln_str text;
    bool changed;
};

static void change(struct changing *c, struct kiln_str pattern)
{
    struct kiln_buf *buf = &c->bufs[c->turn];
    size_t n = taken(pattern, c->text);

    if (!n)
        return;
    kiln_buf_clear(buf);
    kiln_buf_add_str(buf, mark);
    kiln_buf_add(buf, c->text.ptr + n, c->text.len - n);
    c->text = kiln_buf_str(buf);
    c->turn ^= 1;
    c->changed = true;
}

static void begin(struct changing *c, struct kiln_str text)
{
    *c = (struct changing){.text = text};
    kiln_buf_init(&c->bufs[0], RESULT_MAX);
    kiln_buf_init(&c->bufs[1], RESULT_MAX);
}

/* The string that stands for it, where it was changed; a failure is the builder's. */
static uint32_t finish(struct changing *c, struct kiln_builder *b)
{
    uint32_t string = c->changed ? kiln_builder_string(b, c->text) : 0;
    int error = c->bufs[0].error ? c->bufs[0].error : c->bufs[1].error;

    if (error)
        kiln_builder_fail(b, error);
    kiln_buf_done(&c->bufs[0]);
    kiln_buf_done(&c->bufs[1]);
    return string;
}

/* ---- a batch ---- */

static uint32_t edit_text(void *context, struct kiln_builder *b, enum kiln_text_role role,
                          struct kiln_str text)
{
    const struct kiln_in_redact *rules = context;
    unsigned what = role == KILN_TEXT_NAME ? NAME : PATH;
    struct changing c;

    begin(&c, text);
    for (uint32_t i = 0; i < rules->n; i++)
        if (rules->rules[i].what & what)
            change(&c, rules->rules[i].pattern);
    if (c.changed)
        return finish(&c, b);
    (void)finish(&c, b);
    return kiln_builder_string(b, text);
}

/* What the value of an attribute is. */
static unsigned what_of(struct kiln_str key)
{
    static const struct kiln_str paths[] = {
        {"process.executable.", 19}, {"process.command", 15}, {"process.working_directory", 25},
        {"code.file.path", 14},      {"file.path", 9},
    };

    if (kiln_str_eq(key, KILN_STR("thread.name")))
        return THREAD | VALUE;
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        if (kiln_str_starts(key, paths[i]))
            return PATH | VALUE;
    return VALUE;
}

/* The key that counts: the nearest around a value that has one. */
static struct kiln_str key_of(const struct kiln_attr_place *place)
{
    while (place->outer && !place->key.len)
        place = place->outer;
    return place->key;
}

static bool goes(const struct kiln_in_redact *rules, struct kiln_str key)
{
    for (uint32_t i = 0; i < rules->n; i++) {
        const struct rule *rule = &rules->rules[i];

        if ((rule->drop && key_fits(rule, key)) ||
            (rule->what == ANY && key.len && taken(rule->pattern, key)))
            return true;
    }
    return false;
}

static void change_value(const struct kiln_in_redact *rules, struct kiln_str key,
                         struct changing *c)
{
    for (uint32_t i = 0; i < rules->n; i++) {
        const struct rule *rule = &rules->rules[i];

        if (!rule->drop && rule->what & what_of(key) && (!rule->keyed || key_fits(rule, key)))
            change(c, rule->pattern);
    }
}

static enum kiln_attr_edit edit_attr(void *context, struct kiln_builder *b,
                                     const struct kiln_batch *from,
                                     const struct kiln_attr_place *place, struct kiln_value *value)
{
    const struct kiln_in_redact *rules = context;
    struct kiln_str key = key_of(place);
    struct changing c;
    uint32_t string;

    if (goes(rules, key))
        return KILN_ATTR_DROP;
    if (value->kind != KILN_VALUE_STRING && value->kind != KILN_VALUE_BYTES)
        return KILN_ATTR_KEEP;
    begin(&c, kiln_batch_str(from, (uint32_t)value->str));
    change_value(rules, key, &c);
    string = finish(&c, b);
    if (!c.changed)
        return KILN_ATTR_KEEP;
    *value =
        value->kind == KILN_VALUE_STRING ? kiln_value_string(string) : kiln_value_bytes(string);
    return KILN_ATTR_SET;
}

int kiln_in_redact_batch(const struct kiln_in_redact *rules, struct kiln_batch *batch,
                         struct kiln_batch **ret_batch, struct kiln_err *err)
{
    const struct kiln_remap_edit edit = {
        .context = (void *)(uintptr_t)rules,
        .text = edit_text,
        .attr = edit_attr,
        .drop_payloads = true,
    };

    if (!rules || !rules->n) {
        *ret_batch = kiln_batch_ref(batch);
        return 0;
    }
    return kiln_remap_batch(batch, &edit, NULL, ret_batch, err);
}

int kiln_in_redact_word(const struct kiln_in_redact *rules, struct kiln_str word,
                        struct kiln_buf *out)
{
    struct changing c;

    begin(&c, word);
    for (uint32_t i = 0; rules && i < rules->n; i++)
        if (rules->rules[i].what & PATH)
            change(&c, rules->rules[i].pattern);
    kiln_buf_add_str(out, c.text);
    if (!out->error && (c.bufs[0].error || c.bufs[1].error))
        out->error = c.bufs[0].error ? c.bufs[0].error : c.bufs[1].error;
    kiln_buf_done(&c.bufs[0]);
    kiln_buf_done(&c.bufs[1]);
    return out->error;
}

bool kiln_in_redact_value(const struct kiln_in_redact *rules, struct kiln_str key,
                          struct kiln_str value, struct kiln_buf *out)
{
    struct changing c;
    bool stays = !rules || !goes(rules, key);

    begin(&c, value);
    if (rules && stays)
        change_value(rules, key, &c);
    if (stays)
        kiln_buf_add_str(out, c.text);
    stays = stays && !out->error && !c.bufs[0].error && !c.bufs[1].error;
    kiln_buf_done(&c.bufs[0]);
    kiln_buf_done(&c.bufs[1]);
    return stays;
}
