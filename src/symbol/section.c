/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the inflated bytes of a section go is decided when it is opened, by the size that it
 * claims: up to SMALL, into memory; else to the scratch file, at a place that is kept free for the
 * whole of it (the file is sparse: a claim costs nothing); without a scratch file into memory, if
 * half of what the budget has left is enough.
 *
 * Up to SMALL it is inflated at once.  A larger one is streamed from its front in steps, as far as
 * the read at hand needs; the deadline is looked at after each step, so that whoever asks again
 * always comes forward.
 */
#include "symbol/section.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "symbol/unpack.h"

enum { SMALL = 4 << 20, STEP = 256 << 10 };

struct kiln_inflated {
    struct kiln_bytes from; /* the ELF file's */
    struct kiln_packed packed;
    struct kiln_section_room room;
    uint8_t *memory;            /* of all of it, or of a step on its way to the scratch file */
    uint64_t place;             /* in the scratch file */
    bool in_scratch;            /* else in memory */
    uint64_t ready;             /* bytes that are inflated */
    size_t charged;             /* to the budget */
    int error;                  /* sticky */
    struct kiln_unpack *unpack; /* while it is streamed */
};

/* The first gap that is large enough. */
static int take_place(struct kiln_scratch *scratch, uint64_t size, uint64_t *ret_at)
{
    uint64_t at = 0;
    uint32_t i = 0;

    if (scratch->n == KILN_SCRATCH_PARTS || size > scratch->max)
        return KILN_E_LIMIT;
    for (; i < scratch->n && size > scratch->parts[i].at - at; i++)
        at = scratch->parts[i].at + scratch->parts[i].size;
    if (at > scratch->max - size)
        return KILN_E_LIMIT;
    memmove(&scratch->parts[i + 1], &scratch->parts[i],
            (scratch->n - i) * sizeof(scratch->parts[0]));
    scratch->parts[i] = (struct kiln_scratch_part){at, size};
    scratch->n++;
    *ret_at = at;
    return 0;
}

static void give_place(struct kiln_scratch *scratch, uint64_t at)
{
    uint32_t i = 0;

    while (i < scratch->n && scratch->parts[i].at != at)
        i++;
    if (i == scratch->n)
        return;
    scratch->n--;
    memmove(&scratch->parts[i], &scratch->parts[i + 1],
            (scratch->n - i) * sizeof(scratch->parts[0]));
    if (scratch->n == 0 && !scratch->shared)
        (void)!ftruncate(scratch->fd, 0);
}

static int charge(struct kiln_inflated *self, size_t n)
{
    int r = kiln_budget_take(self->room.budget, n);

    if (r == 0)
        self->charged += n;
    return r;
}

static void uncharge(struct kiln_inflated *self, size_t n)
{
    kiln_budget_give(self->room.budget, n);
    self->charged -= n;
}

static int take_memory(struct kiln_inflated *self, size_t n)
{
    int r = charge(self, n);

    if (r < 0)
        return r;
    self->memory = kiln_malloc(n);
    return self->memory ? 0 : -ENOMEM;
}

static bool is_small(const struct kiln_inflated *self)
{
    return !self->in_scratch && self->packed.size <= SMALL && self->packed.n <= SMALL;
}

/* All at once.  The compressed bytes are in memory only meanwhile. */
static int inflate_small(struct kiln_inflated *self)
{
    size_t n = (size_t)self->packed.n;
    void *packed;
    int r = charge(self, n);

    if (r < 0)
        return r;
    packed = kiln_malloc(n ? n : 1);
    r = packed ? self->from.read(&self->from, self->packed.at, packed, n) : -ENOMEM;
    if (r == 0)
        r = take_memory(self, (size_t)self->packed.size);
    if (r == 0)
        r = kiln_unpack_whole(self->packed.packing, packed, n, self->memory,
                              (size_t)self->packed.size);
    if (r == 0)
        self->ready = self->packed.size;
    kiln_free(packed);
    uncharge(self, n);
    return r;
}

static int begin_stream(struct kiln_inflated *self)
{
    int r = charge(self, kiln_unpack_bytes(self->packed.packing));

    if (r == 0)
        r = take_memory(self, self->in_scratch ? STEP : (size_t)self->packed.size);
    return r < 0 ? r : kiln_unpack_open(&self->from, &self->packed, &self->unpack);
}

static void end_stream(struct kiln_inflated *self)
{
    kiln_unpack_close(self->unpack);
    self->unpack = NULL;
    uncharge(self, kiln_unpack_bytes(self->packed.packing));
    if (self->in_scratch) {
        kiln_free(self->memory);
        self->memory = NULL;
        uncharge(self, STEP);
    }
}

static int write_scratch(const struct kiln_inflated *self, const uint8_t *from, size_t n)
{
    uint64_t at = self->place + self->ready;

    while (n > 0) {
        ssize_t r = pwrite(self->room.scratch->fd, from, n, (off_t)at);

        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0)
            return r < 0 ? -errno : -EIO;
        from += r;
        n -= (size_t)r;
        at += (uint64_t)r;
    }
    return 0;
}

static int step(struct kiln_inflated *self)
{
    uint64_t left = self->packed.size - self->ready;
    size_t n = left < STEP ? (size_t)left : STEP;
    uint8_t *to = self->in_scratch ? self->memory : self->memory + self->ready;
    int r = kiln_unpack_read(self->unpack, to, n);

    if (r == 0 && self->in_scratch)
        r = write_scratch(self, to, n);
    if (r < 0)
        return r;
    self->ready += n;
    if (self->ready == self->packed.size)
        end_stream(self);
    return 0;
}

static bool is_late(const struct kiln_inflated *self)
{
    const uint64_t *deadline_ns = self->room.deadline_ns;

    return deadline_ns && *deadline_ns && kiln_clock_mono_ns() >= *deadline_ns;
}

/* Inflates until the first `end` bytes are there. */
static int reach(struct kiln_inflated *self, uint64_t end)
{
    if (self->error == 0 && self->ready == 0 && !self->unpack)
        self->error = is_small(self) ? inflate_small(self) : begin_stream(self);
    while (self->error == 0 && self->ready < end) {
        self->error = step(self);
        if (self->error == 0 && self->ready < end && is_late(self))
            return -EAGAIN;
    }
    return self->ready >= end ? 0 : self->error;
}

static int read_scratch(const struct kiln_inflated *self, uint64_t offset, void *to, size_t n)
{
    uint64_t at = self->place + offset;
    char *into = to;

    while (n > 0) {
        ssize_t r = pread(self->room.scratch->fd, into, n, (off_t)at);

        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0)
            return r < 0 ? -errno : KILN_E_TRUNCATED;
        into += r;
        n -= (size_t)r;
        at += (uint64_t)r;
    }
    return 0;
}

static int read_inflated(const struct kiln_bytes *bytes, uint64_t offset, void *to, size_t n)
{
    struct kiln_inflated *self = bytes->self;
    int r;

    if (n > bytes->size || offset > bytes->size - n)
        return KILN_E_TRUNCATED;
    if (n == 0)
        return 0;
    r = reach(self, offset + n);
    if (r < 0)
        return r;
    if (self->in_scratch)
        return read_scratch(self, offset, to, n);
    memcpy(to, self->memory + offset, n);
    return 0;
}

static int choose_place(struct kiln_inflated *self)
{
    const struct kiln_budget *budget = self->room.budget;

    if (self->packed.size <= SMALL)
        return 0;
    if (self->room.scratch) {
        self->in_scratch = true;
        return take_place(self->room.scratch, self->packed.size, &self->place);
    }
    return self->packed.size > (budget->limit - budget->used) / 2 ? KILN_E_LIMIT : 0;
}

static int open_packed(const struct kiln_elf *elf, const struct kiln_elf_section *from,
                       const struct kiln_section_room *room, struct kiln_section *ret_section)
{
    struct kiln_inflated *self;
    struct kiln_packed packed;
    int r = kiln_packed_read(elf, from, &packed);

    if (r < 0)
        return r;
    self = kiln_calloc(1, sizeof(*self));
    if (!self)
        return -ENOMEM;
    self->from = elf->bytes;
    self->packed = packed;
    self->room = *room;
    r = choose_place(self);
    if (r < 0) {
        kiln_free(self);
        return r;
    }
    ret_section->bytes =
        (struct kiln_bytes){.read = read_inflated, .size = packed.size, .fd = -1, .self = self};
    ret_section->size = packed.size;
    ret_section->self = self;
    return 0;
}

static const struct kiln_elf_section *find(const struct kiln_elf *elf, const char *name)
{
    const struct kiln_elf_section *found = kiln_elf_section(elf, name);
    char old[64];

    if (found || name[0] != '.')
        return found;
    snprintf(old, sizeof(old), ".z%s", name + 1);
    return kiln_elf_section(elf, old);
}

int kiln_section_open(const struct kiln_elf *elf, const char *name,
                      const struct kiln_section_room *room, struct kiln_section *ret_section)
{
    const struct kiln_elf_section *found = find(elf, name);

    memset(ret_section, 0, sizeof(*ret_section));
    if (!found || found->type == SHT_NOBITS)
        return -ENOENT;
    if (kiln_section_is_packed(found))
        return open_packed(elf, found, room, ret_section);
    if (found->size > elf->bytes.size || found->offset > elf->bytes.size - found->size)
        return KILN_E_TRUNCATED;
    ret_section->bytes = elf->bytes;
    ret_section->base = found->offset;
    ret_section->size = found->size;
    return 0;
}

void kiln_section_done(struct kiln_section *section)
{
    struct kiln_inflated *self = section->self;

    memset(section, 0, sizeof(*section));
    if (!self)
        return;
    kiln_unpack_close(self->unpack);
    kiln_free(self->memory);
    kiln_budget_give(self->room.budget, self->charged);
    if (self->in_scratch)
        give_place(self->room.scratch, self->place);
    kiln_free(self);
}

int kiln_section_read(const struct kiln_section *section, uint64_t offset, void *to, size_t n)
{
    if (n > section->size || offset > section->size - n)
        return KILN_E_TRUNCATED;
    if (n == 0)
        return 0;
    return section->bytes.read(&section->bytes, section->base + offset, to, n);
}

const uint8_t *kiln_section_memory(const struct kiln_section *section)
{
    const struct kiln_inflated *self = section->self;

    if (!self)
        return section->bytes.data ? (const uint8_t *)section->bytes.data + section->base : NULL;
    return !self->in_scratch && self->ready == section->size ? self->memory : NULL;
}
