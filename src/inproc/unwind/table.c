/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linkers write a table for this, sorted, which is searched where it lies:
 *
 *   .eh_frame_hdr:  1 version, 1   1 encoding of the next address, 1b   1 of the number, 03
 *                   1 of the table, 3b   4 address of .eh_frame   4 number of entries
 *                   entries: 4 address of code, 4 of its FDE, both counted from the beginning of
 *                   this header
 *
 * One in other encodings is not used.  Bytes of an object that stays are read where they are, once
 * they are seen to be in its segment; those of others are copied by the kernel.  What is damaged
 * gives a wrong rule or none, and a walk that ends early.
 */
#include "inproc/unwind/table.h"

#include <stdatomic.h>
#include <string.h>

#include "inproc/unwind/arch.h"
#include "inproc/unwind/cache.h"
#include "inproc/unwind/objects.h"
#include "inproc/unwind/peek.h"
#include "inproc/unwind/room.h"
#include "inproc/unwind/rule.h"
#include "inproc/unwind/touched.h"
#include "symbol/cursor.h"

enum {
    PAIR = 8,
    PAIRS_AT = 12,
    PIECE = sizeof(((struct kiln_in_room *)0)->fde) / PAIR, /* pairs that are seen at once */
    STEPS_MAX = 64,
    ENTRY_MAX = 64 << 10,
    LOW_ADDRESS = 65536,
    ADDRESS_BITS = 47,
};

static _Atomic uint64_t lookups;

/* The bytes at an address, `n` of them or fewer; those of guests are copied to `copy`. */
static const uint8_t *see(const struct kiln_in_object *object, uint64_t at, void *copy, size_t *n)
{
    if (!object->stays) {
        *n = kiln_in_peek(at, copy, *n);
        return copy;
    }
    if (at < object->low || at >= object->high) {
        *n = 0;
        return copy;
    }
    if (*n > object->high - at)
        *n = (size_t)(object->high - at);
    return (const uint8_t *)(uintptr_t)at; /* NOLINT(performance-no-int-to-ptr) */
}

/* How many entries the table has. */
static uint32_t count_pairs(const struct kiln_in_object *object)
{
    static const uint8_t known[] = {1, 0x1b, 0x03, 0x3b};
    uint8_t copy[PAIRS_AT];
    size_t n = sizeof(copy);
    const uint8_t *seen = object->header ? see(object, object->header, copy, &n) : NULL;

    if (!seen || n != sizeof(copy) || memcmp(seen, known, sizeof(known)) != 0)
        return 0;
    return kiln_get_32(seen + 8);
}

/* Entries [low, high) of a table, which are for addresses in [low_at, high_at). */
struct stretch {
    uint32_t low, high;
    int64_t low_at, high_at;
};

/* Where to look next: functions are spread evenly enough, but for who builds traps. */
static uint32_t guess(const struct stretch *s, int64_t into, uint32_t n, int step)
{
    uint32_t size = s->high - s->low, at = size / 2;

    if (step % 2 == 0 && into > s->low_at && into < s->high_at)
        at = (uint32_t)((double)(into - s->low_at) / (double)(s->high_at - s->low_at) * size);
    at = at > n / 2 ? at - n / 2 : 0;
    return s->low + (at < size - n ? at : size - n);
}

static int64_t code_of(const uint8_t *pair)
{
    return (int32_t)kiln_get_32(pair);
}

/* The last of `n` entries that is not for code behind. */
static const uint8_t *search(const uint8_t *pairs, uint32_t n, int64_t into)
{
    const uint8_t *found = pairs;

    while (n > 1) {
        uint32_t half = n / 2;

        if (code_of(found + (size_t)half * PAIR) <= into)
            found += (size_t)half * PAIR;
        n -= half;
    }
    return found;
}

/* Where the FDE is that may be the address'; 0: there is none. */
static uint64_t find_fde(const struct kiln_in_object *object, struct kiln_in_room *room,
                         uint64_t address)
{
    int64_t into = (int64_t)(address - object->header);
    struct stretch s = {.high = count_pairs(object),
                        .low_at = (int64_t)(object->start - object->header),
                        .high_at = (int64_t)(object->end - object->header)};

    for (int step = 0; s.low < s.high && step < STEPS_MAX; step++) {
        uint32_t n = s.high - s.low < PIECE ? s.high - s.low : PIECE;
        uint32_t first = guess(&s, into, n, step);
        size_t bytes = (size_t)n * PAIR;
        const uint8_t *pairs =
            see(object, object->header + PAIRS_AT + (uint64_t)first * PAIR, room->fde, &bytes);

        if (bytes != (size_t)n * PAIR)
            return 0;
        if (into < code_of(pairs)) {
            s.high = first;
            s.high_at = code_of(pairs);
        } else if (first + n < s.high && into >= code_of(pairs + bytes - PAIR)) {
            s.low = first + n - 1;
            s.low_at = code_of(pairs + bytes - PAIR);
        } else {
            return object->header + (uint64_t)(int64_t)(int32_t)kiln_get_32(search(pairs, n, into) +
                                                                            sizeof(uint32_t));
        }
    }
    return 0;
}

/* An entry's head and body.  False: it is none, or too large. */
static bool see_entry(const struct kiln_in_object *object, uint64_t at, void *copy, size_t n,
                      struct kiln_cfi_head *head, const uint8_t **ret_body)
{
    const uint8_t *seen = see(object, at, copy, &n);
    struct kiln_cfi_head where = {.at = at, .end = at + n};

    if (kiln_cfi_head_take(seen, n < KILN_CFI_HEAD_MAX ? n : KILN_CFI_HEAD_MAX, false, &where,
                           head) < 0 ||
        !head->end)
        return false;
    *ret_body = seen + (head->body - at);
    return true;
}

/* Where its function begins, and the row of an address in it.  False: it is not understood. */
static bool see_row(const struct kiln_in_object *object, uint64_t at, uint64_t address,
                    struct kiln_in_room *room, uint64_t *ret_begin, struct kiln_cfi_row *ret_row)
{
    size_t n_fde = object->stays ? ENTRY_MAX : sizeof(room->fde);
    size_t n_cie = object->stays ? ENTRY_MAX : sizeof(room->cie);
    struct kiln_cfi_head fde, cie;
    struct kiln_cfi_entry entry;

    if (!see_entry(object, at, room->fde, n_fde, &fde, &entry.fde) || fde.is_cie ||
        !see_entry(object, fde.cie, room->cie, n_cie, &cie, &entry.cie) || !cie.is_cie)
        return false;
    if (object->constant)
        kiln_in_touched_see(object, PAIRS_AT + (uint64_t)count_pairs(object) * PAIR, at);
    entry.n_fde = (size_t)(fde.end - fde.body);
    entry.n_cie = (size_t)(cie.end - cie.body);
    entry.fde_at = fde.body;
    entry.cie_at = cie.body;
    return kiln_cfi_entry_row(&entry, address, &room->program, ret_begin, ret_row) >= 0;
}

static uint64_t rule_of_fde(const struct kiln_in_object *object, uint64_t at, uint64_t address,
                            struct kiln_in_room *room)
{
    struct kiln_cfi_row row;
    uint64_t begin;

    if (!see_row(object, at, address, room, &begin, &row))
        return KILN_IN_RULE_CROSS;
    return begin == kiln_in_object_entry ? (uint64_t)KILN_IN_RULE_END : kiln_in_rule_of(&row);
}

/* Of a C library that writes no table for it. */
static bool is_trampoline(uint64_t pc)
{
    uint8_t code[sizeof(kiln_in_arch_trampoline)];

    return kiln_in_peek(pc, code, sizeof(code)) == sizeof(code) &&
           memcmp(code, kiln_in_arch_trampoline, sizeof(code)) == 0;
}

static uint64_t rule_of(const struct kiln_in_object *object, struct kiln_in_room *room,
                        uint64_t address, bool is_return)
{
    uint64_t rule = KILN_IN_RULE_CROSS, at;

    if (KILN_IN_HAS_TABLES) {
        at = find_fde(object, room, address);
        if (at)
            rule = rule_of_fde(object, at, address, room);
    }
    if (rule == KILN_IN_RULE_CROSS && is_return && is_trampoline(address + 1))
        rule = KILN_IN_RULE_SIGNAL;
    return rule;
}

static bool is_address(uint64_t address)
{
    return address >= LOW_ADDRESS && !(address >> ADDRESS_BITS);
}

/*
 * Code of an engine: where the keeper has seen some, or, because engines are faster, where it looks
 * as if somebody had called from there.
 */
static bool is_made(uint64_t address)
{
    uint8_t before[8];

    return kiln_in_object_is_made(address) ||
           (kiln_in_object_can_ask() &&
            kiln_in_peek(address + 1 - sizeof(before), before, sizeof(before)) == sizeof(before) &&
            kiln_in_arch_is_call(before));
}

/* Not what this thread only takes for so, because it must not look: helpers may. */
static bool is_for_all(const struct kiln_in_object *object, uint64_t rule)
{
    return object->listed &&
           (object->stays || rule != KILN_IN_RULE_CROSS || kiln_in_peek_is_allowed());
}

uint64_t kiln_in_table_find(struct kiln_in_room *room, uint64_t address, bool is_return)
{
    uint64_t era = kiln_in_cache_era(), rule = KILN_IN_RULE_MADE;
    struct kiln_in_object object = {.listed = true};

    if (!is_address(address))
        return KILN_IN_RULE_UNKNOWN;
    atomic_fetch_add_explicit(&lookups, 1, memory_order_relaxed);
    if (kiln_in_object_find(address, &object))
        rule = rule_of(&object, room, address, is_return);
    else if (!is_made(address))
        return KILN_IN_RULE_UNKNOWN;
    if (is_for_all(&object, rule))
        kiln_in_cache_put(address + 1, rule, era);
    return rule;
}

uint64_t kiln_in_table_function(struct kiln_in_room *room, const struct kiln_in_object *object,
                                uint64_t address)
{
    uint64_t at = KILN_IN_HAS_TABLES ? find_fde(object, room, address) : 0, begin;
    struct kiln_cfi_row row;

    return at && see_row(object, at, address, room, &begin, &row) ? begin : 0;
}

bool kiln_in_table_is_code(uint64_t address)
{
    struct kiln_in_object object;

    return is_address(address) && (kiln_in_cache_find(address + 1, kiln_in_cache_era()) ||
                                   kiln_in_object_find(address, &object) || is_made(address));
}

uint64_t kiln_in_table_lookups(void)
{
    return atomic_load_explicit(&lookups, memory_order_relaxed);
}
