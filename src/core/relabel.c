/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/mem.h"
#include "core/relabel.h"
#include "core/remap.h"

struct run {
    const struct kiln_relabel_rule *rules;
    uint32_t n;
};

int kiln_relabel_parse(struct kiln_str text, struct kiln_relabel_rule *ret_rule,
                       struct kiln_err *err)
{
    struct kiln_str to = text;
    struct kiln_str from = kiln_str_cut(&to, '=');

    if (from.len == 0)
        return kiln_err_set(err, KILN_E_MALFORMED, NULL, "\"%.*s\" is not FROM=TO",
                            (int)(text.len < 80 ? text.len : 80), text.ptr ? text.ptr : "");
    *ret_rule = (struct kiln_relabel_rule){from, to};
    return 0;
}

static bool is_slash(char c)
{
    return c == '/' || c == '\\';
}

/* Whether a path begins with these folders, and not only with these letters. */
static bool begins(struct kiln_str path, struct kiln_str from)
{
    return kiln_str_starts(path, from) &&
           (path.len == from.len || is_slash(from.ptr[from.len - 1]) ||
            is_slash(path.ptr[from.len]));
}

/* The string of `to` with `rest` behind it. */
static uint32_t joined(struct kiln_builder *b, struct kiln_str to, struct kiln_str rest)
{
    char *text;
    uint32_t string;

    if (to.len == 0)
        return kiln_builder_string(b, rest);
    text = kiln_malloc(to.len + rest.len);
    if (!text) {
        kiln_builder_fail(b, -ENOMEM);
        return 0;
    }
    memcpy(text, to.ptr, to.len);
    if (rest.len)
        memcpy(text + to.len, rest.ptr, rest.len);
    string = kiln_builder_string(b, (struct kiln_str){text, to.len + rest.len});
    kiln_free(text);
    return string;
}

static uint32_t edit_text(void *context, struct kiln_builder *b, enum kiln_text_role role,
                          struct kiln_str text)
{
    const struct run *run = context;

    for (uint32_t i = 0; i < run->n && role != KILN_TEXT_NAME; i++) {
        const struct kiln_relabel_rule *rule = &run->rules[i];
        struct kiln_str rest;

        if (!begins(text, rule->from))
            continue;
        rest = (struct kiln_str){text.ptr + rule->from.len, text.len - rule->from.len};
        if (rule->to.len == 0 && rest.len && is_slash(rest.ptr[0]))
            rest = (struct kiln_str){rest.ptr + 1, rest.len - 1};
        return joined(b, rule->to, rest);
    }
    return kiln_builder_string(b, text);
}

int kiln_relabel(const struct kiln_batch *batch, const struct kiln_relabel_rule *rules, uint32_t n,
                 struct kiln_batch **ret_batch, struct kiln_err *err)
{
    struct run run = {rules, n};
    struct kiln_remap_edit edit = {.context = &run, .text = edit_text};

    return kiln_remap_batch(batch, &edit, NULL, ret_batch, err);
}
