/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names_fuzz - opens names of anything and asks for some: whatever comes out is text.
 */
#ifndef KILN_FUZZ_NAMES_FUZZ_H
#define KILN_FUZZ_NAMES_FUZZ_H

#include "fuzz.h"
#include "symbol/names.h"

static inline void fuzz_check_text(struct kiln_str text)
{
    FUZZ_CHECK(text.len <= 4096);
    FUZZ_CHECK(kiln_utf8_valid(text));
    for (size_t i = 0; i < text.len; i++)
        FUZZ_CHECK((unsigned char)text.ptr[i] >= 0x20);
}

static inline void fuzz_names(enum kiln_source_kind kind, const void *data, size_t n)
{
    const struct kiln_names_limits limits = {.memory_bytes = 32 << 20, .symbols = 100000};
    struct kiln_bytes bytes = kiln_bytes_memory(data, n);
    struct kiln_names *names = NULL;

    if (kiln_names_open(kind, &bytes, &limits, &names) < 0)
        return;
    for (uint64_t i = 0; i < 96; i++) {
        uint64_t address = i < 32 ? 0x1000 + i * 16 : i * UINT64_C(0x0123456789abcdef);
        struct kiln_name name = {0};

        if (i >= 64 && n >= 8) /* likely to be one that the input names */
            memcpy(&address, (const char *)data + (i - 64) * (n - 8) / 32, 8);
        if (!kiln_names_find(names, address, &name)) {
            FUZZ_CHECK(name.n == 0 && name.begin <= address);
            continue;
        }
        FUZZ_CHECK(name.n > 0 && name.n <= KILN_NAME_FRAMES_MAX);
        fuzz_check_text(name.module);
        for (uint32_t f = 0; f < name.n; f++) {
            FUZZ_CHECK(name.frames[f].function.len > 0);
            fuzz_check_text(name.frames[f].function);
            fuzz_check_text(name.frames[f].system_name);
            fuzz_check_text(name.frames[f].file);
        }
    }
    kiln_names_close(names);
}

static inline void fuzz_check_same(struct kiln_names *a, struct kiln_names *b, uint64_t address)
{
    struct kiln_name name = {0};
    bool found = kiln_names_find(a, address, &name);
    struct kiln_name other = {0};

    FUZZ_CHECK(kiln_names_find(b, address, &other) == found);
    FUZZ_CHECK(kiln_str_eq(kiln_name_function(&name), kiln_name_function(&other)));
}

/* The same, read bit by bit, must come to the same. */
static inline void fuzz_names_grow(enum kiln_source_kind kind, const uint8_t *data, size_t size)
{
    struct kiln_bytes half = kiln_bytes_memory(data, size / 2);
    struct kiln_bytes all = kiln_bytes_memory(data, size);
    struct kiln_names *grown = NULL;
    struct kiln_names *whole = NULL;

    if (kiln_names_open(kind, &half, NULL, &grown) == 0 &&
        kiln_names_open(kind, &all, NULL, &whole) == 0 && kiln_names_grow(grown, &all) == 0) {
        for (uint64_t i = 0; i < 64; i++)
            fuzz_check_same(grown, whole, 0x1000 + i * 8);
    }
    kiln_names_close(grown);
    kiln_names_close(whole);
}

#endif /* KILN_FUZZ_NAMES_FUZZ_H */
