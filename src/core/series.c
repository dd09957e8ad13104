/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rule is two lists: whole names, and beginnings ("k8s." of "k8s.*").  Attributes of a resource
 * that are on a list are gathered, sorted by name and written; numbers and booleans as text,
 * arrays, maps and bytes not at all.  An empty value is an absent label.
 */
#include "core/series.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/regex.h"

#define LABELS_FEW 32u                /* gathered without memory of their own */
#define TEXT_MAX   1024u              /* bytes of one text in a key; the rest is cut off */
#define LABELS_MAX ((size_t)16 << 10) /* bytes of all labels; those behind are left out */

#define S(literal)                                                                                 \
    {                                                                                              \
        (literal), sizeof(literal) - 1                                                             \
    }

static const struct kiln_str default_names[] = {
    S("service.*"),
    S("host.name"),
    S("container.id"),
    S("k8s.*"),
    S("deployment.environment"),
    S("deployment.environment.name"),
    S("deployment.id"),
    S("deployment_id"),
    S("git.commit"),
    S("version"),
};

static const struct kiln_str service_name = S("service.name");

struct kiln_series_rule {
    uint32_t n_names, n_prefixes;
    struct kiln_str *names, *prefixes; /* into `text` */
    char *text;
};

/* ---- rules ---- */

static bool is_prefix(struct kiln_str name)
{
    return kiln_str_ends(name, KILN_STR("*"));
}

static void rule_add(struct kiln_series_rule *rule, struct kiln_str name, char **text)
{
    bool prefix = is_prefix(name);
    struct kiln_str kept = {*text, name.len - prefix};

    if (kept.len)
        memcpy(*text, name.ptr, kept.len);
    *text += kept.len;
    if (prefix)
        rule->prefixes[rule->n_prefixes++] = kept;
    else
        rule->names[rule->n_names++] = kept;
}

int kiln_series_rule_new(const struct kiln_str *more, uint32_t n,
                         struct kiln_series_rule **ret_rule)
{
    size_t count = KILN_ARRAY_LEN(default_names) + (size_t)n;
    size_t bytes = 0;
    struct kiln_series_rule *rule;
    char *text;

    for (size_t i = 0; i < count; i++)
        bytes += i < n ? more[i].len : default_names[i - n].len;
    rule = kiln_calloc(1, sizeof(*rule) + 2 * count * sizeof(struct kiln_str) + bytes);
    if (!rule)
        return -ENOMEM;
    rule->names = (struct kiln_str *)(rule + 1);
    rule->prefixes = rule->names + count;
    rule->text = text = (char *)(rule->prefixes + count);
    for (size_t i = 0; i < count; i++)
        rule_add(rule, i < n ? more[i] : default_names[i - n], &text);
    *ret_rule = rule;
    return 0;
}

void kiln_series_rule_free(struct kiln_series_rule *rule)
{
    kiln_free(rule);
}

static bool rule_takes(const struct kiln_series_rule *rule, struct kiln_str name)
{
    if (kiln_str_eq(name, service_name))
        return false;
    for (uint32_t i = 0; i < rule->n_prefixes; i++) {
        if (kiln_str_starts(name, rule->prefixes[i]))
            return true;
    }
    for (uint32_t i = 0; i < rule->n_names; i++) {
        if (kiln_str_eq(name, rule->names[i]))
            return true;
    }
    return false;
}

bool kiln_series_made_by(struct kiln_str name)
{
    for (size_t i = 0; i < KILN_ARRAY_LEN(default_names); i++) {
        struct kiln_str known = default_names[i];

        if (is_prefix(known) ? kiln_str_starts(name, (struct kiln_str){known.ptr, known.len - 1})
                             : kiln_str_eq(name, known))
            return true;
    }
    return false;
}

/* ---- writing keys ---- */

/* A text in which no NUL and nothing but UTF-8 is left.  One too long is cut between characters. */
static void add_text(struct kiln_buf *out, struct kiln_str s)
{
    if (s.len > TEXT_MAX) {
        s.len = TEXT_MAX;
        while (s.len && ((unsigned char)s.ptr[s.len] & 0xc0) == 0x80)
            s.len--;
    }
    while (s.len) {
        const char *nul = memchr(s.ptr, 0, s.len);
        size_t n = nul ? (size_t)(nul - s.ptr) : s.len;

        kiln_buf_add_utf8(out, (struct kiln_str){s.ptr, n});
        if (!nul)
            return;
        kiln_buf_puts(out, "\xef\xbf\xbd");
        s = (struct kiln_str){nul + 1, s.len - n - 1};
    }
}

static void end_text(struct kiln_buf *out)
{
    kiln_buf_putc(out, '\0');
}

static struct kiln_str base_name(struct kiln_str path)
{
    for (size_t i = path.len; i > 0; i--) {
        if (path.ptr[i - 1] == '/' || path.ptr[i - 1] == '\\')
            return (struct kiln_str){path.ptr + i, path.len - i};
    }
    return path;
}

static void add_service(const struct kiln_batch *batch, uint32_t set, struct kiln_buf *out)
{
    struct kiln_str name = kiln_set_text(batch, set, service_name);
    struct kiln_str exe;

    if (name.len) {
        add_text(out, name);
        return;
    }
    kiln_buf_puts(out, "unknown_service");
    exe = kiln_set_text(batch, set, KILN_STR("process.executable.name"));
    if (!exe.len)
        exe = base_name(kiln_set_text(batch, set, KILN_STR("process.executable.path")));
    if (!exe.len)
        return;
    kiln_buf_putc(out, ':');
    add_text(out, exe);
}

static void add_type(const struct kiln_type *type, struct kiln_buf *out)
{
    const struct kiln_str *parts[] = {&type->name, &type->type, &type->unit, &type->period_type,
                                      &type->period_unit};
    bool clean = true;

    for (size_t i = 0; i < KILN_ARRAY_LEN(parts); i++)
        clean = clean && parts[i]->len <= TEXT_MAX &&
                !(parts[i]->len && memchr(parts[i]->ptr, 0, parts[i]->len)) &&
                kiln_utf8_valid(*parts[i]);
    if (clean) {
        kiln_type_id(type, out);
        return;
    }
    for (size_t i = 0; i < KILN_ARRAY_LEN(parts); i++) {
        if (i)
            kiln_buf_putc(out, ':');
        add_text(out, *parts[i]);
    }
}

static void add_value(const struct kiln_batch *batch, const struct kiln_value *value,
                      struct kiln_buf *out)
{
    switch (value->kind) {
    case KILN_VALUE_STRING:
        add_text(out, kiln_batch_str(batch, (uint32_t)value->str));
        break;
    case KILN_VALUE_BOOL:
        kiln_buf_puts(out, value->flag ? "true" : "false");
        break;
    case KILN_VALUE_INT:
        kiln_buf_add_i64(out, value->i);
        break;
    default:
        kiln_buf_printf(out, "%.17g", value->d);
        break;
    }
}

/* Whether a value can stand in a key at all. */
static bool is_plain(const struct kiln_batch *batch, const struct kiln_value *value)
{
    if (value->kind == KILN_VALUE_STRING)
        return kiln_batch_str(batch, (uint32_t)value->str).len > 0;
    return value->kind == KILN_VALUE_BOOL || value->kind == KILN_VALUE_INT ||
           value->kind == KILN_VALUE_DOUBLE;
}

struct label {
    struct kiln_str name;
    const struct kiln_value *value;
};

static int by_name(const void *a, const void *b)
{
    const struct label *x = a, *y = b;

    return kiln_str_cmp(x->name, y->name);
}

/* Few are the rule, and arrive nearly sorted. */
static void sort_labels(struct label *labels, uint32_t n)
{
    if (n > LABELS_FEW) {
        qsort(labels, n, sizeof(*labels), by_name);
        return;
    }
    for (uint32_t i = 1; i < n; i++) {
        struct label moving = labels[i];
        uint32_t k = i;

        for (; k > 0 && by_name(&labels[k - 1], &moving) > 0; k--)
            labels[k] = labels[k - 1];
        labels[k] = moving;
    }
}

static void add_labels(const struct kiln_series_rule *rule, const struct kiln_batch *batch,
                       struct kiln_range set, struct kiln_buf *out)
{
    const struct kiln_dict *d = &batch->dict;
    struct label few[LABELS_FEW], *labels = few;
    size_t start = out->len;
    uint32_t n = 0;

    if (set.n > LABELS_FEW)
        labels = kiln_malloc(set.n * sizeof(*labels));
    if (!labels) {
        out->error = out->error ? out->error : -ENOMEM;
        return;
    }
    for (uint32_t i = 0; i < set.n; i++) {
        const struct kiln_attr *attr = &d->attrs[d->members[set.first + i]];

        if (rule_takes(rule, d->strings[attr->key]) && is_plain(batch, &attr->value))
            labels[n++] = (struct label){d->strings[attr->key], &attr->value};
    }
    sort_labels(labels, n);
    for (uint32_t i = 0; i < n && out->len - start < LABELS_MAX; i++) {
        add_text(out, labels[i].name);
        end_text(out);
        add_value(batch, labels[i].value, out);
        end_text(out);
    }
    if (labels != few)
        kiln_free(labels);
}

void kiln_series_key(const struct kiln_series_rule *rule, const struct kiln_batch *batch,
                     uint32_t resource, const struct kiln_type *type, struct kiln_buf *out)
{
    uint32_t set = batch->resources[resource].attrs;

    add_service(batch, set, out);
    end_text(out);
    add_type(type, out);
    end_text(out);
    add_labels(rule, batch, batch->dict.sets[set], out);
}

static const char overflow_label[] = "kiln.overflow\0true"; /* and its own NUL */

void kiln_series_overflow_key(struct kiln_str key, struct kiln_buf *out)
{
    struct kiln_series series;

    if (kiln_series_parse(key, &series) < 0)
        return;
    kiln_buf_add(out, key.ptr, (size_t)(series.labels.ptr - key.ptr));
    kiln_buf_add(out, overflow_label, sizeof(overflow_label));
}

void kiln_series_last_key(struct kiln_str key, struct kiln_buf *out)
{
    struct kiln_series series;

    if (kiln_series_parse(key, &series) < 0)
        return;
    kiln_buf_puts(out, "unknown_service");
    kiln_buf_add(out, series.service.ptr + series.service.len,
                 (size_t)(series.labels.ptr - series.service.ptr) - series.service.len);
    kiln_buf_add(out, overflow_label, sizeof(overflow_label));
}

bool kiln_series_is_overflow(struct kiln_str key)
{
    struct kiln_series series;

    return kiln_series_parse(key, &series) == 0 && series.labels.len == sizeof(overflow_label) &&
           memcmp(series.labels.ptr, overflow_label, sizeof(overflow_label)) == 0;
}

/* ---- reading keys ---- */

/* Cuts the text before the next NUL off `*rest`; false where there is none. */
static bool cut_text(struct kiln_str *rest, struct kiln_str *ret_text)
{
    const char *nul = rest->len ? memchr(rest->ptr, 0, rest->len) : NULL;
    size_t n;

    if (!nul)
        return false;
    n = (size_t)(nul - rest->ptr);
    *ret_text = (struct kiln_str){rest->ptr, n};
    *rest = (struct kiln_str){nul + 1, rest->len - n - 1};
    return true;
}

int kiln_series_parse(struct kiln_str key, struct kiln_series *ret_series)
{
    struct kiln_series series;
    struct kiln_str rest, name, value;

    if (!cut_text(&key, &series.service) || !cut_text(&key, &series.type))
        return KILN_E_MALFORMED;
    series.labels = rest = key;
    while (kiln_series_label(&rest, &name, &value)) {
    }
    if (rest.len)
        return KILN_E_MALFORMED;
    *ret_series = series;
    return 0;
}

bool kiln_series_label(struct kiln_str *labels, struct kiln_str *ret_name,
                       struct kiln_str *ret_value)
{
    struct kiln_str rest = *labels, name, value;

    if (!cut_text(&rest, &name) || !cut_text(&rest, &value))
        return false;
    *labels = rest;
    *ret_name = name;
    *ret_value = value;
    return true;
}

struct kiln_str kiln_series_get(const struct kiln_series *series, struct kiln_str name)
{
    struct kiln_str labels = series->labels, known, value;

    if (kiln_str_eq(name, service_name))
        return series->service;
    if (kiln_str_eq(name, KILN_STR("__profile_type__")))
        return series->type;
    while (kiln_series_label(&labels, &known, &value)) {
        if (kiln_str_eq(known, name))
            return value;
    }
    return KILN_STR_NONE;
}

/* ---- choosing series ---- */

static bool matches(const struct kiln_series *series, const struct kiln_matcher *m)
{
    struct kiln_str value = kiln_series_get(series, m->name);

    switch (m->op) {
    case KILN_MATCH_EQ:
        return kiln_str_eq(value, m->value);
    case KILN_MATCH_NE:
        return !kiln_str_eq(value, m->value);
    case KILN_MATCH_RE:
        return kiln_regex_matches(m->regex, value) == 1;
    default:
        return kiln_regex_matches(m->regex, value) == 0;
    }
}

bool kiln_series_match(const struct kiln_series *series, const struct kiln_matcher *matchers,
                       uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!matches(series, &matchers[i]))
            return false;
    }
    return true;
}
