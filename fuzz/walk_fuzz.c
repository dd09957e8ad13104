/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A walk over tables and a stack that somebody made up: the first bytes are registers, then come
 * words of table memory, which are also the stack.  Whatever they are, the walk ends.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "host/bpf/record.h"

enum { MAPS = 2, WORDS = 512, STACK = 0x10000 };

struct kiln_walk_env {
    uint64_t words[WORDS];
    uint32_t frames;
};

static int kiln_walk_read(struct kiln_walk_env *env, uint64_t address, void *to, uint32_t size)
{
    if (address < STACK || address - STACK > sizeof(env->words) - size)
        return -1;
    memcpy(to, (const char *)env->words + (address - STACK), size);
    return 0;
}

static int kiln_walk_find(struct kiln_walk_env *env, const struct kiln_dir_key *key,
                          struct kiln_dir_entry *ret_entry)
{
    uint32_t slot = key->file ? 16 + key->page % 64 : 1;
    *ret_entry = (struct kiln_dir_entry){.slot = slot,
                                         .n = key->file ? (uint32_t)env->words[slot] >> 24 : MAPS,
                                         .generation = (uint32_t)env->words[slot]};
    return key->page % 8 == 7 ? -1 : 0;
}

static uint64_t kiln_walk_word(struct kiln_walk_env *env, uint32_t index)
{
    return index < WORDS ? env->words[index] : 0;
}

static void kiln_walk_stamp(struct kiln_walk_env *env, uint32_t index, uint32_t tick)
{
    env->words[index] = (uint32_t)env->words[index] | (uint64_t)tick << 32;
}

static void kiln_walk_frame(struct kiln_walk_env *env, uint32_t n, uint64_t address)
{
    (void)address;
    if (n != env->frames++ || n >= KILN_USER_FRAMES_MAX)
        abort();
}

#include "host/walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct kiln_walk_env env;
    struct kiln_walk walk = {.pid = 1, .tick = 3};
    struct kiln_registers registers = {0};
    uint32_t steps = 0, misses = 0;
    size_t head = size < sizeof(registers) ? size : sizeof(registers);
    size_t rest = size - head < sizeof(env.words) ? size - head : sizeof(env.words);
    memset(&env, 0, sizeof(env));
    memcpy(&registers, data, head);
    memcpy(env.words, data + head, rest);
    kiln_walk_begin(&walk, &registers, 1);
    for (;;) {
        if (++steps > KILN_USER_FRAMES_MAX + 64)
            abort();
        if (!kiln_walk_step(&env, &walk))
            continue;
        if (!kiln_end_is_miss(walk.end) || ++misses > 32)
            break;
        kiln_walk_without(&walk);
    }
    if (walk.end >= KILN_ENDS || walk.n != env.frames)
        abort();
    return 0;
}
