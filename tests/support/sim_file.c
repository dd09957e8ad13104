/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The content of a file.  Pending writes are applied to what is durable one by one, in their order,
 * when they are synced or when the power fails: never by copying what the cache shows, which may
 * hold writes that a failed sync dropped.
 */
#include <stdlib.h>
#include <string.h>

#include "sim_int.h"

uint64_t kiln_sim_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void resize(struct sim_bytes *bytes, uint64_t n)
{
    if (n > bytes->cap) {
        bytes->cap = n + n / 2 + 512;
        bytes->ptr = realloc(bytes->ptr, bytes->cap);
        if (!bytes->ptr)
            abort();
    }
    if (n > bytes->n)
        memset(bytes->ptr + bytes->n, 0, n - bytes->n);
    bytes->n = n;
}

static void put(struct sim_bytes *bytes, const uint8_t *data, uint64_t n, uint64_t offset)
{
    if (n && offset + n > bytes->n)
        resize(bytes, offset + n);
    if (n)
        memcpy(bytes->ptr + offset, data, n);
}

struct sim_file *sim_file_new(void)
{
    struct sim_file *file = calloc(1, sizeof(*file));

    if (!file)
        abort();
    file->pending_end = &file->pending;
    return file;
}

static void drop_pending(struct sim_file *file)
{
    while (file->pending) {
        struct sim_write *write = file->pending;

        file->pending = write->next;
        free(write);
    }
    file->pending_end = &file->pending;
}

void sim_file_free(struct sim_file *file)
{
    drop_pending(file);
    free(file->now.ptr);
    free(file->durable.ptr);
    free(file);
}

static void add_pending(struct sim_file *file, const void *data, uint64_t n, uint64_t offset)
{
    struct sim_write *write = malloc(sizeof(*write) + n);

    if (!write)
        abort();
    *write = (struct sim_write){.offset = offset, .n = n};
    if (n)
        memcpy(write->data, data, n);
    *file->pending_end = write;
    file->pending_end = &write->next;
}

void sim_file_write(struct sim_file *file, const void *data, uint64_t n, uint64_t offset)
{
    if (n == 0)
        return;
    put(&file->now, data, n, offset);
    add_pending(file, data, n, offset);
}

void sim_file_truncate(struct sim_file *file, uint64_t size)
{
    resize(&file->now, size);
    add_pending(file, NULL, 0, size);
}

static void apply(struct sim_file *file, const struct sim_write *write)
{
    if (write->n)
        put(&file->durable, write->data, write->n, write->offset);
    else
        resize(&file->durable, write->offset);
}

void sim_file_sync(struct sim_file *file)
{
    for (struct sim_write *write = file->pending; write; write = write->next)
        apply(file, write);
    drop_pending(file);
}

/* The length grew, but not all of the content came: zeros, or what was on the disk before. */
static void grow(struct sim_bytes *durable, uint64_t n, uint64_t *random)
{
    uint64_t from = durable->n;
    bool garbage = kiln_sim_random(random) % 2;

    resize(durable, n);
    for (uint64_t i = from; garbage && i < n; i++)
        durable->ptr[i] = (uint8_t)kiln_sim_random(random);
}

static void tear(struct sim_file *file, const struct sim_write *write, uint64_t *random)
{
    uint64_t end = write->offset + write->n;
    uint64_t at = write->offset;

    if (end > file->durable.n && kiln_sim_random(random) % 2)
        grow(&file->durable, end, random);
    while (at < end) {
        uint64_t next = (at / SIM_SECTOR + 1) * SIM_SECTOR;

        if (next > end)
            next = end;
        if (kiln_sim_random(random) % 2)
            put(&file->durable, write->data + (at - write->offset), next - at, at);
        at = next;
    }
}

/* One pending write after a power cut: all of it, none, sector by sector, or only the length. */
static void chance(struct sim_file *file, const struct sim_write *write, uint64_t *random)
{
    switch (kiln_sim_random(random) % 4) {
    case 0:
        break;
    case 1:
        apply(file, write);
        break;
    case 2:
        if (write->n)
            tear(file, write, random);
        break;
    default:
        if (write->n && write->offset + write->n > file->durable.n)
            grow(&file->durable, write->offset + write->n, random);
        break;
    }
}

void sim_file_settle(struct sim_file *file, enum sim_fate fate, uint64_t *random)
{
    for (struct sim_write *write = file->pending; write; write = write->next) {
        if (fate == SIM_KEEP)
            apply(file, write);
        else if (fate == SIM_MIX)
            chance(file, write, random);
    }
    drop_pending(file);
}

void sim_file_forget(struct sim_file *file)
{
    file->now.n = 0;
    resize(&file->now, file->durable.n);
    if (file->durable.n)
        memcpy(file->now.ptr, file->durable.ptr, file->durable.n);
}
