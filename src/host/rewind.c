/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How it works: host/walk.h asks a directory for what the kernel asks its hash for; here the
 * directory is the loader itself.  The mappings of the process are installed when they are asked
 * for.  For a page the directory knows no object, only its number, so it answers from the one entry
 * that was loaded last and is a miss otherwise; then the walk stands still at an address, the
 * mapping there tells the object, its page is loaded, and the same step is done again.
 *
 * What a miss asks for and is not there (no such mapping, no rows) is told to the walk, which goes
 * on without.  A step can miss for a few reasons one after the other (the process, the mapping, the
 * page, the mapping of a return address); when the tables are so small that loading one thing
 * throws another out, it would never end: so tries are counted.
 *
 * A stack may be deeper than a slice, or go on elsewhere: behind a signal on a stack of its own, in
 * a goroutine.  Outer frames stay where they are while inner ones come and go, so what a slice does
 * not have is read from the process itself, as long as that still has, around the place where
 * the walk left the slice, the bytes of the slice; they are compared before and after.  If they
 * differ, or the process is gone, the stack ends with KILN_END_SLICE.
 *
 * A sample of the kernel on its way through exec has registers of a program that is no more, and no
 * user stack.
 */
#include "host/rewind.h"

#include <string.h>
#include <sys/uio.h>

#include "host/reason.h"
#include "host/resident.h"
#include "symbol/elf.h"

struct kiln_walk_env {
    struct kiln_tables *tables;
    struct kiln_processes *processes;
    struct kiln_process *process;
    const struct kiln_stack_memory *memory;
    struct kiln_walked *walked;
    struct kiln_dir_key page; /* the one that was loaded last; file 0: none */
    struct kiln_dir_entry page_entry;
};

/* Code that the memory does not have, as its file has it. */
static int read_code(struct kiln_walk_env *env, uint64_t address, void *to, size_t size)
{
    const struct kiln_map *map = kiln_process_map_known(env->process, address);
    if (!map || !map->object || !map->object->elf)
        return -1;
    return kiln_elf_read(map->object->elf, address - map->bias, to, size);
}

static inline int kiln_walk_read(struct kiln_walk_env *env, __u64 address, void *to, __u32 size)
{
    if (env->memory->read(env->memory->context, address, to, size) == 0)
        return 0;
    return read_code(env, address, to, size);
}

static inline int kiln_walk_find(struct kiln_walk_env *env, const struct kiln_dir_key *key,
                                 struct kiln_dir_entry *ret_entry)
{
    if (key->file == 0)
        return kiln_tables_process(env->tables, env->process, ret_entry);
    if (key->file != env->page.file || key->page != env->page.page)
        return -1;
    *ret_entry = env->page_entry;
    return 0;
}

static inline __u64 kiln_walk_word(struct kiln_walk_env *env, __u32 index)
{
    return kiln_tables_word(env->tables, index);
}

static inline void kiln_walk_stamp(struct kiln_walk_env *env, __u32 index, __u32 tick)
{
    /* The tables stamp what is asked of them themselves. */
    (void)env, (void)index, (void)tick;
}

static inline void kiln_walk_frame(struct kiln_walk_env *env, __u32 n, __u64 address)
{
    env->walked->frames[n] = address;
}

#include "host/walk.h"

enum {
    TRIES_MAX = 12, /* of one step */
    AROUND = 256,   /* bytes of a slice that are compared, to each side */
    BLOCK = 16,     /* pages of tables that are loaded together */
    PAGE = 4096,    /* of memory */
};

/*
 * While there is room, a page brings its neighbours along: code that runs has more of it near by,
 * and each page that is there already is a stack that is walked in the kernel.
 */
static void load_neighbours(struct kiln_walk_env *env, const struct kiln_map *map, uint32_t page)
{
    uint64_t lowest = (map->start - map->bias) >> KILN_PAGE_BITS;
    uint64_t highest = (map->end - 1 - map->bias) >> KILN_PAGE_BITS;
    uint32_t first = page & ~(uint32_t)(BLOCK - 1);
    struct kiln_tables_stats stats;
    struct kiln_dir_entry entry;
    for (uint32_t i = first; i < first + BLOCK; i++) {
        kiln_tables_stats(env->tables, &stats);
        if (stats.used_bytes > stats.bytes / 2)
            return;
        if (i != page && i >= lowest && i <= highest &&
            kiln_tables_page(env->tables, map->object, i, &entry) != 0)
            return;
    }
}

/* Loads the page that holds an address of the mapping. */
static int load_page(struct kiln_walk_env *env, const struct kiln_map *map, uint64_t address)
{
    struct kiln_tables_stats before, after;
    struct kiln_dir_entry entry;
    if (!map->object)
        return -1;
    kiln_tables_stats(env->tables, &before);
    struct kiln_dir_key key = {.file = map->object->id,
                               .page = (uint32_t)((address - map->bias) >> KILN_PAGE_BITS)};
    if (kiln_tables_page(env->tables, map->object, key.page, &entry) != 0)
        return -1;
    kiln_tables_stats(env->tables, &after);
    if (after.loaded != before.loaded)
        load_neighbours(env, map, key.page);
    env->page = key;
    env->page_entry = entry;
    return 0;
}

/* Makes known what the walk misses.  0: the step can be done again; else it is not to be had. */
static int learn(struct kiln_walk_env *env, const struct kiln_walk *walk)
{
    struct kiln_map *map = kiln_process_map(env->processes, env->process, walk->miss);
    if (!map)
        return -1;
    return walk->end == KILN_END_NEW_PAGE ? load_page(env, map, walk->miss) : 0;
}

static void walk_on(struct kiln_walk_env *env, struct kiln_walk *walk)
{
    uint64_t missed = 0; /* what was learned in vain */
    for (int tries = 0; tries < TRIES_MAX;) {
        uint32_t before = walk->n;
        if (kiln_walk_step(env, walk) == 0) {
            tries = walk->n != before ? 0 : tries + 1;
            missed = 0;
            continue;
        }
        if (!kiln_end_is_miss(walk->end))
            return;
        tries++;
        bool again = walk->end == KILN_END_NEW_MAP && walk->miss == missed;
        missed = walk->miss;
        if (!again && learn(env, walk) == 0)
            kiln_walk_again(walk);
        else
            kiln_walk_without(walk);
    }
}

/* Registers of a frame, all of them or, of a caller, those that a walk follows. */
struct origin {
    const struct kiln_registers *registers;
    uint8_t is_leaf;
    uint64_t time_ns;
};

static void walk_from(struct kiln_walk_env *env, const struct origin *origin)
{
    struct kiln_walk walk;
    kiln_walk_begin(&walk, origin->registers, origin->is_leaf);
    walk.pid = env->process->pid;
    walk.era = env->process->era;
    walk.tick = (uint32_t)(origin->time_ns >> KILN_TICK_SHIFT);
    walk.n = env->walked->n;
    walk_on(env, &walk);
    env->walked->n = walk.n;
    env->walked->end = walk.end;
}

void kiln_rewind_memory(struct kiln_tables *tables, struct kiln_processes *processes,
                        struct kiln_process *process, const struct kiln_registers *registers,
                        const struct kiln_stack_memory *memory, struct kiln_walked *ret_walked)
{
    struct kiln_walk_env env = {.tables = tables,
                                .processes = processes,
                                .process = process,
                                .memory = memory,
                                .walked = ret_walked};
    struct origin origin = {.registers = registers, .is_leaf = 1};
    ret_walked->n = 0;
    walk_from(&env, &origin);
}

/* ---- slices ---- */

enum live {
    LIVE_UNKNOWN,
    LIVE_SAME,    /* the process still has what the slice has */
    LIVE_CHANGED, /* or it is gone, or may not be read */
};

/* The slice of stack of a raw record. */
struct slice {
    uint64_t base;
    const uint8_t *bytes;
    uint32_t n;
    uint32_t last; /* where it was read last */
    uint32_t pid;
    enum live live;
    bool is_short; /* something was asked for that could not be had */
};

static int read_live(uint32_t pid, uint64_t address, void *to, size_t n)
{
    struct iovec local = {to, n}, remote = {(void *)(uintptr_t)address, n};
    if (!kiln_is_resident(pid, address, n))
        return -1;
    return process_vm_readv((pid_t)pid, &local, 1, &remote, 1, 0) == (ssize_t)n ? 0 : -1;
}

/* Whether the stack around what was read last is in the process as it is in the slice. */
static bool is_unchanged(const struct slice *slice)
{
    uint8_t now[2 * AROUND];
    uint32_t from = slice->last > AROUND ? slice->last - AROUND : 0;
    uint32_t n = slice->n - from < sizeof(now) ? slice->n - from : (uint32_t)sizeof(now);
    bool same = n > 0 && read_live(slice->pid, slice->base + from, now, n) == 0 &&
                memcmp(now, slice->bytes + from, n) == 0;
    explicit_bzero(now, sizeof(now));
    return same;
}

/*
 * Pages that were not in memory are zeroes in a slice.  A page of nothing else is taken for one: a
 * return address 0 in it does not say that nobody called.
 */
static bool is_hole(const struct slice *slice, uint64_t at)
{
    uint64_t address = slice->base + at;
    uint64_t before = address & (PAGE - 1), behind = PAGE - before;
    uint64_t from = at > before ? at - before : 0;
    uint64_t to = behind < slice->n - at ? at + behind : slice->n;
    while (from < to && slice->bytes[from] == 0)
        from++;
    return from == to;
}

static int read_slice(void *context, uint64_t address, void *to, size_t n)
{
    struct slice *slice = context;
    uint64_t at = address - slice->base;
    if (address >= slice->base && at < slice->n && n <= slice->n - at &&
        (slice->bytes[at] || !is_hole(slice, at))) {
        memcpy(to, slice->bytes + at, n);
        slice->last = (uint32_t)at;
        return 0;
    }
    if (slice->live == LIVE_UNKNOWN)
        slice->live = is_unchanged(slice) ? LIVE_SAME : LIVE_CHANGED;
    if (slice->live == LIVE_SAME && read_live(slice->pid, address, to, n) == 0)
        return 0;
    slice->is_short = true;
    return -1;
}

/* Whether a walk that ended so might have gone on, had the slice been longer. */
static bool is_cut(uint8_t end)
{
    return end == KILN_END_READ || end == KILN_END_JIT || end == KILN_END_NO_TABLE;
}

static void walk_slice(struct kiln_walk_env *env, const struct kiln_record *record)
{
    const __u64 *behind = record->frames + record->n_kernel + record->n_user;
    struct kiln_registers registers;
    memcpy(&registers, behind, sizeof(registers));
    struct slice slice = {.base = registers.r[7],
                          .bytes = (const uint8_t *)behind + sizeof(registers),
                          .n = record->slice,
                          .pid = env->process->pid,
                          .live = env->process->gone ? LIVE_CHANGED : LIVE_UNKNOWN};
    struct kiln_stack_memory memory = {.read = read_slice, .context = &slice};
    struct origin origin = {.registers = &registers,
                            .is_leaf = (record->flags & KILN_RECORD_LEAF) != 0,
                            .time_ns = record->time_ns};
    uint32_t n = env->walked->n;
    env->memory = &memory;
    walk_from(env, &origin);
    if (slice.live == LIVE_SAME && !is_unchanged(&slice)) {
        slice.live = LIVE_CHANGED;
        env->walked->n = n;
        walk_from(env, &origin);
    }
    if (slice.is_short && is_cut(env->walked->end))
        env->walked->end = KILN_END_SLICE;
}

/* A miss of which nothing but its address came: the next walk gets further. */
static void load_missed(struct kiln_walk_env *env, uint64_t address)
{
    struct kiln_dir_entry entry;
    struct kiln_map *map = kiln_process_map(env->processes, env->process, address);
    if (kiln_tables_process(env->tables, env->process, &entry) == 0 && map)
        (void)load_page(env, map, address);
}

void kiln_rewind(struct kiln_tables *tables, struct kiln_processes *processes,
                 struct kiln_process *process, const struct kiln_record *record,
                 struct kiln_walked *ret_walked)
{
    struct kiln_walk_env env = {
        .tables = tables, .processes = processes, .process = process, .walked = ret_walked};
    ret_walked->n = record->n_user < KILN_USER_FRAMES_MAX ? record->n_user : KILN_USER_FRAMES_MAX;
    ret_walked->end = record->end;
    memcpy(ret_walked->frames, record->frames + record->n_kernel, ret_walked->n * sizeof(uint64_t));
    if (!kiln_end_is_miss(record->end))
        return;
    if (record->flags & KILN_RECORD_RAW)
        walk_slice(&env, record);
    else
        load_missed(&env, record->miss);
    if (!(record->flags & KILN_RECORD_USER_MODE) && ret_walked->n == 0 &&
        ret_walked->end == KILN_END_UNMAPPED)
        ret_walked->end = KILN_END_NO_USER;
}
