/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/processors/actions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/bytetext.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "core/reopen.h"

#define CONTEXT_MAX ((size_t)64 << 10)

const char *const kiln_action_names[KILN_N_ACTIONS] = {
#define X(suffix, name) [KILN_ACTION_##suffix] = name,
    KILN_ACTION_MAP(X)
#undef X
};

void kiln_actions_done(struct kiln_actions *actions)
{
    for (uint32_t i = 0; i < actions->n; i++)
        kiln_regex_free(actions->list[i].pattern);
    kiln_ottl_free(actions->only);
    kiln_free(actions->list);
    *actions = (struct kiln_actions){0};
}

void kiln_actions_meet(void *context, const struct kiln_remote *remote)
{
    struct kiln_actions *actions = context;

    actions->remote = remote;
}

struct kiln_value kiln_plain_value_in(struct kiln_builder *b, const struct kiln_plain_value *value)
{
    switch (value->kind) {
    case KILN_VALUE_STRING:
        return kiln_value_string(kiln_builder_string(b, value->text));
    case KILN_VALUE_INT:
        return kiln_value_int(value->i);
    case KILN_VALUE_BOOL:
        return kiln_value_bool(value->i != 0);
    case KILN_VALUE_DOUBLE:
        return kiln_value_double(value->d);
    default:
        return (struct kiln_value){0};
    }
}

/* ---- one value ---- */

static struct kiln_str text_of(const struct kiln_draft *draft, struct kiln_value value)
{
    return kiln_builder_peek(draft->b)->dict.strings[value.str];
}

/* The bytes that are hashed: of a text the text, of numbers as they lie in memory, least first.
 * False: of lists, maps and nothing there are none. */
static bool hashed_bytes(const struct kiln_draft *draft, struct kiln_value value,
                         char room[sizeof(uint64_t)], struct kiln_str *ret_bytes)
{
    *ret_bytes = (struct kiln_str){room, value.kind == KILN_VALUE_BOOL ? 1 : sizeof(uint64_t)};
    for (int i = 0; i < 8; i++)
        room[i] = (char)(value.bits >> 8 * i);
    switch (value.kind) {
    case KILN_VALUE_STRING:
    case KILN_VALUE_BYTES:
        *ret_bytes = text_of(draft, value);
        return true;
    case KILN_VALUE_BOOL:
    case KILN_VALUE_INT:
    case KILN_VALUE_DOUBLE:
        return true;
    default:
        return false;
    }
}

static void hash(struct kiln_draft *draft, struct kiln_str key, struct kiln_value value)
{
    uint8_t digest[KILN_SHA256_BYTES];
    char room[sizeof(uint64_t)], text[2 * KILN_SHA256_BYTES + 1];
    struct kiln_str bytes;

    text[0] = '\0'; /* what cannot be hashed shall not be read either */
    if (hashed_bytes(draft, value, room, &bytes)) {
        kiln_sha256(bytes, digest);
        for (int i = 0; i < KILN_SHA256_BYTES; i++)
            snprintf(text + 2 * i, 3, "%02x", digest[i]);
    }
    kiln_draft_put(draft, key, kiln_value_string(kiln_builder_string(draft->b, kiln_str_of(text))));
}

/* A number in a text, and nothing else; false where it is none. */
static bool number_in(struct kiln_str text, double *ret)
{
    char copy[64];
    char *end;

    if (text.len == 0 || text.len >= sizeof(copy))
        return false;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    *ret = strtod(copy, &end);
    return *end == '\0';
}

static bool as_double(const struct kiln_draft *draft, struct kiln_value value, double *ret)
{
    if (value.kind == KILN_VALUE_STRING)
        return number_in(text_of(draft, value), ret);
    *ret = value.kind == KILN_VALUE_DOUBLE ? value.d : (double)value.i;
    return value.kind == KILN_VALUE_DOUBLE || value.kind == KILN_VALUE_INT ||
           value.kind == KILN_VALUE_BOOL;
}

static bool as_int(const struct kiln_draft *draft, struct kiln_value value, int64_t *ret)
{
    double number;

    if (value.kind == KILN_VALUE_STRING && kiln_str_parse_i64(text_of(draft, value), ret) == 0)
        return true;
    if (value.kind == KILN_VALUE_INT || value.kind == KILN_VALUE_BOOL)
        *ret = value.i;
    else if (as_double(draft, value, &number) && number > -9.2e18 && number < 9.2e18)
        *ret = (int64_t)number;
    else
        return false;
    return true;
}

/* A number or a truth as a text. */
static bool as_text(struct kiln_value value, char *text, size_t size)
{
    if (value.kind == KILN_VALUE_INT)
        snprintf(text, size, "%" PRId64, value.i);
    else if (value.kind == KILN_VALUE_DOUBLE)
        snprintf(text, size, "%.17g", value.d);
    else if (value.kind == KILN_VALUE_BOOL)
        snprintf(text, size, "%s", value.flag ? "true" : "false");
    else
        return false;
    return true;
}

static void convert(struct kiln_draft *draft, const struct kiln_action *action,
                    struct kiln_value value)
{
    char text[64];
    int64_t i;
    double d;

    if (action->convert_to == KILN_VALUE_INT && as_int(draft, value, &i))
        kiln_draft_put(draft, action->key, kiln_value_int(i));
    else if (action->convert_to == KILN_VALUE_DOUBLE && as_double(draft, value, &d))
        kiln_draft_put(draft, action->key, kiln_value_double(d));
    else if (action->convert_to == KILN_VALUE_STRING && as_text(value, text, sizeof(text)))
        kiln_draft_put(draft, action->key,
                       kiln_value_string(kiln_builder_string(draft->b, kiln_str_of(text))));
}

/* ---- actions ---- */

/* "10.0.0.5" of "10.0.0.5:4711", "::1" of "[::1]:4711". */
static struct kiln_str without_port(struct kiln_str address)
{
    const char *colon = address.len ? memrchr(address.ptr, ':', address.len) : NULL;

    if (colon)
        address.len = (size_t)(colon - address.ptr);
    if (address.len > 1 && address.ptr[0] == '[' && address.ptr[address.len - 1] == ']')
        return (struct kiln_str){address.ptr + 1, address.len - 2};
    return address;
}

/* The name in "Basic bmFtZTpwYXNzd29yZA=="; false: it is another way to say who one is. */
static bool put_user(struct kiln_str said, struct kiln_buf *out)
{
    struct kiln_str code, name;
    size_t len = 0;
    char *both;

    if (said.len < 6 || strncasecmp(said.ptr, "Basic ", 6) != 0)
        return false;
    code = kiln_str_trim((struct kiln_str){said.ptr + 6, said.len - 6});
    both = kiln_malloc(kiln_base64_room(code.len) + 1);
    if (!both || kiln_base64_decode(code, both, &len) < 0)
        len = 0;
    name = (struct kiln_str){both, len};
    if (len) {
        name = kiln_str_cut(&name, ':');
        kiln_buf_add_utf8(out, name);
    }
    kiln_free(both);
    return len > 0;
}

/* What a context says; several values of one header are joined.  False: nothing. */
static bool ask_context(const struct kiln_remote *remote, struct kiln_str context,
                        struct kiln_buf *out)
{
    struct kiln_str name = context, value;
    uint32_t at = 0, n = 0;

    if (kiln_str_eq(context, KILN_STR("client.address"))) {
        value = without_port(kiln_str_of(remote->address));
        kiln_buf_add_utf8(out, value);
        return value.len > 0;
    }
    if (kiln_str_eq(context, KILN_STR("auth.username")))
        return put_user(remote->authorization, out);
    (void)kiln_str_cut(&name, '.');
    for (; kiln_metadata_next(remote, name, &at, &value); n++) {
        if (n)
            kiln_buf_putc(out, ';');
        kiln_buf_add_utf8(out, value);
    }
    return n > 0;
}

static void put_context(const struct kiln_action *action, const struct kiln_remote *remote,
                        struct kiln_draft *draft)
{
    struct kiln_buf text;

    kiln_buf_init(&text, CONTEXT_MAX);
    if (remote && ask_context(remote, action->from_context, &text) && !text.error)
        kiln_draft_put(draft, action->key,
                       kiln_value_string(kiln_builder_string(draft->b, kiln_buf_str(&text))));
    if (text.error)
        kiln_builder_fail(draft->b, text.error);
    kiln_buf_done(&text);
}

static void set(const struct kiln_action *action, const struct kiln_remote *remote,
                struct kiln_draft *draft)
{
    bool there = kiln_draft_find(draft, action->key) != NULL;
    const struct kiln_attr *from = NULL;

    if ((action->kind == KILN_ACTION_INSERT && there) ||
        (action->kind == KILN_ACTION_UPDATE && !there))
        return;
    if (action->from.ptr)
        from = kiln_draft_find(draft, action->from);
    if (from)
        kiln_draft_put(draft, action->key, from->value);
    else if (action->from_context.ptr)
        put_context(action, remote, draft);
    else if (action->value.kind != KILN_VALUE_EMPTY)
        kiln_draft_put(draft, action->key, kiln_plain_value_in(draft->b, &action->value));
}

static int extract(const struct kiln_action *action, struct kiln_draft *draft)
{
    const struct kiln_attr *attr = kiln_draft_find(draft, action->key);
    struct kiln_str text, name, part;
    int r;

    if (!attr || attr->value.kind != KILN_VALUE_STRING)
        return 0;
    text = text_of(draft, attr->value);
    r = kiln_regex_matches(action->pattern, text);
    if (r <= 0)
        return r;
    for (uint32_t i = 0; kiln_regex_named(action->pattern, i, text, &name, &part); i++)
        kiln_draft_put(draft, name, kiln_value_string(kiln_builder_string(draft->b, part)));
    return 0;
}

static void delete_or_hash(const struct kiln_action *action, struct kiln_draft *draft,
                           struct kiln_str key)
{
    const struct kiln_attr *attr = kiln_draft_find(draft, key);

    if (action->kind == KILN_ACTION_DELETE)
        kiln_draft_drop(draft, key);
    else if (attr)
        hash(draft, key, attr->value);
}

/* Deletes or hashes by key, and by keys that match. */
static int clear(const struct kiln_action *action, struct kiln_draft *draft)
{
    const struct kiln_batch *batch = kiln_builder_peek(draft->b);

    if (action->key.ptr)
        delete_or_hash(action, draft, action->key);
    for (uint32_t i = draft->n; action->pattern && i-- > 0;) {
        struct kiln_str key = kiln_batch_str(batch, kiln_draft_at(draft, i)->key);
        int r = kiln_regex_matches(action->pattern, key);

        if (r < 0)
            return r;
        if (r > 0)
            delete_or_hash(action, draft, key);
    }
    return 0;
}

static int apply(const struct kiln_action *action, const struct kiln_remote *remote,
                 struct kiln_draft *draft)
{
    const struct kiln_attr *attr;

    switch (action->kind) {
    case KILN_ACTION_DELETE:
    case KILN_ACTION_HASH:
        return clear(action, draft);
    case KILN_ACTION_EXTRACT:
        return extract(action, draft);
    case KILN_ACTION_CONVERT:
        attr = kiln_draft_find(draft, action->key);
        if (attr)
            convert(draft, action, attr->value);
        return 0;
    default:
        set(action, remote, draft);
        return 0;
    }
}

int kiln_actions_apply(const struct kiln_actions *actions, struct kiln_draft *draft,
                       struct kiln_err *err)
{
    for (uint32_t i = 0; i < actions->n; i++) {
        int r = apply(&actions->list[i], actions->remote, draft);

        if (r < 0) {
            kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
            kiln_err_within(err, "attributes[%u]", i);
            return r;
        }
    }
    return 0;
}

/* ---- whole batches ---- */

static int finish(struct kiln_builder *b, struct kiln_batch **batch, int r, struct kiln_err *err)
{
    *batch = NULL;
    if (r < 0) {
        kiln_builder_free(b);
        return r;
    }
    r = kiln_builder_finish(b, batch, err);
    return r < 0 ? r : 1;
}

int kiln_actions_on_resources(void *actions, struct kiln_batch **batch, struct kiln_err *err)
{
    struct kiln_draft draft = {0};
    struct kiln_builder *b;
    int r = kiln_reopen(*batch, &b, err);

    *batch = NULL;
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < kiln_builder_peek(b)->n_resources && r == 0; i++) {
        kiln_draft_open(&draft, b, kiln_builder_resource(b, i)->attrs);
        r = kiln_actions_apply(actions, &draft, err);
        kiln_reopened_resource(b, i, kiln_draft_close(&draft));
    }
    kiln_draft_done(&draft);
    return finish(b, batch, r, err);
}

struct sample_edit {
    const struct kiln_actions *actions;
    struct kiln_draft draft;
    struct kiln_err *err;
};

static int edit_set(void *context, struct kiln_builder *b, uint32_t *attrs)
{
    struct sample_edit *edit = context;
    int r;

    kiln_draft_open(&edit->draft, b, *attrs);
    r = kiln_actions_apply(edit->actions, &edit->draft, edit->err);
    *attrs = kiln_draft_close(&edit->draft);
    return r;
}

/* One after the other: what a condition looks at is more than a set of attributes. */
static int edit_matching(struct sample_edit *edit, struct kiln_builder *b,
                         struct kiln_ottl_item *item)
{
    const struct kiln_profile *profile = &item->batch->profiles[item->profile];
    int r = 0;

    for (uint32_t i = 0; r >= 0 && i < profile->n_samples; i++) {
        uint32_t attrs;

        item->sample = profile->first_sample + i;
        r = kiln_ottl_holds(edit->actions->only, item, edit->err);
        if (r <= 0)
            continue;
        attrs = item->batch->samples[item->sample].attrs;
        r = edit_set(edit, b, &attrs);
        kiln_reopened_sample(b, item->sample, attrs);
    }
    return r < 0 ? r : 0;
}

static int edit_all_matching(struct sample_edit *edit, struct kiln_builder *b)
{
    struct kiln_ottl_item item = {.batch = kiln_builder_peek(b), .b = b};
    int r = 0;

    for (uint32_t i = 0; i < item.batch->n_resources; i++) {
        const struct kiln_resource *resource = &item.batch->resources[i];

        item.resource = i;
        for (uint32_t j = 0; j < resource->n_scopes; j++) {
            const struct kiln_scope *scope = &item.batch->scopes[resource->first_scope + j];

            item.scope = resource->first_scope + j;
            for (uint32_t k = 0; r == 0 && k < scope->n_profiles; k++) {
                item.profile = scope->first_profile + k;
                r = edit_matching(edit, b, &item);
            }
        }
    }
    return r;
}

int kiln_actions_on_samples(void *actions, struct kiln_batch **batch, struct kiln_err *err)
{
    struct sample_edit edit = {.actions = actions, .err = err};
    struct kiln_builder *b;
    int r = kiln_reopen(*batch, &b, err);

    *batch = NULL;
    if (r < 0)
        return r;
    if (edit.actions->only)
        r = edit_all_matching(&edit, b);
    else
        r = kiln_reopened_samples(b, edit_set, &edit);
    kiln_draft_done(&edit.draft);
    return finish(b, batch, r, err);
}
