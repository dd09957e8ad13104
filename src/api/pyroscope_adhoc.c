/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles that people upload to look at them: of any format, and not part of the store.
 *
 *   AdHocProfilesGetResponse   1 id 2 name 3 uploaded_at 4 profile_type 5 profile_types
 *                              6 flamebearer_profile (JSON in a text)
 *   AdHocProfilesListResponse  1 profiles { 1 id 2 name 3 uploaded_at }
 *   AdHocProfilesDiffResponse  1 profile_types 2 flamebearer_profile
 *
 * They are kept (api/kept.h): the list as items of the kind "adhoc", by id, each with its file
 * name; each profile, in base64 as it came, as the only item of a kind of its own.  The id is the
 * profile's hash: who uploads it twice has it once.  Past a hundred the oldest one goes.
 *
 * The memory that a profile takes is reserved like that of a question.
 */
#include <errno.h>
#include <stdio.h>

#include "api/pyroscope_flame.h"
#include "api/pyroscope_int.h"
#include "base/bytetext.h"
#include "base/clock.h"
#include "base/sha256.h"
#include "codec/codec.h"

#define LIST     "adhoc"
#define CONTENT  "profile"
#define KEPT_MAX 100u
#define ID_BYTES 12u
#define MEMORY   ((size_t)24 << 20) /* of one uploaded profile, with its view and tree */

struct upload {
    struct kiln_str bytes; /* as it came, in the arena */
    struct kiln_str name;
    uint64_t modified_ns;
    struct kiln_batch *batch;
    struct kiln_type *types;
    struct kiln_view *view;
};

static void upload_done(struct upload *upload)
{
    kiln_view_free(upload->view);
    kiln_free(upload->types);
    kiln_batch_unref(upload->batch);
}

/* ---- what is kept ---- */

/* A kind for each profile; ids are hexadecimal, so that they may be part of a file's name. */
static int kind_of(struct kiln_pyro_call *call, struct kiln_str id, char kind[48])
{
    uint8_t bytes[ID_BYTES];

    if (kiln_hex_decode(id, bytes, sizeof(bytes)) < 0)
        return kiln_pyro_refuse(call, "no such profile");
    snprintf(kind, 48, LIST "-%.*s", KILN_STR_ARG(id));
    for (char *c = kind; *c; c++)
        *c = *c >= 'A' && *c <= 'F' ? (char)(*c - 'A' + 'a') : *c;
    return 0;
}

struct looking {
    struct kiln_pyro_call *call;
    struct kiln_str id; /* which; empty: the oldest */
    struct upload *upload;
    struct kiln_str oldest;
    uint64_t oldest_ns;
    uint32_t n;
};

static int take_content(void *context, const struct kiln_kept_item *item)
{
    struct looking *looking = context;
    struct kiln_arena *arena = &looking->call->arena;
    char *bytes = kiln_arena_alloc(arena, kiln_base64_room(item->text.len));
    size_t n = 0;

    if (!bytes)
        return -ENOMEM;
    if (kiln_base64_decode(item->text, bytes, &n) < 0)
        return KILN_E_MALFORMED;
    looking->upload->bytes = (struct kiln_str){bytes, n};
    return 0;
}

static int take_entry(void *context, const struct kiln_kept_item *item)
{
    struct looking *looking = context;

    looking->n++;
    if (looking->n == 1 || item->modified_ns < looking->oldest_ns) {
        looking->oldest = kiln_arena_copy(&looking->call->arena, item->name);
        looking->oldest_ns = item->modified_ns;
    }
    if (looking->upload && kiln_str_eq(item->name, looking->id)) {
        looking->upload->name = kiln_arena_copy(&looking->call->arena, item->text);
        looking->upload->modified_ns = item->modified_ns;
    }
    return 0;
}

static int find(struct kiln_pyro_call *call, struct kiln_str tenant, struct kiln_str id,
                struct upload *upload)
{
    struct looking looking = {.call = call, .id = id, .upload = upload};
    char kind[48];
    int r = kind_of(call, id, kind);

    if (r == 0)
        r = kiln_kept_each(call->api->kept, tenant, LIST, take_entry, &looking, &call->err);
    if (r == 0)
        r = kiln_kept_each(call->api->kept, tenant, kind, take_content, &looking, &call->err);
    if (r == 0 && !upload->bytes.ptr)
        r = kiln_pyro_refuse(call, "no such profile");
    return r;
}

static int keep(struct kiln_pyro_call *call, struct kiln_str tenant, struct kiln_str id,
                uint64_t now_ns)
{
    struct kiln_kept *kept = call->api->kept;
    struct kiln_kept_item content = {KILN_STR(CONTENT), call->request.profile, now_ns};
    struct kiln_kept_item entry = {id, call->request.name, now_ns};
    struct looking looking = {.call = call};
    char kind[48];
    int r = kind_of(call, id, kind);

    if (r == 0)
        r = kiln_kept_set(kept, tenant, kind, &content, &call->err);
    if (r == 0)
        r = kiln_kept_set(kept, tenant, LIST, &entry, &call->err);
    if (r == 0)
        r = kiln_kept_each(kept, tenant, LIST, take_entry, &looking, &call->err);
    if (r == 0 && looking.n > KEPT_MAX) {
        r = kind_of(call, looking.oldest, kind);
        if (r == 0)
            r = kiln_kept_delete(kept, tenant, LIST, looking.oldest, &call->err);
        if (r >= 0)
            r = kiln_kept_delete(kept, tenant, kind, KILN_STR(CONTENT), &call->err);
    }
    return r < 0 ? r : 0;
}

/* ---- profiles ---- */

static int read_profile(struct kiln_pyro_call *call, struct upload *upload)
{
    struct kiln_decode_opts opts = {.limits = kiln_limits_default, .input_bytes = MEMORY / 4};
    int r;

    opts.limits.memory_bytes = MEMORY / 2;
    r = kiln_decode(upload->bytes, &opts, &upload->batch, NULL, &call->err);
    if (r == 0)
        r = kiln_types_of_batch(upload->batch, false, &upload->types);
    return r;
}

/* One type of it: by its name, or the usual one. */
static int choose_type(struct kiln_pyro_call *call, struct upload *upload)
{
    struct kiln_view_opts opts = {.sample_type = call->request.type, .memory_bytes = MEMORY / 4};
    const struct kiln_type *type;

    if (upload->batch->n_profiles == 0)
        return kiln_pyro_refuse(call, "the file has no profile");
    type = &upload->types[kiln_type_default(upload->batch, upload->types)];
    if (opts.sample_type.len == 0)
        opts.sample_type = type->type;
    return kiln_view_new(upload->batch, &opts, &upload->view, &call->err);
}

/* The names of types, each once, from the last to the first; behind them what they add up to. */
static void put_types(struct kiln_pb_out *w, uint32_t field, const struct upload *upload)
{
    const struct kiln_type *wall = &kiln_type_wall.type;

    if (kiln_type_is_made(wall, upload->types, upload->batch->n_profiles))
        kiln_pb_put_element(w, field, wall->type);
    for (uint32_t i = upload->batch->n_profiles; i-- > 0;) {
        uint32_t first = 0;

        while (!kiln_str_eq(upload->types[first].type, upload->types[i].type))
            first++;
        if (first == i)
            kiln_pb_put_element(w, field, upload->types[i].type);
    }
}

/* The flame graph of one, or of both, as JSON in a text. */
static int put_flame(struct kiln_pyro_call *call, const struct upload *base,
                     const struct upload *upload, uint32_t field, struct kiln_leash *leash)
{
    struct kiln_tree_opts opts = {.order = KILN_TREE_BY_NAME, .memory_bytes = MEMORY / 4};
    struct kiln_json_out json;
    struct kiln_levels levels;
    struct kiln_tree *tree;
    struct kiln_buf text;
    int r = kiln_pyro_nodes(call, call->request.max_nodes, &opts.nodes_max);

    if (r == 0)
        r = base ? kiln_tree_new_diff(base->view, upload->view, 1, &opts, &tree, &call->err)
                 : kiln_tree_new(upload->view, &opts, &tree, &call->err);
    if (r < 0)
        return r;
    r = kiln_levels_init_tree(&levels, tree, leash);
    if (r == 0) {
        kiln_buf_init(&text, KILN_PYRO_ANSWER_MAX);
        kiln_json_out_init(&json, &text, 0);
        kiln_json_put_object(&json);
        kiln_pyro_put_flamebearer(&json, &levels, &upload->view->type);
        kiln_pyro_put_ticks(&json, &levels);
        kiln_json_end_object(&json);
        kiln_pb_put_bytes(&call->out, field, kiln_buf_str(&text));
        r = text.error;
        kiln_buf_done(&text);
        kiln_levels_done(&levels);
    }
    kiln_tree_free(tree);
    return r;
}

/* ---- methods ---- */

/* An ask without a question, for its share of memory. */
static int reserve(struct kiln_pyro_call *call, size_t bytes, struct kiln_ask **ret_ask)
{
    struct kiln_window always = {0, 0};
    struct kiln_ask *ask;
    int r = kiln_pyro_ask(call, &call->request, KILN_PYRO_MATCHERS, &always, &ask);

    if (r < 0)
        return r;
    r = kiln_leash_reserve(&ask->leash, bytes, &call->err);
    if (r < 0)
        kiln_pyro_ask_close(ask);
    else
        *ret_ask = ask;
    return r;
}

static void give_back(struct kiln_ask *ask, size_t bytes)
{
    kiln_leash_give(&ask->leash, bytes);
    kiln_pyro_ask_close(ask);
}

static int answer(struct kiln_pyro_call *call, struct kiln_str id, struct upload *upload)
{
    struct kiln_pb_out *w = &call->out;
    struct kiln_ask *ask;
    int r = reserve(call, MEMORY, &ask);

    if (r < 0)
        return r;
    r = read_profile(call, upload);
    if (r == 0)
        r = choose_type(call, upload);
    if (r == 0)
        r = put_flame(call, NULL, upload, 6, &ask->leash);
    if (r == 0) {
        put_types(w, 5, upload);
        kiln_pb_put_bytes(w, 4, upload->view->type.type);
        kiln_pb_put_number(w, 3, upload->modified_ns / KILN_NS_PER_MS);
        kiln_pb_put_bytes(w, 2, upload->name);
        kiln_pb_put_bytes(w, 1, id);
    }
    upload_done(upload);
    give_back(ask, MEMORY);
    return r;
}

int kiln_pyro_adhoc_upload(struct kiln_pyro_call *call)
{
    struct kiln_str tenant, base64 = call->request.profile;
    struct upload upload = {.name = call->request.name, .modified_ns = kiln_clock_unix_ns()};
    uint8_t digest[KILN_SHA256_BYTES];
    struct kiln_buf id;
    char *bytes;
    int r = kiln_pyro_one_tenant(call, &tenant);

    if (r < 0)
        return r;
    bytes = kiln_arena_alloc(&call->arena, kiln_base64_room(base64.len));
    if (!bytes)
        return -ENOMEM;
    if (base64.len == 0 || kiln_base64_decode(base64, bytes, &upload.bytes.len) < 0)
        return kiln_pyro_refuse(call, "the profile is not in base64");
    upload.bytes.ptr = bytes;
    kiln_sha256(upload.bytes, digest);
    kiln_buf_init(&id, 64);
    kiln_buf_add_hex(&id, digest, ID_BYTES);
    r = id.error ? id.error : answer(call, kiln_buf_str(&id), &upload);
    if (r == 0)
        r = keep(call, tenant, kiln_buf_str(&id), upload.modified_ns);
    kiln_buf_done(&id);
    return r;
}

int kiln_pyro_adhoc_get(struct kiln_pyro_call *call)
{
    struct upload upload = {0};
    struct kiln_str tenant;
    int r = kiln_pyro_one_tenant(call, &tenant);

    if (r == 0)
        r = find(call, tenant, call->request.id, &upload);
    return r < 0 ? r : answer(call, call->request.id, &upload);
}

static int put_entry(void *context, const struct kiln_kept_item *item)
{
    struct kiln_pb_out *w = context;
    size_t end = kiln_pb_mark(w);

    kiln_pb_put_number(w, 3, item->modified_ns / KILN_NS_PER_MS);
    kiln_pb_put_bytes(w, 2, item->text);
    kiln_pb_put_bytes(w, 1, item->name);
    kiln_pb_put_message(w, 1, end);
    return 0;
}

int kiln_pyro_adhoc_list(struct kiln_pyro_call *call)
{
    struct kiln_str tenant;
    int r = kiln_pyro_one_tenant(call, &tenant);

    return r < 0 ? r
                 : kiln_kept_each(call->api->kept, tenant, LIST, put_entry, &call->out, &call->err);
}

/* Reads both and lays one over the other. */
static int compare(struct kiln_pyro_call *call, struct upload *left, struct upload *right)
{
    struct kiln_ask *ask;
    int r = reserve(call, 2 * MEMORY, &ask);

    if (r < 0)
        return r;
    r = read_profile(call, left);
    if (r == 0)
        r = read_profile(call, right);
    if (r == 0)
        r = choose_type(call, left);
    if (r == 0)
        r = choose_type(call, right);
    if (r == 0)
        r = put_flame(call, left, right, 2, &ask->leash);
    if (r == 0)
        put_types(&call->out, 1, right);
    upload_done(left);
    upload_done(right);
    give_back(ask, 2 * MEMORY);
    return r;
}

int kiln_pyro_adhoc_diff(struct kiln_pyro_call *call)
{
    struct upload left = {0}, right = {0};
    struct kiln_str tenant;
    int r = kiln_pyro_one_tenant(call, &tenant);

    if (r == 0)
        r = find(call, tenant, call->request.left_id, &left);
    if (r == 0)
        r = find(call, tenant, call->request.right_id, &right);
    return r < 0 ? r : compare(call, &left, &right);
}
