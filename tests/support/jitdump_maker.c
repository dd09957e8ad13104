/* SPDX-License-Identifier: Apache-2.0 */
#include "jitdump_maker.h"

#include <assert.h>
#include <string.h>

enum { LOAD = 0, MOVE = 1, LINES = 2, CODE = 32 };

static void put(struct jitdump_maker *maker, const void *data, size_t n)
{
    assert(maker->n + n <= sizeof(maker->data));
    memcpy(maker->data + maker->n, data, n);
    maker->n += n;
}

static void put_32(struct jitdump_maker *maker, uint32_t value)
{
    put(maker, &value, sizeof(value));
}

static void put_64(struct jitdump_maker *maker, uint64_t value)
{
    put(maker, &value, sizeof(value));
}

void jitdump_maker_begin(struct jitdump_maker *maker, uint32_t unused)
{
    maker->n = maker->loads = 0;
    put_32(maker, 0x4a695444);
    put_32(maker, 1);
    put_32(maker, 40);
    put_32(maker, 62);
    put_32(maker, unused);
    put_32(maker, 1234);
    put_64(maker, 1);
    put_64(maker, 0);
}

/* Its size is known once it is complete. */
static size_t begin(struct jitdump_maker *maker, uint32_t kind)
{
    size_t at = maker->n;

    put_32(maker, kind);
    put_32(maker, 0);
    put_64(maker, 1);
    return at;
}

static void end(struct jitdump_maker *maker, size_t at)
{
    uint32_t size = (uint32_t)(maker->n - at);

    memcpy(maker->data + at + 4, &size, sizeof(size));
}

void jitdump_maker_load(struct jitdump_maker *maker, uint64_t address, uint64_t size,
                        const char *name)
{
    static const uint8_t code[CODE] = {0xc3};
    size_t at = begin(maker, LOAD);

    put_64(maker, 1234);
    put_64(maker, address);
    put_64(maker, address);
    put_64(maker, size);
    put_64(maker, ++maker->loads);
    put(maker, name, strlen(name) + 1);
    put(maker, code, size < CODE ? (size_t)size : CODE);
    end(maker, at);
}

void jitdump_maker_move(struct jitdump_maker *maker, uint64_t number, uint64_t to, uint64_t size)
{
    size_t at = begin(maker, MOVE);

    put_64(maker, 1234);
    put_64(maker, to);
    put_64(maker, 0);
    put_64(maker, to);
    put_64(maker, size);
    put_64(maker, number);
    end(maker, at);
}

void jitdump_maker_lines(struct jitdump_maker *maker, uint64_t address,
                         const struct jitdump_line *lines, uint32_t n)
{
    size_t at = begin(maker, LINES);

    put_64(maker, address);
    put_64(maker, n);
    for (uint32_t i = 0; i < n; i++) {
        const char *file = lines[i].file ? lines[i].file : "\xff";

        put_64(maker, lines[i].address);
        put_32(maker, lines[i].line);
        put_32(maker, 3);
        put(maker, file, strlen(file) + 1);
    }
    end(maker, at);
}

void jitdump_maker_record(struct jitdump_maker *maker, uint32_t kind, const void *data, size_t n)
{
    size_t at = begin(maker, kind);

    put(maker, data, n);
    end(maker, at);
}
