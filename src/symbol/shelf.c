/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Build ids that were asked for lately are known here, with their file mapped, or that there is
 * none.  Another process may have written a better one: so before an address counts as not known
 * the file is looked at again, though not more often than every ten seconds.
 *
 * A file is written anew with what it has and what waits for it.  To write little in all, that
 * waits until it is a quarter of what the file has; or some, after a minute; or anything, after
 * ten.
 */
#include "symbol/shelf.h"

#include <errno.h>
#include <stdio.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/metric.h"
#include "symbol/shelf_int.h"

enum {
    KNOWN_MAX = 512,
    BUCKETS = 1024,
    LOOK_S = 10,    /* a file is looked at again */
    TOUCH_S = 3600, /* and said to be in use */
    SOON_S = 60,    /* what waits is written if it is worth it */
    LATEST_S = 600, /* and if it is not */
    PAUSE_S = 600,  /* after a failure */
    ENOUGH = 64,    /* addresses */
    ID_LEAST = 16,  /* characters */
};

#define BYTES_DEFAULT ((uint64_t)256 << 20)
#define BYTES_LEAST   ((uint64_t)1 << 20)
#define WAITING_MAX   ((size_t)16 << 20) /* bytes of memory */

struct known {
    struct known *next; /* of its bucket */
    uint64_t hash;
    char id[KILN_SHELF_ID_MAX + 8]; /* and ".shelf" */
    uint32_t id_len;
    struct kiln_shelf_mapped mapped;
    struct kiln_shelf_file file;
    uint64_t looked_ns, touched_ns;
    uint64_t tick;                   /* when it was last asked for, in asks */
    bool used;                       /* since it was last touched */
    struct kiln_shelf_made *waiting; /* NULL: nothing */
    uint64_t since_ns;
};

struct kiln_shelf {
    struct kiln_shelf_room room;
    size_t file_max;
    struct known *buckets[BUCKETS];
    struct known *last; /* that was asked for */
    uint32_t n_known;
    uint64_t tick;
    uint64_t due_ns;   /* when it is worth looking who is due */
    uint64_t pause_ns; /* until then nothing is written */
    size_t waiting_bytes;
    bool said;
    struct kiln_metric *bytes, *files, *written, *failed;
    struct kiln_log *log;
    struct kiln_name_frame frames[KILN_NAME_FRAMES_MAX];
};

int kiln_shelf_open(const struct kiln_shelf_opts *opts, struct kiln_shelf **ret_shelf,
                    struct kiln_err *err)
{
    uint64_t max = opts->max_bytes ? opts->max_bytes : BYTES_DEFAULT;
    struct kiln_shelf *shelf = kiln_calloc(1, sizeof(*shelf));
    int r;

    if (!shelf)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    if (max < BYTES_LEAST)
        max = BYTES_LEAST;
    r = kiln_shelf_room_open(opts->directory, max, &shelf->room, err);
    if (r < 0) {
        kiln_free(shelf);
        return r;
    }
    shelf->file_max = max / 4 < KILN_SHELF_FILE_MAX ? max / 4 : KILN_SHELF_FILE_MAX;
    shelf->log = opts->log;
    shelf->bytes = kiln_metric_gauge(opts->metrics, "kiln_names_disk_bytes",
                                     "Size of the names that are kept on disk.");
    shelf->files = kiln_metric_gauge(opts->metrics, "kiln_names_disk_files",
                                     "Build ids whose names are kept on disk.");
    shelf->written = kiln_metric_counter(opts->metrics, "kiln_names_disk_writes_total",
                                         "Files of names written to disk.");
    shelf->failed = kiln_metric_counter(opts->metrics, "kiln_names_disk_failures_total",
                                        "Files of names that were damaged or not written.");
    kiln_metric_set(shelf->bytes, (double)shelf->room.bytes);
    kiln_metric_set(shelf->files, shelf->room.files);
    *ret_shelf = shelf;
    return 0;
}

bool kiln_shelf_takes(struct kiln_str build_id)
{
    if (build_id.len < ID_LEAST || build_id.len > KILN_SHELF_ID_MAX || build_id.len % 2 != 0)
        return false;
    for (size_t i = 0; i < build_id.len; i++) {
        char c = build_id.ptr[i];

        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f'))
            return false;
    }
    return true;
}

size_t kiln_shelf_bytes(const struct kiln_shelf *shelf)
{
    return shelf->waiting_bytes;
}

/* ---- who is known ---- */

static struct kiln_str id_of(const struct known *known)
{
    return (struct kiln_str){known->id, known->id_len};
}

static void drop_waiting(struct kiln_shelf *shelf, struct known *known)
{
    if (!known->waiting)
        return;
    shelf->waiting_bytes -= kiln_shelf_made_bytes(known->waiting);
    kiln_shelf_made_done(known->waiting);
    kiln_free(known->waiting);
    known->waiting = NULL;
}

static void forget_file(struct known *known)
{
    kiln_shelf_room_unmap(&known->mapped);
    known->file = (struct kiln_shelf_file){0};
}

/* Maps it, or the newer one; one that cannot be read goes. */
static void look(struct kiln_shelf *shelf, struct known *known, uint64_t now)
{
    int r = kiln_shelf_room_map(&shelf->room, known->id, &known->mapped);

    known->looked_ns = now;
    if (r == -ENOENT)
        forget_file(known);
    if (r != 1)
        return;
    r = kiln_shelf_file_open(known->mapped.data, known->mapped.size, id_of(known), &known->file);
    if (r == 0)
        return;
    kiln_metric_add(shelf->failed, r != KILN_E_UNSUPPORTED);
    forget_file(known);
    kiln_shelf_room_remove(&shelf->room, known->id);
}

static void write_known(struct kiln_shelf *shelf, struct known *known);

static void forget(struct kiln_shelf *shelf, struct known *known)
{
    struct known **at = &shelf->buckets[known->hash % BUCKETS];

    while (*at != known)
        at = &(*at)->next;
    *at = known->next;
    if (shelf->last == known)
        shelf->last = NULL;
    shelf->n_known--;
    drop_waiting(shelf, known);
    forget_file(known);
    kiln_free(known);
}

/* Calls for all that are known; it may not forget any. */
#define FOR_KNOWN(shelf, known)                                                                    \
    for (uint32_t b_ = 0; b_ < BUCKETS; b_++)                                                      \
        for (struct known * (known) = (shelf)->buckets[b_]; (known); (known) = (known)->next)

static void forget_oldest(struct kiln_shelf *shelf)
{
    struct known *oldest = NULL;

    FOR_KNOWN(shelf, known)
    {
        if (!oldest || known->tick < oldest->tick)
            oldest = known;
    }
    write_known(shelf, oldest);
    forget(shelf, oldest);
}

static struct known *make_known(struct kiln_shelf *shelf, struct kiln_str id, uint64_t hash)
{
    struct known *known = kiln_calloc(1, sizeof(*known));

    if (!known)
        return NULL;
    known->hash = hash;
    known->id_len = (uint32_t)id.len;
    (void)snprintf(known->id, sizeof(known->id), "%.*s.shelf", (int)id.len, id.ptr);
    if (shelf->n_known >= KNOWN_MAX)
        forget_oldest(shelf);
    known->next = shelf->buckets[hash % BUCKETS];
    shelf->buckets[hash % BUCKETS] = known;
    shelf->n_known++;
    look(shelf, known, kiln_clock_mono_ns());
    return known;
}

/* NULL: it can be none, or there is no memory. */
static struct known *find_known(struct kiln_shelf *shelf, struct kiln_str id)
{
    struct known *known = shelf->last;
    uint64_t hash;

    if (known && kiln_str_eq(id_of(known), id))
        return known;
    if (!kiln_shelf_takes(id))
        return NULL;
    hash = kiln_hash(id.ptr, id.len);
    known = shelf->buckets[hash % BUCKETS];
    while (known && !kiln_str_eq(id_of(known), id))
        known = known->next;
    if (!known)
        known = make_known(shelf, id, hash);
    shelf->last = known;
    if (known)
        known->tick = ++shelf->tick;
    return known;
}

/* ---- what is asked ---- */

static int find(struct kiln_shelf *shelf, struct known *known, const struct kiln_shelf_key *key,
                uint64_t address, struct kiln_name *ret_name)
{
    int r;

    if (!known->mapped.data)
        return 0;
    r = kiln_shelf_file_find(&known->file, address, key->debug, shelf->frames, ret_name);
    if (known->file.damaged) {
        kiln_metric_add(shelf->failed, 1);
        forget_file(known);
        kiln_shelf_room_remove(&shelf->room, known->id);
    }
    return r;
}

int kiln_shelf_get(struct kiln_shelf *shelf, const struct kiln_shelf_key *key, uint64_t address,
                   struct kiln_name *ret_name)
{
    struct known *known = find_known(shelf, key->build_id);
    uint64_t now;
    int r = known ? find(shelf, known, key, address, ret_name) : 0;

    if (r == 0 && known) {
        now = kiln_clock_mono_ns();
        if (now - known->looked_ns < LOOK_S * KILN_NS_PER_S)
            return 0;
        look(shelf, known, now);
        r = find(shelf, known, key, address, ret_name);
    }
    if (r == 1)
        known->used = true;
    return r;
}

/* ---- what is written ---- */

static void fail(struct kiln_shelf *shelf, int code)
{
    kiln_metric_add(shelf->failed, 1);
    shelf->pause_ns = kiln_clock_mono_ns() + PAUSE_S * KILN_NS_PER_S;
    if (!shelf->said)
        kiln_log(shelf->log, KILN_LOG_WARN, "names are not kept on disk", "reason", "%s",
                 kiln_err_text(code), NULL);
    shelf->said = true;
}

/* With the lock. */
static int write_file(struct kiln_shelf *shelf, struct known *known)
{
    struct kiln_buf out;
    uint64_t seed = 0;
    int r;

    look(shelf, known, kiln_clock_mono_ns());
    /* What does not fit any more stays away. */
    r = known->mapped.data ? kiln_shelf_made_merge(known->waiting, &known->file) : 0;
    if (r == -ENOMEM)
        return r;
    if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
        return -EIO;
    kiln_buf_init(&out, shelf->file_max);
    r = kiln_shelf_made_encode(known->waiting, id_of(known), seed, &out);
    if (r == 0)
        r = kiln_shelf_room_write(&shelf->room, known->id, kiln_buf_str(&out));
    else if (r == KILN_E_LIMIT)
        kiln_shelf_room_remove(&shelf->room, known->id);
    kiln_buf_done(&out);
    return r == KILN_E_LIMIT ? 0 : r;
}

static void write_known(struct kiln_shelf *shelf, struct known *known)
{
    size_t before;
    int r;

    if (!known->waiting || kiln_clock_mono_ns() < shelf->pause_ns)
        return;
    if (shelf->room.lock < 0) {
        drop_waiting(shelf, known);
        fail(shelf, -EROFS);
        return;
    }
    if (!kiln_shelf_room_lock(&shelf->room))
        return;
    before = kiln_shelf_made_bytes(known->waiting);
    r = write_file(shelf, known);
    kiln_shelf_room_unlock(&shelf->room);
    shelf->waiting_bytes += kiln_shelf_made_bytes(known->waiting) - before;
    drop_waiting(shelf, known);
    if (r < 0)
        fail(shelf, r);
    kiln_metric_add(shelf->written, r == 0);
    kiln_metric_set(shelf->bytes, (double)(shelf->room.bytes + shelf->room.since));
    kiln_metric_set(shelf->files, shelf->room.files);
    look(shelf, known, kiln_clock_mono_ns());
}

static bool is_due(const struct known *known, uint64_t now)
{
    uint64_t age = now - known->since_ns;
    uint32_t n = known->waiting ? known->waiting->n : 0, there = known->file.n;

    if (n == 0)
        return false;
    return (n >= ENOUGH && n >= there / 4) || (age >= SOON_S * KILN_NS_PER_S && n >= there / 16) ||
           age >= LATEST_S * KILN_NS_PER_S;
}

void kiln_shelf_turn(struct kiln_shelf *shelf)
{
    uint64_t now = kiln_clock_mono_ns();
    struct known *due = NULL;

    if (now < shelf->due_ns)
        return;
    shelf->due_ns = now + KILN_NS_PER_S;
    FOR_KNOWN(shelf, known)
    {
        if (known->used && now - known->touched_ns >= TOUCH_S * KILN_NS_PER_S) {
            kiln_shelf_room_touch(&shelf->room, known->id);
            known->touched_ns = now;
            known->used = false;
        }
        if (!due && is_due(known, now))
            due = known;
    }
    if (due) {
        write_known(shelf, due);
        shelf->due_ns = 0;
    }
}

void kiln_shelf_flush(struct kiln_shelf *shelf)
{
    FOR_KNOWN(shelf, known)
    {
        write_known(shelf, known);
    }
}

void kiln_shelf_close(struct kiln_shelf *shelf)
{
    if (!shelf)
        return;
    kiln_shelf_flush(shelf);
    for (uint32_t b = 0; b < BUCKETS; b++)
        while (shelf->buckets[b])
            forget(shelf, shelf->buckets[b]);
    kiln_shelf_room_close(&shelf->room);
    kiln_free(shelf);
}

/* ---- what is put ---- */

static bool has_lines(const struct kiln_name *name)
{
    for (uint32_t i = 0; i < name->n; i++)
        if (name->frames[i].line)
            return true;
    return false;
}

static int begin_waiting(struct kiln_shelf *shelf, struct known *known)
{
    if (known->waiting)
        return 0;
    known->waiting = kiln_malloc(sizeof(*known->waiting));
    if (!known->waiting)
        return -ENOMEM;
    kiln_shelf_made_init(known->waiting, shelf->file_max);
    known->since_ns = kiln_clock_mono_ns();
    return 0;
}

static int add_names(struct kiln_shelf_made *waiting, const struct kiln_shelf_key *key,
                     const uint64_t *addresses, const struct kiln_name *names, uint32_t n)
{
    uint32_t when = (uint32_t)(kiln_clock_unix_ns() / (60 * KILN_NS_PER_S)) & KILN_SHELF_MINUTES;
    int r = 0;

    when |= key->debug ? KILN_SHELF_DEBUG : 0;
    for (uint32_t i = 0; i < n && r == 0; i++)
        if (!names[i].shallow && names[i].n)
            r = kiln_shelf_made_add(waiting, addresses[i],
                                    when | (has_lines(names + i) ? KILN_SHELF_LINES : 0), names + i,
                                    true);
    return r;
}

/* What cannot be written now is not kept. */
static void make_room(struct kiln_shelf *shelf)
{
    kiln_shelf_flush(shelf);
    FOR_KNOWN(shelf, known)
    {
        drop_waiting(shelf, known);
    }
}

int kiln_shelf_put(struct kiln_shelf *shelf, const struct kiln_shelf_key *key,
                   const uint64_t *addresses, const struct kiln_name *names, uint32_t n)
{
    struct known *known;
    size_t before;
    int r;

    if (shelf->pause_ns && kiln_clock_mono_ns() < shelf->pause_ns)
        return 0;
    known = find_known(shelf, key->build_id);
    if (!known)
        return 0;
    r = begin_waiting(shelf, known);
    if (r < 0)
        return r;
    before = kiln_shelf_made_bytes(known->waiting);
    r = add_names(known->waiting, key, addresses, names, n);
    shelf->waiting_bytes += kiln_shelf_made_bytes(known->waiting) - before;
    if (r < 0 || shelf->waiting_bytes > WAITING_MAX)
        make_room(shelf);
    return r == -ENOMEM ? r : 0;
}
