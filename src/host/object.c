/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects hang in two hashes: by what was opened (device, inode, size, time of change), and by
 * path, for files that cannot be opened any more.  The table holds each of its objects once, so
 * that whoever lets go of one on another thread never frees it; those that nobody else holds are
 * forgotten here, when they have not been used for some time.
 *
 * Open files are in a ring in order of use.  Headers and unwind tables of hostile files may take
 * megabytes each, therefore their weight is limited too; a file that alone weighs half of that goes
 * without, else it would push out all others.
 */
#include "host/object.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/metric.h"
#include "host/aside.h"
#include "host/link.h"
#include "host/object_int.h"
#include "symbol/cfi.h"
#include "symbol/elf.h"

enum {
    OPEN_MAX = 2048,
    BUCKETS = 4096,
    IDLE_SWEEPS = 150, /* five minutes */
};

struct object {
    struct kiln_object pub;
    struct object *next_file, *next_path;
    struct kiln_link use; /* of `open` or `closed`, those used last first */
    uint64_t file_hash, path_hash;
    uint64_t weight;
    uint64_t asked_ns; /* when somebody was told to open it again */
    uint32_t idle;     /* sweeps since somebody else held it */
    char text[];       /* the path */
};

struct kiln_objects {
    struct object *by_file[BUCKETS], *by_path[BUCKETS];
    struct kiln_link open, closed;
    uint32_t n, n_open, max_open;
    uint32_t ids;
    uint64_t weight, weight_max; /* of headers in memory */
    struct kiln_object *vdso;
    bool vdso_tried;
    void (*on_gone)(void *context, struct kiln_object *object);
    void *context;
    struct kiln_metric *metric_known, *metric_open, *metric_closed;
};

/* Between the reader that closes a file and whoever duplicates it. */
static pthread_mutex_t files_lock = PTHREAD_MUTEX_INITIALIZER;

static struct object *object_of(struct kiln_object *object)
{
    return (struct object *)object;
}

/* ---- one object ---- */

struct kiln_object *kiln_object_ref(struct kiln_object *object)
{
    atomic_fetch_add_explicit(&object->refs, 1, memory_order_relaxed);
    return object;
}

void kiln_object_unref(struct kiln_object *object)
{
    if (object && atomic_fetch_sub_explicit(&object->refs, 1, memory_order_acq_rel) == 1)
        kiln_free(object);
}

int kiln_object_dup(struct kiln_object *object, int *ret_fd)
{
    int fd, r;

    pthread_mutex_lock(&files_lock);
    fd = object->fd < 0 ? -1 : fcntl(object->fd, F_DUPFD_CLOEXEC, 3);
    r = fd >= 0 ? 0 : object->fd < 0 ? -ENOENT : -errno;
    pthread_mutex_unlock(&files_lock);
    if (r == 0)
        *ret_fd = fd;
    return r;
}

void kiln_object_shut(const struct kiln_object *object, int fd)
{
    if (object->aside)
        kiln_aside_close(object->aside, fd);
    else
        close(fd);
}

int kiln_object_address(const struct kiln_object *object, uint64_t offset, uint64_t *ret_address)
{
    return object->elf ? kiln_elf_address(object->elf, offset, ret_address) : -ENOENT;
}

bool kiln_object_agrees(const struct kiln_object *object, const struct kiln_object_hint *hint)
{
    if (hint->build_id_len)
        return object->build_id_len == hint->build_id_len &&
               memcmp(object->build_id, hint->build_id, hint->build_id_len) == 0;
    return hint->inode && object->inode == hint->inode;
}

/* ---- open files ---- */

static void set_file(struct kiln_object *object, int fd)
{
    pthread_mutex_lock(&files_lock);
    object->fd = fd;
    pthread_mutex_unlock(&files_lock);
}

static void close_file(struct kiln_objects *objects, struct object *o)
{
    int fd = o->pub.fd;

    if (fd < 0)
        return;
    set_file(&o->pub, -1);
    kiln_cfi_close(o->pub.cfi); /* it reads through the headers and the file */
    o->pub.cfi = NULL;
    o->pub.cfi_tried = false;
    kiln_elf_close(o->pub.elf);
    o->pub.elf = NULL;
    kiln_object_shut(&o->pub, fd);
    objects->weight -= o->weight;
    objects->n_open--;
    kiln_link_first(&objects->closed, &o->use);
}

/* Closes the files longest not used, but never this one, nor the vDSO: nobody could open it again.
 */
static void limit_open(struct kiln_objects *objects, const struct object *but)
{
    if (objects->vdso)
        kiln_link_first(&objects->open, &object_of(objects->vdso)->use);
    while (objects->n_open > objects->max_open || objects->weight > objects->weight_max) {
        struct object *o = KILN_OF_LINK(struct object, use, objects->open.prev);

        if (o == but)
            break;
        close_file(objects, o);
        kiln_metric_add(objects->metric_closed, 1);
    }
    kiln_metric_set(objects->metric_open, objects->n_open);
}

static bool is_heavy(const struct kiln_objects *objects, uint64_t bytes)
{
    return bytes > objects->weight_max / 2;
}

static int read_aside(const struct kiln_bytes *bytes, uint64_t offset, void *to, size_t n)
{
    const struct kiln_object *object = bytes->self;

    for (size_t done = 0; done < n;) {
        int64_t got =
            kiln_aside_read(object->aside, object->fd, offset + done, (char *)to + done, n - done);

        if (got <= 0)
            return got < 0 ? (int)got : -EIO;
        done += (size_t)got;
    }
    return 0;
}

static int bytes_of(struct kiln_object *object, struct kiln_bytes *ret_bytes)
{
    if (!object->aside)
        return kiln_bytes_file(object->fd, ret_bytes);
    *ret_bytes =
        (struct kiln_bytes){.read = read_aside, .size = object->size, .fd = -1, .self = object};
    return 0;
}

/* Reads the headers; a file that is no ELF, or a broken one, has none. */
static void open_elf(struct kiln_objects *objects, struct object *o)
{
    struct kiln_bytes bytes;

    if (bytes_of(&o->pub, &bytes) < 0 || kiln_elf_open(&bytes, &o->pub.elf) < 0)
        o->pub.elf = NULL;
    if (o->pub.elf && is_heavy(objects, kiln_elf_bytes(o->pub.elf))) {
        kiln_elf_close(o->pub.elf);
        o->pub.elf = NULL;
    }
    o->weight = sizeof(*o) + (o->pub.elf ? kiln_elf_bytes(o->pub.elf) : 0);
}

/* Tables are read bit by bit: what they have come to weigh is seen when the file is used again. */
static void weigh(struct kiln_objects *objects, struct object *o)
{
    uint64_t cfi = o->pub.cfi ? kiln_cfi_bytes(o->pub.cfi) : 0;
    uint64_t weight = sizeof(*o) + (o->pub.elf ? kiln_elf_bytes(o->pub.elf) : 0);

    if (is_heavy(objects, cfi)) {
        kiln_cfi_close(o->pub.cfi);
        o->pub.cfi = NULL;
        cfi = 0;
    }
    weight += cfi;
    objects->weight += weight - o->weight;
    if (weight <= o->weight) {
        o->weight = weight;
        return;
    }
    o->weight = weight;
    limit_open(objects, o);
}

static void now_open(struct kiln_objects *objects, struct object *o)
{
    objects->weight += o->weight;
    objects->n_open++;
    kiln_link_first(&objects->open, &o->use);
    limit_open(objects, o);
}

bool kiln_objects_use(struct kiln_objects *objects, struct kiln_object *object)
{
    struct object *o = object_of(object);
    uint64_t now_ns;

    kiln_link_first(object->fd < 0 ? &objects->closed : &objects->open, &o->use);
    if (object->fd >= 0) {
        weigh(objects, o);
        return true;
    }
    now_ns = kiln_clock_mono_ns();
    if (now_ns - o->asked_ns < KILN_NS_PER_S)
        return true;
    o->asked_ns = now_ns;
    return false;
}

/* ---- the table ---- */

static uint64_t hash_file(const struct stat *st)
{
    uint64_t hash = kiln_hash_mix(st->st_dev, st->st_ino);

    hash = kiln_hash_mix(hash, (uint64_t)st->st_size);
    return kiln_hash_mix(hash, kiln_timespec_ns(st->st_ctim));
}

static struct object *find(struct kiln_objects *objects, const struct stat *st, uint64_t hash)
{
    struct object *o = objects->by_file[hash % BUCKETS];

    while (o && (o->pub.device != st->st_dev || o->pub.inode != st->st_ino ||
                 o->pub.size != (uint64_t)st->st_size ||
                 o->pub.changed_ns != kiln_timespec_ns(st->st_ctim)))
        o = o->next_file;
    return o;
}

static void describe_code(struct kiln_object *object)
{
    const struct kiln_elf *elf = object->elf;

    for (uint32_t i = 0; elf && !object->code_size && i < elf->n_segments; i++) {
        const struct kiln_elf_segment *s = &elf->segments[i];

        if (s->type != PT_LOAD || !(s->flags & PF_X) || s->memory_size > UINT64_MAX - s->address)
            continue;
        object->code_address = s->address;
        object->code_offset = s->offset;
        object->code_size = s->memory_size;
    }
}

/* What of the file is constant. */
static void describe(struct object *o)
{
    struct kiln_object *object = &o->pub;
    struct kiln_bytes bytes;
    char magic[4] = "";

    if (bytes_of(object, &bytes) < 0 || bytes.size < sizeof(magic) ||
        bytes.read(&bytes, 0, magic, sizeof(magic)) < 0 || memcmp(magic, "\177ELF", 4) != 0) {
        object->kind = KILN_OBJECT_OTHER;
        return;
    }
    object->kind = KILN_OBJECT_ELF;
    describe_code(object);
    if (object->elf && kiln_elf_build_id(object->elf, object->build_id, &object->build_id_len) < 0)
        object->build_id_len = 0;
    if (object->elf &&
        kiln_elf_go_build_id(object->elf, object->go_build_id, sizeof(object->go_build_id)) < 0)
        object->go_build_id[0] = '\0';
    object->is_go =
        object->go_build_id[0] || (object->elf && kiln_elf_section(object->elf, ".gopclntab"));
    if (!object->build_id_len && kiln_elf_hash(&bytes, object->file_hash) < 0)
        object->file_hash[0] = '\0';
}

/* A new object of an open file, which nobody knows yet. */
static struct object *make(struct kiln_objects *objects, struct kiln_aside *aside, int fd,
                           const char *path, const struct stat *st)
{
    size_t len = strlen(path);
    struct object *o = kiln_calloc(1, sizeof(*o) + len + 1);

    if (!o)
        return NULL;
    memcpy(o->text, path, len + 1);
    o->pub.path = o->text;
    atomic_init(&o->pub.refs, 1);
    o->pub.aside = aside;
    o->pub.device = st->st_dev;
    o->pub.inode = st->st_ino;
    o->pub.size = (uint64_t)st->st_size;
    o->pub.changed_ns = kiln_timespec_ns(st->st_ctim);
    o->pub.fd = fd;
    open_elf(objects, o);
    describe(o);
    o->file_hash = hash_file(st);
    o->path_hash = kiln_hash(path, len);
    return o;
}

static void add(struct kiln_objects *objects, struct object *o)
{
    struct object **bucket = &objects->by_file[o->file_hash % BUCKETS];

    o->pub.id = ++objects->ids;
    o->next_file = *bucket;
    *bucket = o;
    bucket = &objects->by_path[o->path_hash % BUCKETS];
    o->next_path = *bucket;
    *bucket = o;
    kiln_link_init(&o->use);
    kiln_metric_set(objects->metric_known, ++objects->n);
    now_open(objects, o);
}

int kiln_objects_take(struct kiln_objects *objects, int fd, const char *path,
                      struct kiln_object **ret_object)
{
    struct object *o;
    struct stat st;

    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return -ENOENT;
    }
    o = find(objects, &st, hash_file(&st));
    if (!o) {
        o = make(objects, NULL, fd, path, &st);
        if (!o) {
            close(fd);
            return -ENOMEM;
        }
        add(objects, o);
    } else if (o->pub.fd < 0) {
        set_file(&o->pub, fd);
        open_elf(objects, o);
        now_open(objects, o);
    } else {
        close(fd);
        kiln_objects_use(objects, &o->pub);
    }
    *ret_object = kiln_object_ref(&o->pub);
    return 0;
}

/* An object that was made of less than there is would be what everybody knows of the file. */
static struct object *make_aside(struct kiln_objects *objects, struct kiln_aside *aside, int fd,
                                 const char *path, const struct stat *st)
{
    uint64_t given_up = kiln_aside_given_up(aside);
    struct object *o = make(objects, aside, fd, path, st);

    if (o && kiln_aside_given_up(aside) == given_up)
        return o;
    if (o)
        kiln_elf_close(o->pub.elf);
    kiln_free(o);
    kiln_aside_close(aside, fd);
    return NULL;
}

int kiln_objects_take_aside(struct kiln_objects *objects, struct kiln_aside *aside, int fd,
                            const char *path, const struct stat *st,
                            struct kiln_object **ret_object)
{
    struct object *o = find(objects, st, hash_file(st));

    if (o && o->pub.fd >= 0) {
        kiln_aside_close(aside, fd);
        kiln_objects_use(objects, &o->pub);
    } else if (o) {
        set_file(&o->pub, fd);
        open_elf(objects, o);
        now_open(objects, o);
    } else {
        o = make_aside(objects, aside, fd, path, st);
        if (!o)
            return -ETIMEDOUT;
        add(objects, o);
    }
    *ret_object = kiln_object_ref(&o->pub);
    return 0;
}

struct kiln_object *kiln_objects_get(struct kiln_objects *objects, const struct stat *st)
{
    struct object *o = find(objects, st, hash_file(st));

    if (!o || o->pub.fd < 0)
        return NULL;
    kiln_objects_use(objects, &o->pub);
    return kiln_object_ref(&o->pub);
}

/* The next that has the path and agrees, from `o` on. */
static struct object *next_known(struct object *o, const struct kiln_object_hint *hint)
{
    while (o && (strcmp(o->text, hint->path) != 0 || !kiln_object_agrees(&o->pub, hint)))
        o = o->next_path;
    return o;
}

static struct object *first_known(struct kiln_objects *objects, const struct kiln_object_hint *hint)
{
    return next_known(objects->by_path[kiln_hash(hint->path, strlen(hint->path)) % BUCKETS], hint);
}

struct kiln_object *kiln_objects_known(struct kiln_objects *objects,
                                       const struct kiln_object_hint *hint)
{
    struct object *o = first_known(objects, hint);

    return o ? kiln_object_ref(&o->pub) : NULL;
}

struct kiln_object *kiln_objects_beneath(struct kiln_objects *objects,
                                         const struct kiln_object_hint *hint, uint64_t root)
{
    struct object *o = root && hint->build_id_len ? first_known(objects, hint) : NULL;

    while (o && (o->pub.root != root || o->pub.fd < 0))
        o = next_known(o->next_path, hint);
    if (!o)
        return NULL;
    kiln_objects_use(objects, &o->pub);
    return kiln_object_ref(&o->pub);
}

struct kiln_object *kiln_objects_vdso(struct kiln_objects *objects)
{
    int fd;

    if (!objects->vdso && !objects->vdso_tried && kiln_vdso_file(&fd) == 0 &&
        kiln_objects_take(objects, fd, "[vdso]", &objects->vdso) == 0)
        objects->vdso->kind = KILN_OBJECT_VDSO;
    objects->vdso_tried = true;
    return objects->vdso ? kiln_object_ref(objects->vdso) : NULL;
}

static void unlink_object(struct kiln_objects *objects, struct object *o)
{
    struct object **at = &objects->by_file[o->file_hash % BUCKETS];

    while (*at != o)
        at = &(*at)->next_file;
    *at = o->next_file;
    at = &objects->by_path[o->path_hash % BUCKETS];
    while (*at != o)
        at = &(*at)->next_path;
    *at = o->next_path;
}

static void forget(struct kiln_objects *objects, struct object *o)
{
    if (objects->on_gone)
        objects->on_gone(objects->context, &o->pub);
    close_file(objects, o);
    unlink_object(objects, o);
    kiln_link_drop(&o->use);
    objects->n--;
    kiln_object_unref(&o->pub);
}

static void sweep_ring(struct kiln_objects *objects, struct kiln_link *ring)
{
    for (struct kiln_link *at = ring->prev, *prev; at != ring; at = prev) {
        struct object *o = KILN_OF_LINK(struct object, use, at);

        prev = at->prev;
        if (atomic_load_explicit(&o->pub.refs, memory_order_acquire) > 1)
            o->idle = 0;
        else if (++o->idle > IDLE_SWEEPS || objects->n > objects->max_open)
            forget(objects, o);
    }
}

void kiln_objects_sweep(struct kiln_objects *objects)
{
    sweep_ring(objects, &objects->closed);
    sweep_ring(objects, &objects->open);
    kiln_metric_set(objects->metric_known, objects->n);
    kiln_metric_set(objects->metric_open, objects->n_open);
}

static uint32_t open_limit(uint32_t max)
{
    struct rlimit limit;

    if (max)
        return max;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur / 2 > OPEN_MAX)
        return OPEN_MAX;
    return limit.rlim_cur >= 16 ? (uint32_t)limit.rlim_cur / 2 : 8;
}

int kiln_objects_new(uint32_t max, uint64_t weight_max, struct kiln_metrics *metrics,
                     struct kiln_objects **ret_objects)
{
    struct kiln_objects *objects = kiln_calloc(1, sizeof(*objects));

    if (!objects)
        return -ENOMEM;
    kiln_link_init(&objects->open);
    kiln_link_init(&objects->closed);
    objects->max_open = open_limit(max);
    objects->weight_max = weight_max;
    objects->metric_known =
        kiln_metric_gauge(metrics, "kiln_host_objects", "Files with code that are known.");
    objects->metric_open =
        kiln_metric_gauge(metrics, "kiln_host_objects_open", "Files with code that are open.");
    objects->metric_closed =
        kiln_metric_counter(metrics, "kiln_host_objects_closed_total",
                            "Files with code that were closed because too many were open.");
    *ret_objects = objects;
    return 0;
}

void kiln_objects_free(struct kiln_objects *objects)
{
    if (!objects)
        return;
    kiln_object_unref(objects->vdso);
    while (!kiln_link_empty(&objects->open))
        forget(objects, KILN_OF_LINK(struct object, use, objects->open.next));
    while (!kiln_link_empty(&objects->closed))
        forget(objects, KILN_OF_LINK(struct object, use, objects->closed.next));
    kiln_free(objects);
}

void kiln_objects_on_gone(struct kiln_objects *objects,
                          void (*on_gone)(void *context, struct kiln_object *object), void *context)
{
    objects->on_gone = on_gone;
    objects->context = context;
}

uint64_t kiln_objects_bytes(const struct kiln_objects *objects)
{
    return objects->weight;
}
