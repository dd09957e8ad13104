/* SPDX-License-Identifier: Apache-2.0 */
#include "go_maker.h"

#include <assert.h>
#include <string.h>

enum { HEAD = 72, FUNC = 44, LISTS = 7 * 4, PART = 512 };

static void put_32(uint8_t *at, uint32_t value)
{
    memcpy(at, &value, 4);
}

static void put_64(uint8_t *at, uint64_t value)
{
    memcpy(at, &value, 8);
}

/* Adds a text with its NUL to a part, and returns where it is there. */
static uint32_t add(uint8_t *part, uint32_t *n, const char *text)
{
    uint32_t at = *n, len = (uint32_t)strlen(text) + 1;

    assert(at + len <= PART);
    memcpy(part + at, text, len);
    *n += len;
    return at;
}

/* 0 for a function without such a table. */
static uint32_t add_values(uint8_t *part, uint32_t *n, const char *values)
{
    return values && values[0] ? add(part, n, values) : 0;
}

/* The lists behind a function: three of pcdata, four of funcdata. */
static void put_lists(uint8_t *func, const struct go_made_func *made, uint8_t *values, uint32_t *n)
{
    if (!made->calls)
        return;
    put_32(func + 28, 3);
    func[43] = 4;
    memset(func + FUNC, 0xff, LISTS);
    put_32(func + FUNC, 0);
    put_32(func + FUNC + 4, 0);
    put_32(func + FUNC + 8, add(values, n, made->calls));
    put_32(func + FUNC + 24, made->tree);
}

size_t go_maker_make(uint8_t to[4096], uint64_t text, const struct go_made_func *funcs, uint32_t n,
                     const char *const *files, uint32_t n_files)
{
    uint8_t *names = to + HEAD, *units = names + PART, *paths = units + PART;
    uint8_t *values = paths + PART, *list = values + PART;
    uint32_t n_names = 0, n_paths = 0, n_values = 1, entry = 0;

    memset(to, 0, 4096);
    put_32(to, 0xfffffff1);
    to[6] = 1;
    to[7] = 8;
    put_64(to + 8, n);
    put_64(to + 16, n_files);
    put_64(to + 24, text);
    for (uint32_t i = 0; i < 5; i++)
        put_64(to + 32 + (size_t)8 * i, HEAD + PART * i);
    for (uint32_t i = 0; i < n_files; i++)
        put_32(units + (size_t)4 * i, add(paths, &n_paths, files[i]));
    for (uint32_t i = 0; i < n; i++) {
        uint8_t *func = list + (size_t)8 * n + 8 + (size_t)(FUNC + LISTS) * i;

        put_32(list + (size_t)8 * i, entry);
        put_32(list + (size_t)8 * i + 4, (uint32_t)(func - list));
        put_32(func, entry);
        put_32(func + 4, add(names, &n_names, funcs[i].name));
        put_32(func + 16, add_values(values, &n_values, funcs[i].pcsp));
        put_32(func + 20, add_values(values, &n_values, funcs[i].pcfile));
        put_32(func + 24, add_values(values, &n_values, funcs[i].pcln));
        put_32(func + 36, funcs[i].start_line);
        func[41] = funcs[i].flags;
        put_lists(func, &funcs[i], values, &n_values);
        entry += funcs[i].size;
    }
    put_32(list + (size_t)8 * n, entry);
    return (size_t)(list - to) + (size_t)8 * n + 8 + (size_t)(FUNC + LISTS) * n;
}
