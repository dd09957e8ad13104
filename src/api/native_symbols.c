/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /api/v1/symbols: debug files come, are listed and go (naming/depot.h), and what has samples but
 * no names is told (naming/job.h).
 *
 * A file may come in parts; a part without bytes asks how much has come.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/native_int.h"
#include "base/bytetext.h"
#include "naming/job.h"
#include "pipeline/gate.h"

#define PART_MAX ((size_t)64 << 20) /* uncompressed */
enum { NAME_MAX_BYTES = 127, LISTED_MAX = 20000 };

static int need_depot(struct kiln_native_call *call)
{
    if (call->api->depot)
        return 0;
    return kiln_err_set(&call->err, KILN_E_UNSUPPORTED, NULL, "this server keeps no debug files");
}

/* ---- what is there ---- */

static void put_file(struct kiln_native_call *call, const struct kiln_depot_file *file)
{
    const struct kiln_debug_facts *facts = &file->facts;
    static const uint8_t none[sizeof(file->sha256)];
    char digits[65] = "";

    if (memcmp(file->sha256, none, sizeof(none)) != 0)
        kiln_hex_encode(file->sha256, sizeof(file->sha256), digits);
    kiln_json_put_object(&call->w);
    kiln_native_put_text(call, "build_id", kiln_str_of(kiln_depot_file_id(file)));
    kiln_native_put_said(call, "go_build_id", facts->go);
    kiln_native_put_said(call, "hash", facts->hash);
    kiln_native_put_text(call, "kind", kiln_str_of(kiln_debug_kind_name(facts->kind)));
    kiln_native_put_text(call, "has",
                         kiln_str_of(facts->has_lines    ? "lines"
                                     : facts->has_symtab ? "names"
                                                         : "nothing"));
    kiln_native_put_u64(call, "bytes", facts->bytes);
    kiln_native_put_said(call, "name", file->name);
    kiln_native_put_said(call, "sha256", digits);
    kiln_native_put_text(
        call, "from",
        kiln_str_of(strcmp(file->tenant, KILN_DEPOT_SHARED) == 0 ? "debuginfod" : "upload"));
    kiln_native_put_time(call, "at", file->came_ns);
    kiln_native_put_time(call, "last", file->used_ns);
    kiln_json_end_object(&call->w);
}

struct listing {
    struct kiln_native_call *call;
    struct kiln_str build_id; /* empty: all */
    struct kiln_depot_file *files;
    uint32_t n, cap;
    int r;
};

static bool is_wanted(const struct listing *listing, const struct kiln_depot_file *file)
{
    return listing->build_id.len == 0 ||
           kiln_str_eq(listing->build_id, kiln_str_of(kiln_depot_file_id(file))) ||
           kiln_debug_facts_match(&file->facts, listing->build_id);
}

static void list_file(void *context, const struct kiln_depot_file *file)
{
    struct listing *listing = context;

    if (listing->r < 0 || !is_wanted(listing, file))
        return;
    listing->r = kiln_grow(&listing->call->budget, (void **)&listing->files, &listing->cap,
                           listing->n + UINT64_C(1), sizeof(*listing->files), LISTED_MAX);
    if (listing->r == 0)
        listing->files[listing->n++] = *file;
}

/* The newest first. */
static int by_age(const void *a, const void *b)
{
    const struct kiln_depot_file *left = a, *right = b;

    if (left->came_ns != right->came_ns)
        return left->came_ns < right->came_ns ? 1 : -1;
    return strcmp(kiln_depot_file_id(left), kiln_depot_file_id(right));
}

static bool is_global(const struct kiln_native_call *call)
{
    struct kiln_caller caller;

    kiln_native_caller(call, &caller);
    return kiln_caller_is_global(&caller);
}

/* What was fetched says what other tenants run. */
static int list_files(struct listing *listing)
{
    struct kiln_native_call *call = listing->call;
    struct kiln_str tenants = kiln_str_of(call->request->tenant);
    char tenant[KILN_TENANT_MAX + 1];

    while (tenants.ptr) {
        struct kiln_str one = kiln_str_cut(&tenants, '|');

        snprintf(tenant, sizeof(tenant), "%.*s", KILN_STR_ARG(one));
        kiln_depot_each(call->api->depot, tenant, list_file, listing);
    }
    if (is_global(call))
        kiln_depot_each(call->api->depot, KILN_DEPOT_SHARED, list_file, listing);
    if (listing->r < 0)
        return kiln_err_set(&call->err, KILN_E_LIMIT, NULL, KILN_API_TOO_LARGE);
    if (listing->n)
        qsort(listing->files, listing->n, sizeof(*listing->files), by_age);
    return 0;
}

static void put_files(struct listing *listing)
{
    struct kiln_native_call *call = listing->call;

    kiln_json_put_name(&call->w, "files");
    kiln_json_put_array(&call->w);
    for (uint32_t i = 0; i < listing->n; i++)
        put_file(call, &listing->files[i]);
    kiln_json_end_array(&call->w);
}

static int answer_files(struct kiln_native_call *call)
{
    struct listing listing = {.call = call};
    struct kiln_depot_stats stats;
    int r = list_files(&listing);

    kiln_depot_stats(call->api->depot, is_global(call) ? NULL : call->request->tenant, &stats);
    kiln_json_put_object(&call->w);
    kiln_native_put_u64(call, "quota_bytes", stats.quota_bytes);
    kiln_native_put_u64(call, "used_bytes", stats.used_bytes);
    if (r == 0)
        put_files(&listing);
    kiln_json_end_object(&call->w);
    kiln_buf_putc(&call->body, '\n');
    kiln_array_free(&call->budget, (void **)&listing.files, &listing.cap, sizeof(*listing.files));
    return r;
}

/* ---- what is missing ---- */

struct lacks {
    struct kiln_native_call *call;
    struct kiln_naming_missing *items;
    uint32_t n, cap;
};

static int add_missing(void *context, const struct kiln_naming_missing *missing)
{
    struct lacks *lacks = context;
    struct kiln_arena *arena = &lacks->call->arena;
    struct kiln_naming_missing copy = *missing;
    int r = kiln_grow(&lacks->call->budget, (void **)&lacks->items, &lacks->cap,
                      lacks->n + UINT64_C(1), sizeof(copy), LISTED_MAX);

    if (r < 0)
        return r;
    copy.build_id = kiln_arena_copy(arena, missing->build_id);
    copy.file = kiln_arena_copy(arena, missing->file);
    copy.why = kiln_arena_copy(arena, missing->why);
    if (!copy.build_id.ptr || !copy.file.ptr || !copy.why.ptr)
        return KILN_E_LIMIT;
    lacks->items[lacks->n++] = copy;
    return 0;
}

static int by_samples(const void *a, const void *b)
{
    const struct kiln_naming_missing *left = a, *right = b;

    if (left->samples != right->samples)
        return left->samples < right->samples ? 1 : -1;
    return kiln_str_cmp(left->build_id, right->build_id);
}

static void put_missing(struct kiln_native_call *call, const struct kiln_naming_missing *missing)
{
    kiln_json_put_object(&call->w);
    kiln_native_put_text(call, "build_id", missing->build_id);
    kiln_native_put_text(call, "name", missing->file);
    kiln_native_put_u64(call, "samples", missing->samples);
    kiln_native_put_u64(call, "addresses", missing->addresses);
    kiln_native_put_flag(call, "more", missing->more);
    kiln_native_put_time(call, "newest", missing->newest_ns);
    kiln_native_put_text(call, "text",
                         missing->why.len ? missing->why : KILN_STR("not looked for yet"));
    kiln_json_end_object(&call->w);
}

static int find_missing(struct lacks *lacks)
{
    struct kiln_native_call *call = lacks->call;
    struct kiln_str tenants = kiln_str_of(call->request->tenant);
    int r = 0;

    while (r == 0 && tenants.ptr)
        r = kiln_naming_missing(call->api->naming, kiln_str_cut(&tenants, '|'), add_missing, lacks,
                                &call->err);
    if (r == KILN_E_LIMIT)
        kiln_err_set(&call->err, r, NULL, KILN_API_TOO_LARGE);
    if (r == 0 && lacks->n)
        qsort(lacks->items, lacks->n, sizeof(*lacks->items), by_samples);
    return r;
}

static int answer_missing(struct kiln_native_call *call)
{
    struct lacks lacks = {.call = call};
    uint32_t limit = call->args.limit ? call->args.limit : UINT32_MAX;
    int r = find_missing(&lacks);

    kiln_json_put_object(&call->w);
    kiln_native_put_u64(call, "all", lacks.n);
    kiln_json_put_name(&call->w, "missing");
    kiln_json_put_array(&call->w);
    for (uint32_t i = 0; r == 0 && i < lacks.n && i < limit; i++)
        put_missing(call, &lacks.items[i]);
    kiln_json_end_array(&call->w);
    kiln_json_end_object(&call->w);
    kiln_buf_putc(&call->body, '\n');
    kiln_array_free(&call->budget, (void **)&lacks.items, &lacks.cap, sizeof(*lacks.items));
    return r;
}

int kiln_native_run_symbols(struct kiln_native_call *call)
{
    int r = need_depot(call);

    if (r < 0)
        return r;
    if (!call->args.missing)
        return answer_files(call);
    if (!call->api->naming)
        return kiln_err_set(&call->err, KILN_E_UNSUPPORTED, NULL, "this server names nothing");
    return answer_missing(call);
}

/* ---- one build id ---- */

int kiln_native_run_symbols_of(struct kiln_native_call *call)
{
    struct listing listing = {.call = call, .build_id = call->request->rest};
    int r = need_depot(call);

    if (r < 0)
        return r;
    r = list_files(&listing);
    if (r == 0 && listing.n == 0)
        r = kiln_err_set(&call->err, -ENOENT, "build_id", "there is no debug file of it");
    if (r == 0) {
        kiln_json_put_object(&call->w);
        put_files(&listing);
        kiln_json_end_object(&call->w);
        kiln_buf_putc(&call->body, '\n');
    }
    kiln_array_free(&call->budget, (void **)&listing.files, &listing.cap, sizeof(*listing.files));
    return r;
}

int kiln_native_run_symbols_delete(struct kiln_native_call *call)
{
    uint32_t n = 0;
    int r = need_depot(call);

    if (r == 0)
        r = kiln_depot_delete(call->api->depot, call->request->tenant, call->request->rest, &n,
                              &call->err);
    if (r == 0 && n == 0)
        r = kiln_err_set(&call->err, -ENOENT, "build_id", "there is no debug file of it");
    if (r < 0)
        return r;
    kiln_json_put_object(&call->w);
    kiln_native_put_u64(call, "deleted", n);
    kiln_json_end_object(&call->w);
    kiln_buf_putc(&call->body, '\n');
    return 0;
}

/* ---- coming in ---- */

/* What the depot says, in the words of HTTP: a file that is no good is a bad body. */
static int blame(struct kiln_native_call *call, int r)
{
    switch (r) {
    case -ESTALE:
        return -EEXIST;
    case KILN_E_UNKNOWN:
    case KILN_E_UNSUPPORTED:
    case KILN_E_TRUNCATED:
    case KILN_E_MALFORMED:
    case KILN_E_CORRUPT:
    case -EKEYREJECTED:
    case -ENODATA:
        if (!call->err.where[0])
            snprintf(call->err.where, sizeof(call->err.where), "body");
        return -EBADMSG;
    default:
        return r;
    }
}

static void put_state(struct kiln_native_call *call, const struct kiln_depot_state *state)
{
    kiln_json_put_object(&call->w);
    kiln_native_put_u64(call, "received", state->received);
    kiln_native_put_u64(call, "total", state->total);
    kiln_native_put_flag(call, "complete", state->complete);
    if (state->complete) {
        kiln_native_put_flag(call, "known", state->known);
        kiln_native_put_text(call, "build_id", kiln_str_of(state->build_id));
        kiln_native_put_text(call, "kind", kiln_str_of(kiln_debug_kind_name(state->kind)));
    }
    kiln_json_end_object(&call->w);
    kiln_buf_putc(&call->body, '\n');
}

static int put_bytes(struct kiln_native_call *call, struct kiln_str bytes)
{
    const struct kiln_native_args *args = &call->args;
    struct kiln_depot_state state = {.received = 0};
    struct kiln_depot_part part = {.tenant = call->request->tenant,
                                   .build_id = call->request->rest,
                                   .sha256 = args->sha256,
                                   .offset = args->offset,
                                   .total = args->total,
                                   .bytes = bytes,
                                   .name = args->name};
    int r;

    if (!(args->said & KILN_NATIVE_BIT(TOTAL)))
        part.total = bytes.len;
    if (part.name.len > NAME_MAX_BYTES)
        part.name.len = 0;
    r = kiln_depot_put(call->api->depot, &part, &state, &call->err);
    if (r == 0)
        put_state(call, &state);
    return blame(call, r);
}

int kiln_native_run_symbols_put(struct kiln_native_call *call)
{
    const struct kiln_request *request = call->request;
    struct kiln_str bytes = request->body;
    struct kiln_buf plain;
    int r = need_depot(call);

    if (r < 0)
        return r;
    kiln_buf_init(&plain, PART_MAX);
    plain.pool = kiln_querier_pool(call->api->querier);
    if (request->encoding != KILN_PLAIN && bytes.len) {
        r = kiln_decompress(request->encoding, bytes, &plain, &call->err);
        bytes = kiln_buf_str(&plain);
    }
    r = r < 0 ? blame(call, r) : put_bytes(call, bytes);
    kiln_buf_done(&plain);
    return r;
}
