/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deployments and annotations as they are kept (api/kept.h), by id:
 *
 *   {"at_ns":"1772366400000000000","until_ns":"0","service":"shop","version":"1.4","name":"",
 *    "text":"cache prices","tags":["load"]}
 */
#include "api/native_told.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

enum { LIST_MAX = 100000 };

static int add(struct kiln_native_call *call, struct kiln_told_list *list,
               const struct kiln_told *told)
{
    int r = kiln_grow(&call->budget, (void **)&list->items, &list->cap, list->n + UINT64_C(1),
                      sizeof(*told), LIST_MAX);

    if (r < 0)
        return kiln_err_set(&call->err, r, NULL, "there are too many of them: %s",
                            kiln_err_text(r));
    list->items[list->n++] = *told;
    return 0;
}

void kiln_told_done(struct kiln_native_call *call, struct kiln_told_list *list)
{
    kiln_array_free(&call->budget, (void **)&list->items, &list->cap, sizeof(*list->items));
}

static int by_time(const void *a, const void *b)
{
    const struct kiln_told *x = a, *y = b;

    if (x->at_ns != y->at_ns)
        return x->at_ns < y->at_ns ? 1 : -1;
    return kiln_str_cmp(x->id, y->id);
}

void kiln_told_sort(struct kiln_told_list *list)
{
    if (list->n)
        qsort(list->items, list->n, sizeof(*list->items), by_time);
}

bool kiln_told_wanted(const struct kiln_native_call *call, const struct kiln_told *told)
{
    const struct kiln_native_args *args = &call->args;
    uint64_t end = told->until_ns > told->at_ns ? told->until_ns : told->at_ns;

    if (args->service.len && told->service.len && !kiln_str_eq(args->service, told->service))
        return false;
    if (args->said & KILN_NATIVE_BIT(FROM) && end < args->from_ns)
        return false;
    return !(args->said & KILN_NATIVE_BIT(UNTIL)) || told->at_ns < args->until_ns;
}

/* ---- reading ---- */

struct reading {
    struct kiln_native_call *call;
    struct kiln_told_list *list;
};

static int read_text(struct reading *reading, struct kiln_json *json, struct kiln_str *ret)
{
    struct kiln_str text;
    int r = kiln_json_string(json, &text);

    if (r < 0)
        return r;
    *ret = kiln_arena_copy(&reading->call->arena, text);
    return ret->ptr ? 0 : KILN_E_LIMIT;
}

static int read_time(struct kiln_json *json, uint64_t *ret)
{
    struct kiln_str text;
    int r = kiln_json_string(json, &text);

    return r < 0 ? r : kiln_json_parse_u64(text, ret);
}

int kiln_told_tag(struct kiln_native_call *call, struct kiln_told *told, struct kiln_str tag)
{
    if (told->n_tags == KILN_TOLD_TAGS_MAX)
        return kiln_err_set(&call->err, KILN_E_LIMIT, "tags", "more than %d of them",
                            KILN_TOLD_TAGS_MAX);
    if (!told->tags)
        told->tags = kiln_arena_alloc(&call->arena, KILN_TOLD_TAGS_MAX * sizeof(*told->tags));
    tag = kiln_arena_copy(&call->arena, tag);
    if (!told->tags || !tag.ptr)
        return KILN_E_LIMIT;
    told->tags[told->n_tags++] = tag;
    return 0;
}

static int read_tags(struct reading *reading, struct kiln_json *json, struct kiln_told *told)
{
    struct kiln_str tag;
    int r = kiln_json_array(json);

    while (r == 0 && (r = kiln_json_element(json)) > 0) {
        r = kiln_json_string(json, &tag);
        if (r == 0)
            r = kiln_told_tag(reading->call, told, tag);
    }
    return r;
}

static int read_member(struct reading *reading, struct kiln_json *json, struct kiln_str name,
                       struct kiln_told *told)
{
    if (kiln_str_eq(name, KILN_STR("at_ns")))
        return read_time(json, &told->at_ns);
    if (kiln_str_eq(name, KILN_STR("until_ns")))
        return read_time(json, &told->until_ns);
    if (kiln_str_eq(name, KILN_STR("service")))
        return read_text(reading, json, &told->service);
    if (kiln_str_eq(name, KILN_STR("version")))
        return read_text(reading, json, &told->version);
    if (kiln_str_eq(name, KILN_STR("name")))
        return read_text(reading, json, &told->name);
    if (kiln_str_eq(name, KILN_STR("text")))
        return read_text(reading, json, &told->text);
    if (kiln_str_eq(name, KILN_STR("tags")))
        return read_tags(reading, json, told);
    return kiln_json_skip(json);
}

static int read_item(void *context, const struct kiln_kept_item *item)
{
    struct reading *reading = context;
    struct kiln_told told = {.service = KILN_STR(""),
                             .version = KILN_STR(""),
                             .name = KILN_STR(""),
                             .text = KILN_STR("")};
    struct kiln_json json;
    struct kiln_str name;
    int r;

    told.id = kiln_arena_copy(&reading->call->arena, item->name);
    kiln_json_init(&json, item->text, NULL);
    r = told.id.ptr ? kiln_json_object(&json) : KILN_E_LIMIT;
    while (r == 0 && (r = kiln_json_member(&json, &name)) > 0)
        r = read_member(reading, &json, name, &told);
    kiln_json_done(&json);
    if (r < 0)
        return kiln_err_set(&reading->call->err, r, NULL, "what is kept cannot be read: %s",
                            kiln_err_text(r));
    return add(reading->call, reading->list, &told);
}

/* For what was read, until the call is done, where it is much. */
static int pay(struct kiln_native_call *call)
{
    size_t bytes = call->budget.used - call->paid;

    if (bytes <= KILN_BUF_SMALL)
        return 0;
    if (kiln_pool_take(kiln_querier_pool(call->api->querier), bytes) < 0)
        return kiln_err_set(&call->err, -EAGAIN, NULL,
                            "there is no memory for all that was told now: try again");
    call->paid += bytes;
    return 0;
}

int kiln_told_read(struct kiln_native_call *call, const char *kind, struct kiln_told_list *list)
{
    struct kiln_str tenants = kiln_str_of(call->request->tenant);
    struct reading reading = {call, list};
    int r = 0;

    while (r == 0 && tenants.ptr)
        r = kiln_kept_each(call->api->kept, kiln_str_cut(&tenants, '|'), kind, read_item, &reading,
                           &call->err);
    return r < 0 ? r : pay(call);
}

/* ---- keeping ---- */

/* Two of one process never have one id, and of two processes hardly. */
static int make_id(struct kiln_native_call *call, struct kiln_str *ret)
{
    static _Atomic uint32_t counter;
    char text[32];
    int n = snprintf(text, sizeof(text), "%016llx%04x", (unsigned long long)kiln_clock_unix_ns(),
                     atomic_fetch_add(&counter, 1) & 0xffff);

    *ret = kiln_arena_copy(&call->arena, (struct kiln_str){text, (size_t)n});
    return ret->ptr ? 0 : kiln_err_set(&call->err, -ENOMEM, NULL, "out of memory");
}

static void format(const struct kiln_told *told, struct kiln_buf *out)
{
    const struct {
        const char *name;
        struct kiln_str text;
    } texts[] = {{"service", told->service},
                 {"version", told->version},
                 {"name", told->name},
                 {"text", told->text}};
    struct kiln_json_out w;

    kiln_json_out_init(&w, out, 0);
    kiln_json_put_object(&w);
    kiln_json_put_name(&w, "at_ns");
    kiln_json_put_u64_text(&w, told->at_ns);
    kiln_json_put_name(&w, "until_ns");
    kiln_json_put_u64_text(&w, told->until_ns);
    for (uint32_t i = 0; i < KILN_ARRAY_LEN(texts); i++) {
        kiln_json_put_name(&w, texts[i].name);
        kiln_json_put_str(&w, texts[i].text);
    }
    kiln_json_put_name(&w, "tags");
    kiln_json_put_array(&w);
    for (uint32_t i = 0; i < told->n_tags; i++)
        kiln_json_put_str(&w, told->tags[i]);
    kiln_json_end_array(&w);
    kiln_json_end_object(&w);
}

int kiln_told_keep(struct kiln_native_call *call, const char *kind, struct kiln_told *told)
{
    struct kiln_kept_item item = {.modified_ns = call->now_ns};
    struct kiln_buf text;
    int r = make_id(call, &told->id);

    kiln_buf_init(&text, KILN_KEPT_TEXT_MAX);
    format(told, &text);
    item.name = told->id;
    item.text = kiln_buf_str(&text);
    if (r == 0)
        r = text.error;
    if (r == 0)
        r = kiln_kept_set(call->api->kept, kiln_str_of(call->request->tenant), kind, &item,
                          &call->err);
    kiln_buf_done(&text);
    return r == KILN_E_LIMIT ? -EDQUOT : r;
}

int kiln_told_forget(struct kiln_native_call *call, const char *kind)
{
    int r = kiln_kept_delete(call->api->kept, kiln_str_of(call->request->tenant), kind,
                             call->request->rest, &call->err);

    if (r == 0)
        return kiln_err_set(&call->err, -ENOENT, "id", "there is none of this id that was told");
    if (r < 0)
        return r;
    call->status = 204;
    call->content_type = NULL;
    return 0;
}
