/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that belongs to no object, out of /proc/thread-self/maps:
 *
 *   start-end rwxp offset major:minor inode   name
 *
 * in order of addresses.  Such ranges are kept sorted in two words each, under a sequence number
 * that is odd while they change: whoever reads meanwhile takes it as a miss.  Engines switch pages
 * between writing and executing: what was code once counts as code for as long as something is
 * mapped there.
 *
 * Where the loader cannot be asked, mappings of files are objects if an ELF header is at their
 * beginning.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inproc/unwind/objects_int.h"
#include "inproc/unwind/peek.h"

enum {
    RANGES_MAX = 512,
    BUFFER = 8192,
    SEGMENTS_MAX = 16,
    PAUSE_MAX = 128, /* turns of the keeper, when looking brings nothing new */
    GUESTS_TURNS = 50,
};

struct range {
    uint64_t start, end;
};

static struct {
    _Atomic uint32_t sequence;
    _Atomic uint32_t n;
    _Atomic uint64_t bounds[RANGES_MAX * 2];
    _Atomic bool is_wanted;
} made;

/* ---- readers ---- */

static bool search(uint64_t address)
{
    uint32_t low = 0, n = atomic_load_explicit(&made.n, memory_order_relaxed);

    while (n) {
        uint32_t half = n / 2;

        if (atomic_load_explicit(&made.bounds[(low + half) * 2], memory_order_relaxed) <= address) {
            low += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return low && address < atomic_load_explicit(&made.bounds[low * 2 - 1], memory_order_relaxed);
}

bool kiln_in_object_is_made(uint64_t address)
{
    uint32_t before = atomic_load_explicit(&made.sequence, memory_order_acquire);
    bool found = search(address);

    atomic_thread_fence(memory_order_acquire);
    if (found && !(before & 1) &&
        atomic_load_explicit(&made.sequence, memory_order_relaxed) == before)
        return true;
    if (!atomic_load_explicit(&made.is_wanted, memory_order_relaxed))
        atomic_store_explicit(&made.is_wanted, true, memory_order_relaxed);
    return false;
}

/* ---- one look at the mappings, by the keeper ---- */

struct mapping {
    uint64_t start, end, offset, inode;
    bool is_code;
    const char *name;
};

struct look {
    struct range ranges[RANGES_MAX];
    uint32_t n;
    struct mapping begun; /* the last mapping of a file from its beginning on */
    struct kiln_in_object objects[KILN_IN_GUESTS_MAX];
    uint32_t n_objects;
};

static void add_range(struct look *look, uint64_t start, uint64_t end)
{
    if (look->n && look->ranges[look->n - 1].end == start)
        look->ranges[look->n - 1].end = end;
    else if (look->n < RANGES_MAX)
        look->ranges[look->n++] = (struct range){start, end};
}

static struct range old_range(uint32_t i)
{
    return (struct range){atomic_load_explicit(&made.bounds[i * 2], memory_order_relaxed),
                          atomic_load_explicit(&made.bounds[i * 2 + 1], memory_order_relaxed)};
}

/* What was code, as far as this mapping has it. */
static void add_old(struct look *look, const struct mapping *m)
{
    for (uint32_t i = 0; i < atomic_load_explicit(&made.n, memory_order_relaxed); i++) {
        struct range old = old_range(i);

        if (old.start < m->end && m->start < old.end)
            add_range(look, old.start > m->start ? old.start : m->start,
                      old.end < m->end ? old.end : m->end);
    }
}

/* The object whose first mapping is `look->begun`, by the headers in memory. */
static bool read_object(const struct mapping *begun, struct kiln_in_object *object)
{
    Elf64_Ehdr head;
    Elf64_Phdr segments[SEGMENTS_MAX];
    uint64_t bias = 0, first = UINT64_MAX, last = 0, header = 0;

    if (kiln_in_peek(begun->start, &head, sizeof(head)) != sizeof(head) ||
        memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_phentsize != sizeof(*segments) ||
        head.e_phnum > SEGMENTS_MAX ||
        kiln_in_peek(begun->start + head.e_phoff, segments, head.e_phnum * sizeof(*segments)) !=
            head.e_phnum * sizeof(*segments))
        return false;
    for (int i = 0; i < head.e_phnum; i++) {
        const Elf64_Phdr *s = &segments[i];

        if (s->p_type == PT_GNU_EH_FRAME)
            header = s->p_vaddr;
        if (s->p_type == PT_LOAD && s->p_vaddr < first)
            first = s->p_vaddr & ~(uint64_t)(KILN_IN_PAGE - 1);
        if (s->p_type == PT_LOAD && s->p_vaddr + s->p_memsz > last)
            last = s->p_vaddr + s->p_memsz;
    }
    bias = begun->start - first;
    *object = (struct kiln_in_object){.start = begun->start,
                                      .end = bias + last,
                                      .header = header ? bias + header : 0,
                                      .identity = begun->inode};
    return first < last;
}

/* Whether code in a mapping belongs to an object. */
static bool is_object(struct look *look, const struct mapping *m)
{
    struct kiln_in_object object;

    if (kiln_in_object_can_ask() || !m->inode || look->begun.inode != m->inode)
        return kiln_in_object_find(m->start, &object);
    if (!read_object(&look->begun, &object) || m->start >= object.end)
        return false;
    if (look->n_objects < KILN_IN_GUESTS_MAX)
        look->objects[look->n_objects++] = object;
    return true;
}

static void see(struct look *look, const struct mapping *m)
{
    if (m->inode && m->offset == 0)
        look->begun = *m;
    if (m->name[0] == '[' && m->name[1] == 'v')
        return;
    if (m->is_code && !is_object(look, m))
        add_range(look, m->start, m->end);
    else if (!m->inode)
        add_old(look, m);
}

static void see_line(struct look *look, char *line)
{
    struct mapping m = {0};
    char *at;

    m.start = strtoull(line, &at, 16);
    if (*at++ != '-')
        return;
    m.end = strtoull(at, &at, 16);
    if (strnlen(at, 6) < 6)
        return;
    m.is_code = at[3] == 'x';
    m.offset = strtoull(at + 5, &at, 16);
    if (!*at || !(at = strchr(at + 1, ' ')))
        return;
    m.inode = strtoull(at, &at, 10);
    m.name = at + strspn(at, " ");
    if (m.start < m.end)
        see(look, &m);
}

/* Lines that are longer than the buffer are cut: all that matters is at their beginning. */
static bool read_maps(struct look *look)
{
    char buffer[BUFFER + 1];
    size_t n = 0;
    ssize_t got = 0;
    int fd = open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return false;
    while (n < BUFFER && (got = read(fd, buffer + n, BUFFER - n)) > 0) {
        char *line = buffer, *end;

        n += (size_t)got;
        buffer[n] = '\0';
        while ((end = strchr(line, '\n'))) {
            *end = '\0';
            see_line(look, line);
            line = end + 1;
        }
        n -= (size_t)(line - buffer);
        memmove(buffer, line, n);
    }
    close(fd);
    return got == 0;
}

/* Ranges as they are now.  Bits: 1 something is new, 2 something is gone. */
static unsigned publish(const struct look *look)
{
    uint32_t n = atomic_load_explicit(&made.n, memory_order_relaxed);
    uint64_t before = 0, after = 0;
    unsigned changes = 0;

    for (uint32_t i = 0; i < n; i++)
        before += old_range(i).end - old_range(i).start;
    for (uint32_t i = 0; i < look->n; i++)
        after += look->ranges[i].end - look->ranges[i].start;
    for (uint32_t i = 0; i < look->n && !changes; i++)
        changes = i >= n || old_range(i).start != look->ranges[i].start ||
                  old_range(i).end != look->ranges[i].end;
    if (look->n < n || after < before)
        changes |= 2;
    if (!changes)
        return 0;
    atomic_fetch_add_explicit(&made.sequence, 1, memory_order_acq_rel);
    for (uint32_t i = 0; i < look->n; i++) {
        atomic_store_explicit(&made.bounds[i * 2], look->ranges[i].start, memory_order_relaxed);
        atomic_store_explicit(&made.bounds[i * 2 + 1], look->ranges[i].end, memory_order_relaxed);
    }
    atomic_store_explicit(&made.n, look->n, memory_order_relaxed);
    atomic_fetch_add_explicit(&made.sequence, 1, memory_order_release);
    return changes;
}

static const struct look *current;

static bool is_mapped(const struct kiln_in_object *guest)
{
    for (uint32_t i = 0; i < current->n_objects; i++) {
        const struct kiln_in_object *object = &current->objects[i];

        if (object->start == guest->start && object->end == guest->end &&
            object->identity == guest->identity)
            return true;
    }
    return false;
}

static bool take_objects(const struct look *look, unsigned *changes)
{
    struct kiln_in_object known;
    bool left;

    current = look;
    left = kiln_in_guests_check(is_mapped);
    for (uint32_t i = 0; i < look->n_objects; i++) {
        if (!kiln_in_object_find(look->objects[i].start, &known) &&
            kiln_in_guest_enter(&look->objects[i]))
            *changes |= 1;
    }
    return left;
}

bool kiln_in_object_work(void)
{
    static struct look look;
    static uint32_t turn, next, pause = 1;
    bool left = kiln_in_object_can_ask() && kiln_in_guests_check(kiln_in_object_is_loaded);
    bool due = !kiln_in_object_can_ask() && turn % GUESTS_TURNS == 0;
    unsigned changes;

    if (turn++ < next || !(atomic_exchange_explicit(&made.is_wanted, false, memory_order_relaxed) ||
                           due || turn == 1))
        return left;
    look.n = look.n_objects = 0;
    look.begun = (struct mapping){0};
    if (!read_maps(&look))
        return left;
    changes = publish(&look);
    if (!kiln_in_object_can_ask())
        left |= take_objects(&look, &changes);
    pause = changes & 1 ? 1 : pause < PAUSE_MAX ? pause * 2 : pause;
    next = turn + pause;
    return left || (changes & 2);
}
