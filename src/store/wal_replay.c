/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replay: the segments in the order of their names, each read from its start through a window.
 *
 * A place that is not a whole record is the torn end of a segment, or damage.  Either way the
 * search goes on at every multiple of eight bytes for the seal of the segment with a head whose sum
 * holds; a head that holds with a body that does not is stepped over.  So every byte is summed
 * once, whatever the file says.  A stranger's body cannot pass for a record: the seal is random.
 *
 * Each record says what was durable when it was written.  A hole, that is, a place without a whole
 * record and a whole one after it, may be what a power cut left of records written together, or
 * damage.  It is damage if the record after it was durable: a later record of the segment says so,
 * or the first of the next segment (not one further on: after a failed sync numbers go on
 * elsewhere, above those that were never acknowledged).  If a record says that more was durable
 * than was ever read, that lay at the bad end of the segment before, or in one that is not there.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/crc32c.h"
#include "store/wal_int.h"

#define WINDOW_BYTES ((size_t)1 << 20)
enum { HOLES_MAX = 64 }; /* that wait; more are not reported one by one */

/* A segment being read. */
struct reader {
    struct wal_replay *replay;
    struct wal_segment *segment;
    char path[WAL_PATH_MAX];
    int fd;
    uint64_t size;
    uint64_t before; /* bytes of segments before this one */
    uint64_t seal;
    uint64_t window_at;
    size_t window_n;
    uint8_t *window;
    size_t window_cap;
    bool unreadable; /* the disk failed, or the file became shorter */
};

/* A bad place.  Those before a record wait for somebody to vouch for that record. */
struct hole {
    struct wal_segment *segment; /* NULL: none */
    uint64_t offset;
    uint64_t after, before; /* the records around it */
};

struct holes {
    struct hole open; /* no record came after it yet */
    struct hole waiting[HOLES_MAX];
    uint32_t n;
    bool found; /* there was one */
};

int wal_segments_reserve(struct wal_segments *segments)
{
    return kiln_grow(&segments->budget, (void **)&segments->all, &segments->cap,
                     (uint64_t)segments->n + 1, sizeof(*segments->all), WAL_SEGMENTS_MAX);
}

/* ---- the list ---- */

static bool parse_name(const char *name, uint64_t *ret_first)
{
    uint64_t first = 0;
    int i;

    for (i = 0; i < 20; i++) {
        if (name[i] < '0' || name[i] > '9' || first > WAL_NUMBER_MAX / 10)
            return false;
        first = first * 10 + (uint64_t)(name[i] - '0');
    }
    *ret_first = first;
    return strcmp(name + i, ".log") == 0;
}

static int add_name(void *context, const char *name)
{
    struct wal_segments *segments = context;
    struct wal_segment segment = {0};
    int r;

    if (!parse_name(name, &segment.first))
        return 0;
    r = wal_segments_reserve(segments);
    if (r == 0)
        segments->all[segments->n++] = segment;
    return r;
}

static int by_first(const void *a, const void *b)
{
    const struct wal_segment *x = a;
    const struct wal_segment *y = b;

    return (x->first > y->first) - (x->first < y->first);
}

static int list_segments(struct wal_replay *p, struct kiln_err *err)
{
    int r = p->io->list(p->io, "wal", add_name, p->segments);

    if (r == -ENOENT && p->opts->read_only)
        return 0;
    if (r < 0)
        return kiln_err_set(err, r, "wal", "cannot be listed: %s", kiln_err_text(r));
    if (p->segments->n)
        qsort(p->segments->all, p->segments->n, sizeof(*p->segments->all), by_first);
    return 0;
}

/* ---- the window ---- */

static void open_hole(struct holes *holes, struct wal_segment *segment, uint64_t offset)
{
    holes->open = (struct hole){.segment = segment, .offset = offset};
    holes->found = true;
}

static int grow_window(struct reader *reader, size_t n)
{
    uint8_t *larger;

    if (n <= reader->window_cap)
        return 0;
    larger = kiln_realloc(reader->window, n);
    if (!larger)
        return -ENOMEM;
    reader->window = larger;
    reader->window_cap = n;
    return 0;
}

/* `n` bytes at `offset`, all of them in the file. */
static int get(struct reader *reader, uint64_t offset, size_t n, const uint8_t **ret)
{
    struct kiln_io *io = reader->replay->io;
    uint64_t left = reader->size - offset;
    size_t want = n > WINDOW_BYTES ? n : WINDOW_BYTES;
    ssize_t got;
    int r;

    if (offset < reader->window_at || offset + n > reader->window_at + reader->window_n) {
        r = grow_window(reader, want);
        if (r < 0)
            return r;
        reader->window_n = 0;
        want = want < left ? want : (size_t)left;
        got = io->pread(io, reader->fd, reader->window, want, offset);
        if (got == -EIO) /* a bad moment of the disk, or a bad place on it */
            got = io->pread(io, reader->fd, reader->window, want, offset);
        reader->unreadable = got == -EIO || (got >= 0 && (size_t)got < n);
        if (got < 0 || reader->unreadable)
            return got < 0 ? (int)got : KILN_E_TRUNCATED;
        reader->window_at = offset;
        reader->window_n = (size_t)got;
    }
    *ret = reader->window + (offset - reader->window_at);
    return 0;
}

/* ---- records ---- */

static void report(struct wal_replay *p, const struct hole *hole, const char *text)
{
    char path[WAL_PATH_MAX];
    struct kiln_wal_damage damage = {path, hole->offset, hole->after, hole->before - 1, text};

    wal_segment_path(hole->segment->first, path);
    if (p->opts->damaged)
        p->opts->damaged(p->context, &damage);
}

/* `durable` says that holes are damage, or, at the start of a segment, that the last one's are not.
 */
static void judge_holes(struct reader *reader, struct holes *holes, uint64_t durable)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < holes->n; i++) {
        struct hole *hole = &holes->waiting[i];

        if (hole->before <= reader->replay->floor)
            continue; /* blocks have it */
        if (durable >= hole->before) {
            hole->segment->damaged = true;
            report(reader->replay, hole, "acknowledged records are damaged");
        } else if (hole->segment == reader->segment) {
            holes->waiting[kept++] = *hole;
        }
    }
    holes->n = kept;
}

/* The record `number`, the first that is whole after a bad place or after a segment. */
static void judge_gap(struct reader *reader, struct holes *holes, uint64_t offset,
                      const struct wal_record_head *head)
{
    struct wal_replay *p = reader->replay;
    struct hole hole = holes->open;

    holes->open.segment = NULL;
    hole.after = p->last;
    hole.before = head->number;
    if (head->durable > p->last && head->durable > p->floor) {
        const char *text = "acknowledged records are damaged";

        hole.before = head->durable + 1;
        if (hole.segment) {
            hole.segment->damaged = true;
        } else {
            hole.segment = reader->segment;
            hole.offset = offset;
            text = "acknowledged records before this place are missing";
        }
        report(p, &hole, text);
    } else if (hole.segment == reader->segment && holes->n < HOLES_MAX) {
        holes->waiting[holes->n++] = hole;
    }
}

static void set_done(const struct wal_replay *p, uint64_t bytes)
{
    if (p->opts->progress)
        atomic_store_explicit(&p->opts->progress->done, bytes, memory_order_relaxed);
}

static int give(struct reader *reader, uint64_t offset, const struct wal_record_head *head,
                const uint8_t *bytes, struct holes *holes)
{
    struct wal_replay *p = reader->replay;
    const char *tenant = (const char *)bytes + WAL_RECORD_HEAD;
    struct kiln_wal_record record = {
        .number = head->number,
        .tenant = {tenant, head->tenant_bytes},
        .received_ns = head->received_ns,
        .oldest_ns = head->oldest_ns,
        .compression = (enum kiln_compression)head->compression,
        .body = {tenant + head->tenant_bytes, head->body_bytes},
    };

    (void)!wal_recipe_cut(head, &record.body, &record.recipe); /* look() saw that it can be */
    set_done(p, reader->before + offset);
    if (head->number > reader->segment->last)
        reader->segment->last = head->number;
    if (head->number <= p->last)
        return 0; /* a copy of a segment, or what a failed write left */
    judge_holes(reader, holes, head->durable);
    judge_gap(reader, holes, offset, head);
    p->last = head->number;
    return p->each(p->context, &record);
}

/* Whether these bytes are the body that was written. */
static bool is_whole(const struct wal_record_head *head, const uint8_t *bytes)
{
    struct kiln_str body = {(const char *)bytes, head->body_bytes}, recipe;

    return kiln_crc32c(0, bytes, head->body_bytes) == head->body_crc &&
           wal_recipe_cut(head, &body, &recipe);
}

/* What is at `offset`: *ret_step bytes to the next place to look at, and whether it is whole. */
static int look(struct reader *reader, uint64_t offset, struct wal_record_head *ret_head,
                const uint8_t **ret_bytes, uint64_t *ret_step)
{
    uint64_t left = reader->size - offset;
    size_t n = WAL_RECORD_HEAD + KILN_WAL_TENANT_MAX;
    int r;

    *ret_step = WAL_ALIGN;
    if (left < n)
        n = (size_t)left;
    r = get(reader, offset, n, ret_bytes);
    if (r < 0)
        return r;
    if (!wal_record_decode(*ret_bytes, n, ret_head) || ret_head->seal != reader->seal)
        return 0;
    *ret_step = wal_record_bytes(ret_head);
    n = (size_t)WAL_RECORD_HEAD + ret_head->tenant_bytes + ret_head->body_bytes;
    if (n > left)
        return 0;
    r = get(reader, offset, n, ret_bytes);
    if (r < 0)
        return r;
    return is_whole(ret_head, *ret_bytes + n - ret_head->body_bytes);
}

static int scan(struct reader *reader, struct holes *holes)
{
    uint64_t offset = WAL_SEGMENT_HEAD;
    bool good = true;

    while (offset + WAL_RECORD_HEAD <= reader->size) {
        struct wal_record_head head;
        const uint8_t *bytes;
        uint64_t step;
        int r = look(reader, offset, &head, &bytes, &step);

        if (r < 0)
            return r;
        if (r == 0 && good)
            open_hole(holes, reader->segment, offset);
        good = r > 0;
        if (good)
            r = give(reader, offset, &head, bytes, holes);
        if (r < 0)
            return r;
        offset += step;
    }
    if (good && offset < reader->size)
        open_hole(holes, reader->segment, offset);
    return 0;
}

/* ---- segments ---- */

/*
 * The seal, from the segment's head, or, where that is damaged, from the first record.  0 if there
 * is none: a segment that was cut off while it was made, in which nothing was acknowledged.
 */
static int read_seal(struct reader *reader, struct holes *holes, struct kiln_err *err)
{
    struct wal_segment_head head;
    struct wal_record_head record;
    const uint8_t *bytes;
    size_t n = WAL_SEGMENT_HEAD + WAL_RECORD_HEAD + KILN_WAL_TENANT_MAX;
    int r;

    if (reader->size < WAL_SEGMENT_HEAD)
        return 0;
    if (reader->size < n)
        n = (size_t)reader->size;
    r = get(reader, 0, n, &bytes);
    if (r < 0)
        return r;
    r = wal_segment_decode(bytes, &head);
    if (r == KILN_E_UNSUPPORTED)
        return kiln_err_set(err, r, reader->path,
                            "was written by a newer Kiln (log format %u, this one reads up to %u)",
                            head.version, KILN_WAL_VERSION);
    reader->seal = head.seal;
    if (r == 0)
        return 1;
    if (n < WAL_SEGMENT_HEAD + WAL_RECORD_HEAD ||
        !wal_record_decode(bytes + WAL_SEGMENT_HEAD, n - WAL_SEGMENT_HEAD, &record))
        return 0;
    reader->seal = record.seal;
    open_hole(holes, reader->segment, 0);
    return 1;
}

static int read_segment(struct reader *reader, struct holes *holes, struct kiln_err *err)
{
    struct wal_replay *p = reader->replay;
    int r = p->io->size(p->io, reader->fd, &reader->size);

    reader->segment->bytes = r < 0 ? 0 : reader->size;
    /* What is read must not be gone after a power cut: later records build on it. */
    if (r == 0 && !p->opts->read_only)
        r = p->io->sync(p->io, reader->fd);
    if (r < 0)
        return r;
    r = read_seal(reader, holes, err);
    if (r == 0)
        open_hole(holes, reader->segment, 0);
    return r > 0 ? scan(reader, holes) : r;
}

static int replay_segment(struct reader *reader, struct holes *holes, struct kiln_err *err)
{
    struct wal_replay *p = reader->replay;
    struct hole rest;
    int r;

    wal_segment_path(reader->segment->first, reader->path);
    reader->window_n = 0;
    reader->unreadable = false;
    reader->fd = p->io->open(p->io, reader->path, O_RDONLY);
    if (reader->fd < 0)
        return reader->fd;
    r = read_segment(reader, holes, err);
    p->io->close(p->io, reader->fd);
    if (!reader->unreadable)
        return r;
    rest = (struct hole){reader->segment, 0, p->last, p->last + 1};
    /* One that cannot be read stops nothing. */
    reader->segment->damaged = true;
    report(p, &rest, "the segment cannot be read");
    open_hole(holes, reader->segment, 0);
    return 0;
}

/* How much there is to read; a segment that cannot be opened here is reported when it is read. */
static void measure(struct wal_replay *p)
{
    for (uint32_t i = 0; p->opts->progress && i < p->segments->n; i++) {
        char path[WAL_PATH_MAX];
        uint64_t size = 0;
        int fd;

        wal_segment_path(p->segments->all[i].first, path);
        fd = p->io->open(p->io, path, O_RDONLY);
        if (fd < 0)
            continue;
        if (p->io->size(p->io, fd, &size) == 0)
            atomic_fetch_add(&p->opts->progress->all, size);
        p->io->close(p->io, fd);
    }
}

static int replay_all(struct wal_replay *p, struct kiln_err *err)
{
    struct reader reader = {.replay = p};
    struct holes holes = {.n = 0};
    int r = 0;

    /* What was before the first segment was covered by blocks, which may be gone by now. */
    if (p->segments->n && p->segments->all[0].first > p->floor)
        p->floor = p->segments->all[0].first - 1;
    for (uint32_t i = 0; r == 0 && i < p->segments->n; i++) {
        reader.segment = &p->segments->all[i];
        r = replay_segment(&reader, &holes, err);
        if (r < 0)
            kiln_err_set(err, r, reader.path, "cannot be replayed: %s", kiln_err_text(r));
        reader.before += p->segments->all[i].bytes;
        if (r == 0)
            set_done(p, reader.before);
    }
    p->vouched = holes.n ? holes.waiting[0].after : p->last;
    kiln_free(reader.window);
    return r;
}

int wal_replay(struct wal_replay *p, struct kiln_err *err)
{
    int r = list_segments(p, err);

    if (r == 0)
        measure(p);
    return r < 0 ? r : replay_all(p, err);
}

int kiln_wal_read_file(struct kiln_io *io, const char *path,
                       int (*each)(void *context, const struct kiln_wal_record *record),
                       void *context, bool *ret_damaged, struct kiln_err *err)
{
    const struct kiln_wal_opts opts = {.read_only = true};
    struct wal_replay p = {
        .io = io, .opts = &opts, .floor = UINT64_MAX, .each = each, .context = context};
    struct wal_segment segment = {0};
    struct reader reader = {.replay = &p, .segment = &segment};
    struct holes holes = {.n = 0};
    int r = reader.fd = io->open(io, path, O_RDONLY);

    if (r < 0)
        return kiln_err_set(err, r, path, "%s", kiln_err_text(r));
    snprintf(reader.path, sizeof(reader.path), "%s", path);
    r = read_segment(&reader, &holes, err);
    io->close(io, reader.fd);
    kiln_free(reader.window);
    *ret_damaged = reader.unreadable || holes.found;
    return reader.unreadable ? 0 : r;
}
