/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A condition is KEY OP TEXT with OP one of = != =~ !~.  An attribute that is absent counts as the
 * empty text, as in Prometheus, whose anchoring of expressions is followed too.  Of an array one
 * element is enough.
 */
#include <errno.h>
#include <stdio.h>

#include "core/view_int.h"

/* Splits "key=~text"; false where there is no operator or no key. */
static bool split(struct kiln_str text, struct kiln_label *ret, bool *ret_regex)
{
    for (size_t i = 1; i < text.len; i++) {
        bool not_equal = text.ptr[i] == '!' && i + 1 < text.len &&
                         (text.ptr[i + 1] == '=' || text.ptr[i + 1] == '~');
        size_t after;

        if (text.ptr[i] != '=' && !not_equal)
            continue;
        *ret_regex = i + 1 < text.len && text.ptr[i + 1] == '~';
        after = i + (not_equal || *ret_regex ? 2 : 1);
        *ret = (struct kiln_label){
            .key = kiln_str_trim((struct kiln_str){text.ptr, i}),
            .value = kiln_str_trim((struct kiln_str){text.ptr + after, text.len - after}),
            .negated = not_equal,
        };
        return ret->key.len > 0;
    }
    return false;
}

static int parse(struct kiln_label *label, struct kiln_str text, struct kiln_err *err)
{
    bool is_regex;

    if (!split(text, label, &is_regex))
        return kiln_err_set(err, KILN_E_PATTERN, NULL,
                            "label condition \"%.*s\" is not key=value, key!=value, key=~regex or "
                            "key!~regex",
                            (int)(text.len < 80 ? text.len : 80), text.ptr ? text.ptr : "");
    if (!is_regex)
        return 0;
    return kiln_regex_new(label->value, KILN_REGEX_WHOLE, &label->regex, err);
}

int kiln_labels_init(struct kiln_labels *labels, const struct kiln_str *texts, uint32_t n,
                     struct kiln_err *err)
{
    int r = 0;

    *labels = (struct kiln_labels){0};
    if (n == 0)
        return 0;
    labels->conditions = kiln_calloc(n, sizeof(*labels->conditions));
    if (!labels->conditions)
        return -ENOMEM;
    for (uint32_t i = 0; i < n && r == 0; i++) {
        r = parse(&labels->conditions[i], texts[i], err);
        labels->n++;
    }
    return r;
}

void kiln_labels_done(struct kiln_labels *labels)
{
    for (uint32_t i = 0; i < labels->n; i++)
        kiln_regex_free(labels->conditions[i].regex);
    kiln_free(labels->conditions);
    *labels = (struct kiln_labels){0};
}

static int matches_text(const struct kiln_label *label, struct kiln_str text)
{
    if (label->regex)
        return kiln_regex_matches(label->regex, text);
    return kiln_str_eq(label->value, text);
}

static int matches_scalar(const struct kiln_label *label, const struct kiln_batch *batch,
                          const struct kiln_value *value)
{
    char text[32] = "";

    if (value->kind == KILN_VALUE_STRING)
        return matches_text(label, batch->dict.strings[value->str]);
    if (value->kind == KILN_VALUE_INT)
        snprintf(text, sizeof(text), "%lld", (long long)value->i);
    else if (value->kind == KILN_VALUE_DOUBLE)
        snprintf(text, sizeof(text), "%.15g", value->d);
    else if (value->kind == KILN_VALUE_BOOL)
        snprintf(text, sizeof(text), "%s", value->flag ? "true" : "false");
    return matches_text(label, kiln_str_of(text));
}

static int matches_value(const struct kiln_label *label, const struct kiln_batch *batch,
                         const struct kiln_value *value)
{
    int r = 0;

    if (value->kind != KILN_VALUE_ARRAY)
        return matches_scalar(label, batch, value);
    for (uint32_t i = 0; i < value->n && r == 0; i++)
        r = matches_scalar(label, batch, &batch->dict.nested[value->first + i].value);
    return r;
}

static const struct kiln_attr *find(struct kiln_label *label, const struct kiln_batch *batch,
                                    const uint32_t sets[KILN_LABEL_SETS])
{
    for (uint32_t i = 0; i < KILN_LABEL_SETS; i++) {
        if (label->last[i].set != sets[i] + 1) {
            label->last[i].set = sets[i] + 1;
            label->last[i].attr = kiln_set_find(batch, sets[i], label->key);
        }
        if (label->last[i].attr)
            return label->last[i].attr;
    }
    return NULL;
}

int kiln_labels_hold(struct kiln_labels *labels, const struct kiln_batch *batch,
                     const uint32_t sets[KILN_LABEL_SETS], bool absent_holds)
{
    for (uint32_t i = 0; i < labels->n; i++) {
        struct kiln_label *label = &labels->conditions[i];
        const struct kiln_attr *attr = find(label, batch, sets);
        int r;

        if (!attr && absent_holds)
            continue;
        r = attr ? matches_value(label, batch, &attr->value) : matches_text(label, KILN_STR(""));
        if (r < 0)
            return r;
        if ((r == 1) == label->negated)
            return 0;
    }
    return 1;
}
