/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places in the file become addresses by the program headers of the executable, or of its debug
 * file (naming/debug_file.h); the resolver's child reads the executable, or the debug file where
 * there is none, and says what it wants besides; frames become symbols of one address each.
 *
 * Where a debug file, or a table of symbols, is there, what has no name in it has none: that is put
 * too, as a symbol without frames.  Of a stripped executable only what it names is put, and the
 * rest stays missing.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/bytetext.h"
#include "base/clock.h"
#include "base/hash.h"
#include "naming/job_int.h"

enum {
    SLICE = 1024, /* addresses of one ask */
    FRAMES_MAX = SLICE * KILN_NAME_FRAMES_MAX,
    PATIENCE_MS = 20000, /* for lines of one slice */
    PAUSE_MS = 100,      /* between two asks for the same */
    SHALLOW_ROUNDS = 3,  /* after so many, names without lines will do */
    AGAIN_S = 600,       /* what was not found is looked for again */
    SOON_S = 30,
};

struct naming_run {
    struct kiln_naming *naming;
    const char *tenant;
    const struct kiln_unnamed *unnamed;
    struct kiln_found_files files;
    struct kiln_debug_map map;
    struct kiln_source source;
    char key[KILN_DEBUG_ID_MAX + 64];
    char lacks[2 * KILN_BUILD_ID_MAX + 1]; /* an alternate that nobody has */
    bool accept_shallow, left_shallow;
    uint32_t n_named, n_nothing, n_left;
    /* of one slice */
    uint32_t n;
    uint64_t places[SLICE], addresses[SLICE];
    struct kiln_name names[SLICE];
    struct kiln_symbol symbols[SLICE];
    struct kiln_symbol_frame *frames;
    uint32_t n_frames, cap_frames;
    struct kiln_budget budget;
};

/* ---- what the child wants besides ---- */

static int open_alternate(struct naming_run *run, const struct kiln_wanted *wanted, int *ret_fd)
{
    char id[2 * KILN_BUILD_ID_MAX + 1] = "";
    int r;

    if (wanted->build_id_len == 0 || wanted->build_id_len > KILN_BUILD_ID_MAX)
        return -ENOENT;
    kiln_hex_encode(wanted->build_id, wanted->build_id_len, id);
    r = kiln_naming_find_info(run->naming, run->tenant, kiln_str_of(id), ret_fd);
    if (r < 0)
        memcpy(run->lacks, id, sizeof(id));
    return r;
}

static int open_wanted(void *context, const struct kiln_wanted *wanted, int *ret_fd)
{
    struct naming_run *run = context;

    switch (wanted->kind) {
    case KILN_WANTED_DEBUG:
        if (run->files.info < 0 || run->source.fd == run->files.info)
            return -ENOENT;
        *ret_fd = dup(run->files.info);
        return *ret_fd < 0 ? -errno : 0;
    case KILN_WANTED_ALTERNATE:
        return open_alternate(run, wanted, ret_fd);
    case KILN_WANTED_DWP:
        return kiln_depot_get(run->naming->opts.depot, run->tenant, run->unnamed->build_id,
                              KILN_DEBUG_DWP, ret_fd);
    default:
        return -ENOENT;
    }
}

/* Another file of the same build id is another source. */
static uint64_t identity(int fd)
{
    struct stat st;
    uint64_t id;

    if (fd < 0 || fstat(fd, &st) < 0)
        return 1;
    id = kiln_hash_mix((uint64_t)st.st_dev, (uint64_t)st.st_ino);
    return kiln_hash_mix(kiln_hash_mix(id, (uint64_t)st.st_size),
                         (uint64_t)st.st_mtim.tv_sec ^ (uint64_t)st.st_mtim.tv_nsec);
}

static int prepare(struct naming_run *run)
{
    struct kiln_found_files *files = &run->files;
    struct kiln_str id = run->unnamed->build_id;
    uint64_t version = kiln_hash_mix(identity(files->executable), identity(files->info));
    int fd = files->executable >= 0 ? files->executable : files->info;
    int r = files->executable >= 0 ? kiln_debug_map_load(files->executable, &run->map) : -ENOENT;

    if (r < 0 && files->info >= 0)
        r = kiln_debug_map_load(files->info, &run->map);
    if (r < 0)
        return r;
    version = kiln_hash_mix(version, run->naming->generation + 1);
    snprintf(run->key, sizeof(run->key), "%.*s/%llx", KILN_STR_ARG(id),
             (unsigned long long)version);
    run->source = (struct kiln_source){.kind = KILN_SOURCE_ELF,
                                       .fd = fd,
                                       .id = kiln_hash_mix(version, kiln_hash(id.ptr, id.len)),
                                       .version = version,
                                       .key = kiln_str_of(run->key),
                                       .open = open_wanted,
                                       .context = run};
    return 0;
}

/* ---- a slice ---- */

static uint32_t count_shallow(const struct naming_run *run)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < run->n; i++)
        n += run->names[i].shallow;
    return n;
}

/* Asks, and asks again while lines are still being looked for. */
static int ask(struct naming_run *run)
{
    const struct timespec pause = {0, PAUSE_MS * 1000000L};
    uint64_t end_ns = kiln_clock_mono_ns() + PATIENCE_MS * KILN_NS_PER_MS;

    for (;;) {
        int r = kiln_resolver_ask(run->naming->resolver, &run->source, run->addresses, run->n,
                                  run->names);

        if (r < 0 || count_shallow(run) == 0)
            return r;
        if (atomic_load(&run->naming->stopping))
            return -ECANCELED;
        if (kiln_clock_mono_ns() > end_ns)
            return 0;
        nanosleep(&pause, NULL);
    }
}

static int add_frames(struct naming_run *run, const struct kiln_name *name)
{
    int r = kiln_grow(&run->budget, (void **)&run->frames, &run->cap_frames,
                      run->n_frames + UINT64_C(1) * name->n, sizeof(*run->frames), FRAMES_MAX);

    for (uint32_t i = 0; r == 0 && i < name->n; i++) {
        const struct kiln_name_frame *from = &name->frames[i];

        run->frames[run->n_frames++] = (struct kiln_symbol_frame){.name = from->function,
                                                                  .system_name = from->system_name,
                                                                  .file = from->file,
                                                                  .line = from->line,
                                                                  .start_line = from->start_line};
    }
    return r;
}

/* Symbols of those that shall have one; their frames are found when all are there. */
static int collect(struct naming_run *run, uint32_t *ret_n)
{
    bool believed = run->files.has_lines || run->files.has_names;
    uint32_t n = 0;

    run->n_frames = 0;
    for (uint32_t i = 0; i < run->n; i++) {
        const struct kiln_name *name = &run->names[i];
        int r;

        if (name->shallow && !run->accept_shallow) {
            run->left_shallow = true;
            continue;
        }
        if (name->n == 0 && !believed) {
            run->n_left++;
            continue;
        }
        r = add_frames(run, name);
        if (r < 0)
            return r;
        run->symbols[n++] =
            (struct kiln_symbol){.address = run->places[i], .size = 1, .n = name->n};
        *(name->n ? &run->n_named : &run->n_nothing) += 1;
    }
    for (uint32_t i = 0, at = 0; i < n; at += run->symbols[i++].n)
        run->symbols[i].frames = run->frames + at;
    *ret_n = n;
    return 0;
}

static int put(struct naming_run *run, uint32_t n, struct kiln_err *err)
{
    struct kiln_engine *engine = run->naming->opts.engine;

    return n == 0 ? 0
                  : engine->ops->put_symbols(engine, kiln_str_of(run->tenant),
                                             run->unnamed->build_id, run->symbols, n, err);
}

static int name_slice(struct naming_run *run, struct kiln_err *err)
{
    uint32_t n = 0;
    int r;

    if (run->n == 0)
        return 0;
    r = ask(run);
    if (r == 0 && kiln_resolver_is_aside(run->naming->resolver, &run->source))
        return kiln_err_set(
            err, -ETIME, NULL,
            "reading it took too long, or ended the process that read it: it is set "
            "aside for an hour");
    if (r == 0)
        r = collect(run, &n);
    if (r < 0)
        return kiln_err_set(err, r, NULL, "names cannot be read: %s", kiln_err_text(r));
    return put(run, n, err);
}

/* What is in no code of the file has no name, whatever the file has. */
static int put_outside(struct naming_run *run, uint64_t place, struct kiln_err *err)
{
    run->symbols[0] = (struct kiln_symbol){.address = place, .size = 1};
    run->n_nothing++;
    return put(run, 1, err);
}

static int name_all(struct naming_run *run, struct kiln_err *err)
{
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < run->unnamed->n; i++) {
        uint64_t place = run->unnamed->addresses[i];

        if (!kiln_debug_map_address(&run->map, place, &run->addresses[run->n])) {
            r = put_outside(run, place, err);
            continue;
        }
        run->places[run->n++] = place;
        if (run->n < SLICE)
            continue;
        r = name_slice(run, err);
        run->n = 0;
    }
    return r < 0 ? r : name_slice(run, err);
}

/* ---- one build id ---- */

static void conclude(struct naming_run *run, int r, const struct kiln_err *err)
{
    struct kiln_naming *naming = run->naming;
    struct kiln_found_files *files = &run->files;
    bool found = files->executable >= 0 || files->info >= 0;
    struct kiln_note *note;
    uint64_t wait_s = AGAIN_S;
    char why[KILN_NOTE_WHY];

    if (r < 0)
        snprintf(why, sizeof(why), "the file is there, but %s", err->text);
    else if (run->left_shallow)
        snprintf(why, sizeof(why), "lines are still being looked for");
    else if (found && run->n_left)
        snprintf(why, sizeof(why),
                 "its executable is there, but stripped: a debug file is missing%s%.200s",
                 files->why[0] ? "; " : "", files->why);
    else
        snprintf(why, sizeof(why), "%s", files->why);
    if (r < 0)
        wait_s = SOON_S;
    else if (found && run->n_left == 0)
        wait_s = 0; /* what comes next is new */
    pthread_mutex_lock(&naming->lock);
    note = kiln_note_get(&naming->notes, run->tenant, run->unnamed->build_id);
    if (r < 0 && strcmp(note->why, why) != 0)
        kiln_log(naming->opts.log, KILN_LOG_WARN, "a file gives no names", "build_id", "%s",
                 note->build_id, "reason", "%s", err->text, NULL);
    memcpy(note->why, why, sizeof(why));
    memcpy(note->lacks, run->lacks, sizeof(note->lacks));
    note->shallow = run->left_shallow ? note->shallow + 1 : 0;
    note->again_ns = kiln_clock_mono_ns() + wait_s * KILN_NS_PER_S;
    pthread_mutex_unlock(&naming->lock);
    naming->unfinished |= wait_s == 0 && (run->left_shallow || run->unnamed->more);
    kiln_metric_add(naming->metrics.named, run->n_named);
    kiln_metric_add(naming->metrics.nothing, run->n_nothing);
    kiln_metric_add(r < 0 ? naming->metrics.failed : naming->metrics.files, found);
}

/* Whether it was looked for not long ago; and whether names without lines will do by now. */
static bool is_waiting(struct kiln_naming *naming, const char *tenant, struct kiln_str build_id,
                       bool *ret_accept_shallow)
{
    const struct kiln_note *note;
    bool waits;

    pthread_mutex_lock(&naming->lock);
    note = kiln_note_find(&naming->notes, tenant, build_id);
    waits = note && note->again_ns > kiln_clock_mono_ns();
    *ret_accept_shallow = note && note->shallow >= SHALLOW_ROUNDS;
    pthread_mutex_unlock(&naming->lock);
    return waits;
}

int kiln_naming_name(struct kiln_naming *naming, const char *tenant,
                     const struct kiln_unnamed *unnamed, struct kiln_err *err)
{
    struct naming_run *run;
    bool accept_shallow;
    int r = 0;

    if (unnamed->build_id.len > KILN_DEBUG_ID_MAX ||
        is_waiting(naming, tenant, unnamed->build_id, &accept_shallow))
        return 0;
    run = kiln_calloc(1, sizeof(*run));
    if (!run)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    run->naming = naming;
    run->tenant = tenant;
    run->unnamed = unnamed;
    run->accept_shallow = accept_shallow;
    run->budget.limit = SIZE_MAX;
    kiln_naming_find(naming, tenant, unnamed, &run->files);
    if (run->files.executable >= 0 || run->files.info >= 0) {
        r = prepare(run);
        if (r < 0)
            kiln_err_set(err, r, NULL, "it does not tell where its code is");
        if (r == 0)
            r = name_all(run, err);
    }
    conclude(run, r, err);
    kiln_found_files_close(&run->files);
    kiln_array_free(&run->budget, (void **)&run->frames, &run->cap_frames, sizeof(*run->frames));
    kiln_free(run);
    return r == -ECANCELED || r == -ENOMEM ? r : 0;
}
