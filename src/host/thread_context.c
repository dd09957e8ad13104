/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that defines the variable says by a relocation which words the dynamic linker fills in
 * (symbol/tls.h).  In the process they have:
 *
 *   an offset      from the thread pointer, below it
 *   a pair         the number of the module, and the offset in its block
 *   a descriptor   a function and its argument, which is an offset from the thread pointer, or
 * where the module came later than the program points to such a pair and, in glibc, how new a
 * thread's vector must be to have the block
 *
 * A number of a module or an offset that no linker gives out means that the words are not filled in
 * yet, as is so in old versions of glibc until the variable is first used.
 */
#include "host/thread_context.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "host/process_int.h"

#define NAME "otel_thread_ctx_v1"

enum {
    FILES_MAX = 2048, /* mappings of code that are looked at */
    DEFINERS_MAX = 4, /* files that have the variable, of a process */
    MODULES_MAX = 1 << 16,
    OFFSET_MAX = 1 << 30, /* of a block, and of all that were there at start */
    INTERPRETER_MAX = 256,
};

/* ---- words ---- */

static int with_offset(int64_t offset, struct kiln_context_place *ret_place)
{
    if (offset >= 0 || offset < -(int64_t)OFFSET_MAX)
        return -EAGAIN;
    ret_place->offset = offset;
    return 0;
}

static int with_module(uint64_t module, int64_t offset, struct kiln_context_place *ret_place)
{
    if (module == 0 || module > MODULES_MAX || offset < 0 || offset > OFFSET_MAX)
        return -EAGAIN;
    ret_place->module = (uint32_t)module;
    ret_place->offset = offset;
    return 0;
}

static int with_descriptor(const struct kiln_peek *peek, uint64_t argument, int64_t add,
                           struct kiln_context_place *ret_place)
{
    uint64_t words[3];
    int r;

    if ((int64_t)argument < 0)
        return with_offset((int64_t)argument + add, ret_place);
    r = kiln_peek(peek, argument, words, sizeof(words));
    if (r == 0)
        r = with_module(words[0], (int64_t)words[1] + add, ret_place);
    if (r == 0)
        ret_place->generation = words[2];
    return r < 0 ? -EAGAIN : 0;
}

int kiln_thread_context_place(const struct kiln_tls_variable *variable, uint64_t bias,
                              const struct kiln_peek *peek, struct kiln_context_place *ret_place)
{
    struct kiln_context_place place = {.entry_bytes = KILN_CONTEXT_GLIBC};
    bool is_pair = variable->kind == KILN_TLS_PAIR || variable->kind == KILN_TLS_DESCRIPTOR;
    int64_t add = variable->add;
    uint64_t words[2] = {0};
    int r = 0;

    if (add > OFFSET_MAX || add < -(int64_t)OFFSET_MAX)
        return -EAGAIN;
    if (variable->kind != KILN_TLS_FIXED)
        r = kiln_peek(peek, bias + variable->word, words, is_pair ? 16 : 8);
    if (r < 0)
        return -EAGAIN;
    switch (variable->kind) {
    case KILN_TLS_FIXED:
        r = with_offset(add, &place);
        break;
    case KILN_TLS_OFFSET:
        r = (int64_t)words[0] < 0 ? with_offset((int64_t)words[0] + add, &place) : -EAGAIN;
        break;
    case KILN_TLS_PAIR:
        r = with_module(words[0], (int64_t)words[1], &place);
        break;
    case KILN_TLS_MODULE:
        r = with_module(words[0], add, &place);
        break;
    default:
        r = with_descriptor(peek, words[1], add, &place);
        break;
    }
    if (r == 0)
        *ret_place = place;
    return r;
}

/* ---- files ---- */

/* Whether the file has the variable; found out once, which `budget` files that have it may cost. */
static bool has_variable(struct kiln_object *object, bool is_program, uint32_t *budget)
{
    int r;

    if (object->spans == KILN_SPANS_UNKNOWN && object->elf && *budget > 0) {
        r = kiln_tls_find(object->elf, NAME, is_program, &object->spans_at);
        object->spans = r == 0 ? KILN_SPANS_HERE : KILN_SPANS_NONE;
        *budget -= r != -ENOENT;
    }
    return object->spans == KILN_SPANS_HERE;
}

/* Whether a program says that musl's linker loads it; -1: it does not say who does. */
static int is_of_musl(const struct kiln_elf *elf)
{
    char path[INTERPRETER_MAX + 1] = "";

    for (uint32_t i = 0; elf && i < elf->n_segments; i++) {
        const struct kiln_elf_segment *s = &elf->segments[i];

        if (s->type != PT_INTERP)
            continue;
        if (s->file_size > INTERPRETER_MAX ||
            elf->bytes.read(&elf->bytes, s->offset, path, (size_t)s->file_size) < 0)
            return -1;
        return strstr(path, "ld-musl") != NULL;
    }
    return -1;
}

/* The next mapping of a file from the `i`-th on; NULL: there are no more, or too many. */
static struct kiln_map *next_file(struct kiln_processes *all, struct kiln_process *process,
                                  uint32_t *i)
{
    while (*i < process->n_maps && *i < FILES_MAX) {
        const struct kiln_map *map = &process->maps[(*i)++];

        if (map->kind == KILN_MAP_FILE)
            return kiln_process_map(all, process, map->start);
    }
    return NULL;
}

/* Blocks of a static program are the program's: how vectors look matters for the others alone. */
static uint32_t entry_bytes(struct kiln_processes *all, struct kiln_process *process)
{
    uint32_t i = 0;
    const struct kiln_map *map;

    while ((map = next_file(all, process, &i))) {
        int musl = map->object ? is_of_musl(map->object->elf) : -1;

        if (musl >= 0)
            return musl ? KILN_CONTEXT_MUSL : KILN_CONTEXT_GLIBC;
    }
    return KILN_CONTEXT_GLIBC;
}

static int place_in(struct kiln_processes *all, struct kiln_process *process,
                    const struct kiln_map *map, struct kiln_context_place *ret_place)
{
    const struct kiln_tls_variable variable = map->object->spans_at;
    uint64_t bias = map->bias;
    struct kiln_peek peek;
    int dir, r;

    r = kiln_proc_open(all, kiln_proc_of(process), &dir);
    if (r == 0)
        r = kiln_peek_open(dir, &peek);
    if (r < 0)
        return -ESRCH;
    r = kiln_thread_context_place(&variable, bias, &peek, ret_place);
    kiln_peek_close(&peek);
    return r;
}

/* What the process was started with; where nobody knows, the first file that it has mapped. */
static bool is_program(const struct kiln_process *process, const struct kiln_map *map, uint32_t i)
{
    const struct kiln_identity *identity = process->identity;

    return identity && identity->executable ? identity->executable == map->object : i == 1;
}

int kiln_thread_context_find(struct kiln_processes *processes, struct kiln_process *process,
                             struct kiln_context_place *ret_place)
{
    struct kiln_context_place place;
    uint32_t i = 0, budget = DEFINERS_MAX;
    const struct kiln_map *map;
    int found = -ENOENT;

    while (found != 0 && found != -ESRCH && (map = next_file(processes, process, &i))) {
        if (map->object && has_variable(map->object, is_program(process, map, i), &budget))
            found = place_in(processes, process, map, &place);
    }
    if (found < 0)
        return found;
    place.era = process->era;
    if (place.module)
        place.entry_bytes = entry_bytes(processes, process);
    if (place.entry_bytes == KILN_CONTEXT_MUSL)
        place.generation = 0;
    *ret_place = place;
    return 0;
}
