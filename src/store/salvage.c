/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a file gives is first applied to a head that is thrown away: that counts what the store does
 * not have yet.  Then it is appended; the applier leaves out the same.  When all of a file is in
 * blocks, the file goes.
 */
#include "store/salvage.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "store/names.h"
#include "store/salvage_int.h"
#include "store/store_int.h"

#define MEMORY_BYTES ((size_t)256 << 20)
#define FILES_MAX    65536u
#define NAMES_BYTES  ((size_t)16 << 20)
enum { TRIES_MAX = 3 };

/* ---- the list of files ---- */

void kiln_salvage_done(struct kiln_salvage *s)
{
    kiln_array_free(&s->budget, (void **)&s->files, &s->cap, sizeof(*s->files));
    *s = (struct kiln_salvage){0};
}

enum kiln_salvage_state kiln_salvage_worst(const struct kiln_salvage *s)
{
    enum kiln_salvage_state worst = KILN_SALVAGE_WHOLE;

    for (uint32_t i = 0; i < s->n; i++)
        worst = s->files[i].state > worst ? s->files[i].state : worst;
    return worst;
}

static int add_file(struct kiln_salvage *s, struct kiln_str tenant, const char *name)
{
    struct kiln_salvage_file *file;
    int r = kiln_grow(&s->budget, (void **)&s->files, &s->cap, (uint64_t)s->n + 1,
                      sizeof(*s->files), FILES_MAX);

    if (r < 0)
        return r;
    file = &s->files[s->n];
    *file = (struct kiln_salvage_file){0};
    snprintf(file->name, sizeof(file->name), "%s", name);
    kiln_aside_tenant(file->name, file->tenant);
    s->n += tenant.len == 0 || kiln_str_eq(tenant, kiln_str_of(file->tenant));
    return 0;
}

static int list_files(struct kiln_io *io, struct kiln_str tenant, struct kiln_salvage *s)
{
    struct kiln_names names;
    int r;

    kiln_names_init(&names, NAMES_BYTES);
    r = kiln_names_in(&names, io, "aside");
    for (uint32_t i = 0; r == 0 && i < names.n; i++) {
        const char *name = kiln_names_get(&names, i) + strlen("aside/");

        if (kiln_aside_has_profiles(name))
            r = add_file(s, tenant, name);
    }
    kiln_names_done(&names);
    return r;
}

/* ---- counting what is new ---- */

struct salvaging {
    struct kiln_store *store;
    const struct kiln_salvage_opts *opts;
    struct kiln_salvage_file *file;
};

static bool is_known(void *context, struct kiln_str key, uint64_t time_ns,
                     struct kiln_content_hash hash)
{
    struct kiln_tenant *t = context;

    return kiln_head_has(t->head, key, time_ns, hash) ||
           (t->cutting && kiln_head_has(t->cutting, key, time_ns, hash)) ||
           kiln_seen_find(&t->seen, t->blocks, t->n_blocks, key, time_ns, hash) > 0;
}

static bool may_open(void *context, struct kiln_str key)
{
    (void)context;
    (void)key;
    return true;
}

static void taken(void *context, struct kiln_str key, uint64_t time_ns,
                  struct kiln_content_hash hash)
{
    (void)context;
    (void)key;
    (void)time_ns;
    (void)hash;
}

static int count_in(struct kiln_store *store, struct kiln_tenant *tenant,
                    struct kiln_head_batch *in)
{
    struct kiln_head *head;
    int r = kiln_tenant_new_head(store, &head);

    if (r < 0)
        return r;
    in->context = tenant;
    in->may_open = may_open;
    in->is_known = is_known;
    in->taken = taken;
    pthread_mutex_lock(&tenant->lock);
    r = kiln_head_apply(head, in);
    pthread_mutex_unlock(&tenant->lock);
    kiln_head_unref(head);
    return r;
}

/* How many profiles of a batch the store would take. */
static int count_new(struct salvaging *s, const struct kiln_salvaged *one, uint64_t received_ns,
                     uint32_t *ret_new)
{
    struct kiln_tenant *tenant = NULL;
    struct kiln_head_batch in = {.batch = one->batch,
                                 .number = 1,
                                 .received_ns = received_ns,
                                 .oldest_ns = kiln_store_oldest_ns(s->store, one->tenant)};
    int r;

    kiln_store_settle(&s->store->engine);
    r = kiln_tenant_get(s->store, kiln_str_of(one->tenant), &tenant);
    if (r == 0)
        r = count_in(s->store, tenant, &in);
    if (r < 0)
        return r;
    s->file->recovered += in.n_profiles;
    s->file->present += in.n_duplicates;
    s->file->too_old += in.n_too_old;
    *ret_new = in.n_profiles;
    return 0;
}

/* ---- appending ---- */

struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool done;
    int code;
};

static void append_done(struct kiln_append *append, int code)
{
    struct waiter *w = append->context;

    pthread_mutex_lock(&w->lock);
    w->done = true;
    w->code = code;
    pthread_cond_signal(&w->cond);
    pthread_mutex_unlock(&w->lock);
}

static int append_once(struct kiln_store *store, struct kiln_append *append)
{
    struct waiter w = {.lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};

    append->done = append_done;
    append->context = &w;
    kiln_store_append(&store->engine, append);
    pthread_mutex_lock(&w.lock);
    while (!w.done)
        pthread_cond_wait(&w.cond, &w.lock);
    pthread_mutex_unlock(&w.lock);
    pthread_mutex_destroy(&w.lock);
    pthread_cond_destroy(&w.cond);
    return w.code;
}

/* Where heads have the memory, writing them as blocks frees it. */
static int append_all(struct kiln_store *store, struct kiln_append *append, struct kiln_err *err)
{
    int r = append_once(store, append);

    for (int i = 0; r == -EAGAIN && i < TRIES_MAX; i++) {
        r = kiln_store_flush(&store->engine, err);
        if (r == 0)
            r = append_once(store, append);
    }
    if (r < 0)
        kiln_err_set(err, r, NULL, "%s", append->err.code ? append->err.text : kiln_err_text(r));
    return r;
}

static int take(void *context, const struct kiln_salvaged *one, struct kiln_err *err)
{
    struct salvaging *s = context;
    const struct kiln_salvage_file before = *s->file;
    struct kiln_append append = {
        .batch = one->batch,
        .tenant = one->tenant,
        .received_ns = one->received_ns ? one->received_ns : kiln_clock_unix_ns(),
    };
    uint32_t n = 0;
    int r = count_new(s, one, append.received_ns, &n);

    if (r == 0 && n && !s->opts->dry_run)
        r = append_all(s->store, &append, err);
    if (r == KILN_E_LIMIT) { /* smaller parts come, and are counted then */
        s->file->recovered = before.recovered;
        s->file->present = before.present;
        s->file->too_old = before.too_old;
    }
    return r;
}

/* ---- files ---- */

static bool is_block(const struct kiln_salvage_file *file)
{
    return kiln_str_ends(kiln_str_of(file->name), KILN_STR(KILN_BLOCK_ENDING));
}

/* What is still missing once the file was salvaged: the rest is in the store. */
static int put_note(struct salvaging *s)
{
    struct kiln_aside_note note = {.why = s->file->why.text};

    if (!kiln_aside_get(&s->store->aside, s->file->name, &note.entry))
        return 0;
    note.entry.profiles = s->file->unreadable;
    return kiln_aside_put(s->store, &note);
}

/* Everything that was taken is in blocks. */
static int settle_file(struct salvaging *s, struct kiln_err *err)
{
    struct kiln_salvage_file *file = s->file;
    int r = kiln_store_flush(&s->store->engine, err);

    if (r == 0 && (file->state == KILN_SALVAGE_WHOLE || s->opts->discard)) {
        r = kiln_aside_remove(s->store, file->name);
        file->removed = r == 0;
    } else if (r == 0 && file->state == KILN_SALVAGE_PARTLY && is_block(file)) {
        r = put_note(s);
    }
    return r < 0 ? kiln_err_set(err, r, "aside", "%s", kiln_err_text(r)) : 0;
}

static int salvage_file(struct salvaging *s, struct kiln_err *err)
{
    struct kiln_store *store = s->store;
    struct kiln_aside_entry part;
    struct kiln_salvage_source source = {
        .io = store->io,
        .memory_bytes = s->opts->memory_bytes ? s->opts->memory_bytes : MEMORY_BYTES,
        .follow = store->opts.follow,
        .each = take,
        .context = s,
    };
    struct kiln_window window;
    bool partial;
    int r;

    partial = kiln_aside_is_partial(store, s->file->name, &part);
    if (partial) { /* the rest may have got names since, and would look new */
        window = (struct kiln_window){part.min_ns,
                                      part.max_ns == UINT64_MAX ? UINT64_MAX : part.max_ns + 1};
        source.window = &window;
    }
    r = kiln_salvage_read(&source, s->file, err);
    if (r == 0 && !s->opts->dry_run)
        r = settle_file(s, err);
    return r;
}

static void note_progress(const struct kiln_salvage_opts *opts, uint32_t done, uint32_t all)
{
    if (opts->progress)
        opts->progress(opts->context, done, all);
}

static int salvage_all(struct kiln_store *store, const struct kiln_salvage_opts *opts,
                       struct kiln_salvage *list, struct kiln_err *err)
{
    int r = list_files(store->io, opts->tenant, list);

    if (r < 0)
        return kiln_err_set(err, r, "aside", "%s", kiln_err_text(r));
    for (uint32_t i = 0; r == 0 && i < list->n; i++) {
        struct salvaging s = {store, opts, &list->files[i]};

        r = salvage_file(&s, err);
        note_progress(opts, i + 1, list->n);
    }
    return r;
}

int kiln_store_salvage(struct kiln_engine *engine, const struct kiln_salvage_opts *opts,
                       struct kiln_salvage *ret, struct kiln_err *err)
{
    struct kiln_store *store = kiln_store_of(engine);
    struct kiln_salvage list = {.budget.limit = SIZE_MAX};
    int r;

    if (store->opts.read_only && !opts->dry_run)
        return kiln_err_set(err, -EROFS, NULL, "the store is open for reading only");
    pthread_mutex_lock(&store->keep.salvaging);
    r = salvage_all(store, opts, &list, err);
    pthread_mutex_unlock(&store->keep.salvaging);
    if (r < 0)
        kiln_salvage_done(&list);
    else
        *ret = list;
    return r;
}

/* ---- without a store ---- */

struct extracting {
    int (*each)(void *context, const struct kiln_salvaged *batch, struct kiln_err *err);
    void *context;
    struct kiln_salvage_file *file;
};

static int extract(void *context, const struct kiln_salvaged *one, struct kiln_err *err)
{
    struct extracting *x = context;

    x->file->recovered += one->batch->n_profiles;
    return x->each(x->context, one, err);
}

int kiln_salvage_extract(struct kiln_io *io, const struct kiln_salvage_opts *opts,
                         int (*each)(void *context, const struct kiln_salvaged *batch,
                                     struct kiln_err *err),
                         void *context, struct kiln_salvage *ret, struct kiln_err *err)
{
    struct kiln_salvage list = {.budget.limit = SIZE_MAX};
    int r = list_files(io, opts->tenant, &list);

    if (r < 0)
        kiln_err_set(err, r, "aside", "%s", kiln_err_text(r));
    for (uint32_t i = 0; r == 0 && i < list.n; i++) {
        struct extracting x = {each, context, &list.files[i]};
        struct kiln_salvage_source source = {
            .io = io,
            .memory_bytes = opts->memory_bytes ? opts->memory_bytes : MEMORY_BYTES,
            .follow = opts->follow,
            .each = extract,
            .context = &x,
        };

        r = kiln_salvage_read(&source, x.file, err);
        note_progress(opts, i + 1, list.n);
    }
    if (r < 0)
        kiln_salvage_done(&list);
    else
        *ret = list;
    return r;
}

/* ---- JSON ---- */

static const char *state_name(enum kiln_salvage_state state)
{
    static const char *const names[] = {"whole", "partly", "unreadable"};

    return names[state];
}

static void put_number(struct kiln_json_out *w, const char *name, uint64_t number)
{
    kiln_json_put_name(w, name);
    kiln_json_put_u64(w, number);
}

static void put_text(struct kiln_json_out *w, const char *name, const char *text)
{
    kiln_json_put_name(w, name);
    kiln_json_put_str(w, kiln_str_of(text));
}

static void put_file(struct kiln_json_out *w, const struct kiln_salvage_file *file)
{
    kiln_json_put_object(w);
    put_text(w, "file", file->name);
    put_text(w, "tenant", file->tenant);
    put_text(w, "state", state_name(file->state));
    put_number(w, "recovered", file->recovered);
    put_number(w, "present", file->present);
    put_number(w, "too_old", file->too_old);
    put_number(w, "unreadable", file->unreadable);
    kiln_json_put_name(w, "removed");
    kiln_json_put_bool(w, file->removed);
    put_text(w, "where", file->why.where);
    put_text(w, "why", file->why.text);
    kiln_json_end_object(w);
}

void kiln_salvage_format(const struct kiln_salvage *s, struct kiln_buf *out)
{
    uint64_t recovered = 0, present = 0, too_old = 0, unreadable = 0, kept = 0;
    struct kiln_json_out w;

    for (uint32_t i = 0; i < s->n; i++) {
        recovered += s->files[i].recovered;
        present += s->files[i].present;
        too_old += s->files[i].too_old;
        unreadable += s->files[i].unreadable;
        kept += s->files[i].state != KILN_SALVAGE_WHOLE && !s->files[i].removed;
    }
    kiln_json_out_init(&w, out, 2);
    kiln_json_put_object(&w);
    put_number(&w, "recovered", recovered);
    put_number(&w, "present", present);
    put_number(&w, "too_old", too_old);
    put_number(&w, "unreadable", unreadable);
    put_number(&w, "kept", kept);
    kiln_json_put_name(&w, "files");
    kiln_json_put_array(&w);
    for (uint32_t i = 0; i < s->n; i++)
        put_file(&w, &s->files[i]);
    kiln_json_end_array(&w);
    kiln_json_end_object(&w);
    kiln_buf_putc(out, '\n');
}
