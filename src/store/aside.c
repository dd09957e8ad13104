/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list is kept by name: a renewal reads only the files that are new.
 */
#include "store/aside.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "store/names.h"
#include "store/store_int.h"

#define NOTE           ".json"
#define NOTE_MAX       ((size_t)1 << 16)
#define NAMES_BYTES    ((size_t)16 << 20)
#define ENTRIES_MAX    4096u
#define ID_DIGITS      32u
#define SEGMENT_NAME   24u /* 20 digits and ".log" */
#define SENT_WITHIN_NS (3600 * UINT64_C(1000000000))

void kiln_aside_init(struct kiln_aside *aside)
{
    *aside = (struct kiln_aside){.budget.limit = SIZE_MAX};
    pthread_mutex_init(&aside->lock, NULL);
}

void kiln_aside_done(struct kiln_aside *aside)
{
    kiln_array_free(&aside->budget, (void **)&aside->all, &aside->cap, sizeof(*aside->all));
    aside->n = 0;
    pthread_mutex_destroy(&aside->lock);
}

/* ---- names ---- */

void kiln_aside_name(const char *path, char ret_name[KILN_ASIDE_PATH_MAX])
{
    snprintf(ret_name, KILN_ASIDE_PATH_MAX, "%s",
             strncmp(path, "blocks/", 7) == 0 ? path + 7 : path);
    for (char *at = ret_name; *at; at++) {
        if (*at == '/')
            *at = '-';
    }
}

static void path_of(const char *name, const char *ending, char ret_path[KILN_PATH_MAX + 16])
{
    snprintf(ret_path, KILN_PATH_MAX + 16, "aside/%s%s", name, ending);
}

static bool is_note(struct kiln_str name)
{
    return kiln_str_ends(name, KILN_STR(NOTE)) && name.len > strlen(NOTE);
}

bool kiln_aside_has_profiles(const char *name)
{
    struct kiln_str s = kiln_str_of(name);

    return s.len < KILN_ASIDE_PATH_MAX - strlen(NOTE) &&
           (kiln_str_ends(s, KILN_STR(KILN_BLOCK_ENDING)) || kiln_str_ends(s, KILN_STR(".otlp")) ||
            (kiln_str_ends(s, KILN_STR(".log")) && s.len == SEGMENT_NAME));
}

void kiln_aside_tenant(const char *name, char ret_tenant[KILN_TENANT_MAX + 1])
{
    const char *end = strrchr(name, '-');
    struct kiln_str tenant = {name, end ? (size_t)(end - name) : 0};

    ret_tenant[0] = '\0';
    if (kiln_tenant_valid(tenant))
        snprintf(ret_tenant, KILN_TENANT_MAX + 1, "%.*s", KILN_STR_ARG(tenant));
}

/* ---- what a file says of itself ---- */

/* A block that cannot be opened has nothing later than the time of its making, in its name. */
static void read_unknown_block(struct kiln_aside_entry *e)
{
    size_t len = strlen(e->name), ending = strlen(KILN_BLOCK_ENDING);
    uint64_t made = 0;

    if (len > ID_DIGITS + ending &&
        sscanf(e->name + len - ending - ID_DIGITS, "%16" SCNx64, &made) == 1 && made)
        e->max_ns = made + KILN_AHEAD_MAX_NS;
}

static void read_block(struct kiln_store *store, struct kiln_aside_entry *e)
{
    char path[KILN_PATH_MAX + 16];
    struct kiln_block *block;
    const struct kiln_block_info *info;

    path_of(e->name, "", path);
    kiln_aside_tenant(e->name, e->tenant);
    if (kiln_block_open_damaged(store->io, path, &block, NULL) < 0) {
        read_unknown_block(e);
        return;
    }
    info = kiln_block_info(block);
    e->min_ns = info->min_ns;
    e->max_ns = info->max_ns;
    e->profiles = info->n_profiles;
    kiln_block_unref(block);
}

static int read_member(struct kiln_json *r, struct kiln_str name, struct kiln_aside_entry *e,
                       bool *partial)
{
    struct kiln_str text;
    bool all = true;
    int n;

    if (kiln_str_eq(name, KILN_STR("from_ns")))
        return kiln_json_u64(r, &e->min_ns);
    if (kiln_str_eq(name, KILN_STR("to_ns")))
        return kiln_json_u64(r, &e->max_ns);
    if (kiln_str_eq(name, KILN_STR("profiles")))
        return kiln_json_u64(r, &e->profiles);
    if (kiln_str_eq(name, KILN_STR("all"))) {
        n = kiln_json_bool(r, &all);
        *partial = n == 0 && !all;
        return n;
    }
    if (!kiln_str_eq(name, KILN_STR("tenant")))
        return kiln_json_skip(r);
    n = kiln_json_string(r, &text);
    if (n == 0 && kiln_tenant_valid(text))
        snprintf(e->tenant, sizeof(e->tenant), "%.*s", KILN_STR_ARG(text));
    return n;
}

static int read_note(struct kiln_store *store, struct kiln_aside_entry *e, bool *ret_partial)
{
    char path[KILN_PATH_MAX + 16];
    struct kiln_str name;
    struct kiln_json r;
    void *data;
    size_t len;
    int n;

    path_of(e->name, NOTE, path);
    n = kiln_io_get(store->io, path, NOTE_MAX, &data, &len);
    if (n < 0)
        return n;
    kiln_json_init(&r, (struct kiln_str){data, len}, NULL);
    n = kiln_json_object(&r);
    while (n == 0 && (n = kiln_json_member(&r, &name)) > 0)
        n = read_member(&r, name, e, ret_partial);
    kiln_json_done(&r);
    kiln_free(data);
    return n;
}

static int note_received(void *context, const struct kiln_wal_record *record)
{
    struct kiln_aside_entry *e = context;

    e->min_ns = record->received_ns < e->min_ns ? record->received_ns : e->min_ns;
    e->max_ns = record->received_ns > e->max_ns ? record->received_ns : e->max_ns;
    return 0;
}

/*
 * A segment of the log is of all tenants.  What is lost came between its other records; profiles
 * are usually sent within the hour.
 */
static void read_segment(struct kiln_store *store, struct kiln_aside_entry *e)
{
    struct kiln_aside_entry times = {.min_ns = UINT64_MAX};
    char path[KILN_PATH_MAX + 16];
    bool damaged;

    path_of(e->name, "", path);
    if (kiln_wal_read_file(store->io, path, note_received, &times, &damaged, NULL) < 0 ||
        times.max_ns == 0)
        return;
    e->min_ns = times.min_ns > SENT_WITHIN_NS ? times.min_ns - SENT_WITHIN_NS : 0;
    e->max_ns = times.max_ns + KILN_AHEAD_MAX_NS;
}

static void read_entry(struct kiln_store *store, struct kiln_aside_entry *e)
{
    const struct kiln_aside_entry empty = {.max_ns = UINT64_MAX};
    char name[KILN_ASIDE_PATH_MAX];
    bool partial = false;

    snprintf(name, sizeof(name), "%s", e->name);
    *e = empty;
    snprintf(e->name, sizeof(e->name), "%s", name);
    if (read_note(store, e, &partial) == 0)
        return;
    *e = empty;
    snprintf(e->name, sizeof(e->name), "%s", name);
    if (kiln_str_ends(kiln_str_of(name), KILN_STR(KILN_BLOCK_ENDING)))
        read_block(store, e);
    else if (kiln_str_ends(kiln_str_of(name), KILN_STR(".log")))
        read_segment(store, e);
    else
        kiln_aside_tenant(e->name, e->tenant);
}

bool kiln_aside_is_partial(struct kiln_store *store, const char *name,
                           struct kiln_aside_entry *ret_entry)
{
    bool partial = false;

    *ret_entry = (struct kiln_aside_entry){0};
    snprintf(ret_entry->name, sizeof(ret_entry->name), "%s", name);
    return read_note(store, ret_entry, &partial) == 0 && partial;
}

/* ---- the list ---- */

static struct kiln_aside_entry *find(struct kiln_aside *aside, const char *name)
{
    for (uint32_t i = 0; i < aside->n; i++) {
        if (strcmp(aside->all[i].name, name) == 0)
            return &aside->all[i];
    }
    return NULL;
}

/* Under the lock. */
static int keep_entry(struct kiln_aside *aside, const struct kiln_aside_entry *entry)
{
    struct kiln_aside_entry *old = find(aside, entry->name);
    int r;

    if (old) {
        *old = *entry;
        return 0;
    }
    r = kiln_grow(&aside->budget, (void **)&aside->all, &aside->cap, (uint64_t)aside->n + 1,
                  sizeof(*aside->all), ENTRIES_MAX);
    if (r == 0)
        aside->all[aside->n++] = *entry;
    return r;
}

bool kiln_aside_get(struct kiln_aside *aside, const char *name, struct kiln_aside_entry *ret_entry)
{
    struct kiln_aside_entry *entry;

    pthread_mutex_lock(&aside->lock);
    entry = find(aside, name);
    if (entry)
        *ret_entry = *entry;
    pthread_mutex_unlock(&aside->lock);
    return entry != NULL;
}

static bool is_named(const struct kiln_names *names, const char *name)
{
    for (uint32_t i = 0; i < names->n; i++) {
        if (strcmp(kiln_names_get(names, i) + strlen("aside/"), name) == 0)
            return true;
    }
    return false;
}

static void forget_gone(struct kiln_aside *aside, const struct kiln_names *names)
{
    uint32_t kept = 0;

    pthread_mutex_lock(&aside->lock);
    for (uint32_t i = 0; i < aside->n; i++) {
        if (is_named(names, aside->all[i].name))
            aside->all[kept++] = aside->all[i];
    }
    aside->n = kept;
    pthread_mutex_unlock(&aside->lock);
}

static int learn(struct kiln_store *store, const char *name)
{
    struct kiln_aside *aside = &store->aside;
    struct kiln_aside_entry entry;
    bool known;
    int r;

    pthread_mutex_lock(&aside->lock);
    known = find(aside, name) != NULL;
    pthread_mutex_unlock(&aside->lock);
    if (known)
        return 0;
    snprintf(entry.name, sizeof(entry.name), "%s", name);
    read_entry(store, &entry);
    pthread_mutex_lock(&aside->lock);
    r = find(aside, name) ? 0 : keep_entry(aside, &entry);
    pthread_mutex_unlock(&aside->lock);
    return r;
}

/* A note whose file the operator removed. */
static void drop_note(struct kiln_store *store, const struct kiln_names *names, const char *path)
{
    char name[KILN_PATH_MAX];

    snprintf(name, sizeof(name), "%.*s", (int)(strlen(path) - strlen("aside/" NOTE)),
             path + strlen("aside/"));
    if (kiln_aside_has_profiles(name) && !is_named(names, name) && !store->opts.read_only)
        (void)store->io->unlink(store->io, path);
}

static int drop_leftover(void *context, const char *name)
{
    struct kiln_io *io = context;
    char path[KILN_PATH_MAX + 16];

    path_of(name, "", path);
    if (kiln_str_ends(kiln_str_of(name), KILN_STR(".tmp")) && strlen(name) < KILN_PATH_MAX)
        (void)io->unlink(io, path);
    return 0;
}

void kiln_aside_sweep(struct kiln_store *store)
{
    if (!store->opts.read_only)
        (void)store->io->list(store->io, "aside", drop_leftover, store->io);
}

int kiln_aside_load(struct kiln_store *store)
{
    struct kiln_names names;
    int r;

    kiln_names_init(&names, NAMES_BYTES);
    r = kiln_names_in(&names, store->io, "aside");
    if (r == 0)
        forget_gone(&store->aside, &names);
    for (uint32_t i = 0; r == 0 && i < names.n; i++) {
        const char *path = kiln_names_get(&names, i);

        if (is_note(kiln_str_of(path)))
            drop_note(store, &names, path);
        else if (kiln_aside_has_profiles(path + strlen("aside/")))
            r = learn(store, path + strlen("aside/"));
    }
    kiln_names_done(&names);
    return r;
}

void kiln_aside_each(struct kiln_aside *aside, const char *tenant,
                     void (*each)(void *context, uint64_t min_ns, uint64_t max_ns), void *context)
{
    pthread_mutex_lock(&aside->lock);
    for (uint32_t i = 0; i < aside->n; i++) {
        const struct kiln_aside_entry *e = &aside->all[i];

        if (e->tenant[0] == '\0' || strcmp(e->tenant, tenant) == 0)
            each(context, e->min_ns, e->max_ns);
    }
    pthread_mutex_unlock(&aside->lock);
}

/* ---- notes ---- */

static void format_note(const struct kiln_aside_note *note, struct kiln_buf *out)
{
    struct kiln_json_out w;

    kiln_json_out_init(&w, out, 2);
    kiln_json_put_object(&w);
    kiln_json_put_name(&w, "tenant");
    kiln_json_put_str(&w, kiln_str_of(note->entry.tenant));
    kiln_json_put_name(&w, "from_ns");
    kiln_json_put_u64(&w, note->entry.min_ns);
    kiln_json_put_name(&w, "to_ns");
    kiln_json_put_u64(&w, note->entry.max_ns);
    kiln_json_put_name(&w, "profiles");
    kiln_json_put_u64(&w, note->entry.profiles);
    kiln_json_put_name(&w, "all");
    kiln_json_put_bool(&w, note->all_lost);
    kiln_json_put_name(&w, "why");
    kiln_json_put_str(&w, kiln_str_of(note->why ? note->why : ""));
    kiln_json_put_name(&w, "services");
    kiln_json_put_array(&w);
    for (uint32_t i = 0; i < note->n_services; i++)
        kiln_json_put_str(&w, note->services[i]);
    kiln_json_end_array(&w);
    kiln_json_end_object(&w);
    kiln_buf_putc(out, '\n');
}

int kiln_aside_put(struct kiln_store *store, const struct kiln_aside_note *note)
{
    struct kiln_aside *aside = &store->aside;
    char path[KILN_PATH_MAX + 16];
    struct kiln_buf text;
    int r = 0, kept;

    pthread_mutex_lock(&aside->lock);
    kept = keep_entry(aside, &note->entry);
    pthread_mutex_unlock(&aside->lock);
    if (store->opts.read_only)
        return kept;
    path_of(note->entry.name, NOTE, path);
    kiln_buf_init(&text, NOTE_MAX);
    format_note(note, &text);
    r = text.error;
    r = r < 0 ? r : store->io->mkdir(store->io, "aside");
    r = r < 0 ? r : store->io->sync_dir(store->io, ".");
    r = r < 0 ? r : kiln_io_put(store->io, path, text.ptr, text.len);
    kiln_buf_done(&text);
    return r < 0 ? r : kept;
}

void kiln_aside_note_block(struct kiln_aside_note *note, const struct kiln_block *block)
{
    const struct kiln_block_info *info = kiln_block_info(block);
    char tenant[KILN_TENANT_MAX + 1], path[KILN_PATH_MAX];

    snprintf(tenant, sizeof(tenant), "%.*s", KILN_STR_ARG(info->tenant));
    kiln_block_path(tenant, &info->id, path);
    *note = (struct kiln_aside_note){
        .entry = {.min_ns = info->min_ns, .max_ns = info->max_ns, .profiles = info->n_profiles},
        .all_lost = true};
    kiln_aside_name(path, note->entry.name);
    snprintf(note->entry.tenant, sizeof(note->entry.tenant), "%s", tenant);
}

void kiln_aside_note_service(struct kiln_aside_note *note, struct kiln_str service)
{
    for (uint32_t i = 0; i < note->n_services; i++) {
        if (kiln_str_eq(note->services[i], service))
            return;
    }
    if (note->n_services < KILN_ARRAY_LEN(note->services))
        note->services[note->n_services++] = service;
}

int kiln_aside_remove(struct kiln_store *store, const char *name)
{
    char path[KILN_PATH_MAX + 16];
    int r;

    path_of(name, "", path);
    r = store->io->unlink(store->io, path);
    if (r == 0 || r == -ENOENT)
        r = store->io->sync_dir(store->io, "aside");
    if (r < 0)
        return r;
    path_of(name, NOTE, path);
    r = store->io->unlink(store->io, path);
    return r < 0 && r != -ENOENT ? r : kiln_aside_load(store);
}
