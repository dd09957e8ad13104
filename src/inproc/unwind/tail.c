/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that are understood, of x86-64:
 *
 *   e8 DISTANCE                           of a function, or of a stub that leads to one elsewhere:
 *     [f3 0f 1e fa] [f2] ff 25 DISTANCE   a jump to the address in a slot
 *   ff 15 DISTANCE                        of the address in a slot
 *
 * Bytes in front of a return address may be the end of another call and look like one of these.
 * So what is called has to be in the unwind tables, as code that has pushed nothing yet: that is
 * there to be read, too.
 *
 * Operators are those that the linker finds when the library starts.  A frame is one of theirs
 * where its function begins there; the few addresses that they call from are remembered.
 */
#include "inproc/unwind/tail.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#include "inproc/unwind/arch.h"
#include "inproc/unwind/cache.h"
#include "inproc/unwind/objects.h"
#include "inproc/unwind/peek.h"
#include "inproc/unwind/room.h"
#include "inproc/unwind/rule.h"
#include "inproc/unwind/table.h"

enum { CALL = 6, STUB = 16, WORD = 8 };

static uint64_t rule_at(uint64_t address)
{
    uint64_t rule = kiln_in_cache_find(address + 1, kiln_in_cache_era());
    struct kiln_in_room *room = rule ? NULL : kiln_in_room_take();

    if (room)
        rule = kiln_in_table_find(room, address, false);
    kiln_in_room_give(room);
    return rule;
}

static bool has_pushed_nothing(uint64_t rule)
{
    return kiln_in_rule_kind(rule) == KILN_IN_RULE_SP && kiln_in_rule_cfa_off(rule) == WORD;
}

/* Code that is read where it lies. */
static const uint8_t *bytes_at(uint64_t address)
{
    return (const uint8_t *)(uintptr_t)address; /* NOLINT(performance-no-int-to-ptr) */
}

/*
 * Whether eight bytes of code or of a slot can be read.  Some let their code be executed alone,
 * where the processor can, or put it away meanwhile.  In a sandbox nobody asks.
 */
static bool is_there(uint64_t address)
{
    return kiln_in_peek_is_cautious() || kiln_in_peek_is_there(address);
}

/* The address that is so far behind the end of an instruction, which ends in the distance. */
static uint64_t ahead_of(uint64_t end)
{
    int32_t distance;

    memcpy(&distance, bytes_at(end) - sizeof(distance), sizeof(distance));
    return end + (uint64_t)(int64_t)distance;
}

/* Of what may be no call, and no slot. */
static uint64_t word_in_slot(uint64_t slot)
{
    uint64_t word = 0;

    return kiln_in_peek(slot, &word, sizeof(word)) == sizeof(word) ? word : 0;
}

static uint64_t word_of_stub(uint64_t slot, const struct kiln_in_object *object)
{
    uint64_t word;

    if (slot < object->start || slot > object->end - sizeof(word) || !is_there(slot))
        return 0;
    memcpy(&word, bytes_at(slot), sizeof(word));
    return word;
}

/* The slot of a stub; 0: it is none. */
static uint64_t slot_of(uint64_t stub)
{
    static const uint8_t mark[] = {0xf3, 0x0f, 0x1e, 0xfa};
    const uint8_t *code = bytes_at(stub);
    unsigned at = memcmp(code, mark, sizeof(mark)) == 0 ? sizeof(mark) : 0;

    at += code[at] == 0xf2;
    return code[at] == 0xff && code[at + 1] == 0x25 ? ahead_of(stub + at + CALL) : 0;
}

/* What is called in front of a return address; 0: it is not known. */
static uint64_t called_before(uint64_t back, const struct kiln_in_object *object)
{
    const uint8_t *code = bytes_at(back);
    uint64_t target, rule, slot;

    if (!is_there(back - CALL))
        return 0;
    if (code[-CALL] == 0xff && code[1 - CALL] == 0x15)
        return word_in_slot(ahead_of(back));
    target = code[1 - CALL] == 0xe8 ? ahead_of(back) : 0;
    if (target < object->code_low || target >= object->code_high - STUB || !is_there(target) ||
        !is_there(target + WORD))
        return 0;
    rule = rule_at(target);
    if (!has_pushed_nothing(rule) && kiln_in_rule_kind(rule) != KILN_IN_RULE_PLT)
        return 0;
    slot = slot_of(target);
    return slot ? word_of_stub(slot, object) : target;
}

/* ---- calls that were looked at ---- */

/*
 * Code that stays is looked at once, for what calls the allocator does so again: a look is some
 * system calls.  An entry that two threads have written at once is none's.
 */
enum { CALLS = 512, CALLS_SHIFT = 9 };

static struct {
    _Atomic uint64_t check, called;
} seen[CALLS];

static uint64_t check_of(uint64_t back, uint64_t called)
{
    return back ^ (called << 1 | called >> 63);
}

static uint64_t called_from(uint64_t back, const struct kiln_in_object *object)
{
    unsigned at = (unsigned)((back ^ back >> CALLS_SHIFT) % CALLS);
    uint64_t called = atomic_load_explicit(&seen[at].called, memory_order_relaxed);

    if (atomic_load_explicit(&seen[at].check, memory_order_relaxed) == check_of(back, called))
        return called;
    called = called_before(back, object);
    atomic_store_explicit(&seen[at].called, called, memory_order_relaxed);
    atomic_store_explicit(&seen[at].check, check_of(back, called), memory_order_relaxed);
    return called;
}

/* Who was called, and is not in [low, low + size), where it came to in the end; 0: nobody. */
static uint64_t jumped_from(uint64_t back, uint64_t low, uint64_t size)
{
    struct kiln_in_object object;
    uint64_t called;

    if (!kiln_in_object_find(back - 1, &object) || !object.stays || back - CALL < object.code_low ||
        back > object.code_high)
        return 0;
    called = called_from(back, &object);
    if (!called || called - low < size || !kiln_in_object_find(called, &object) || !object.stays)
        return 0;
    return has_pushed_nothing(rule_at(called)) ? called : 0;
}

/* ---- operators of C++ ---- */

static const char *const names[] = {
    "_Znwm",
    "_Znam",
    "_ZnwmRKSt9nothrow_t",
    "_ZnamRKSt9nothrow_t",
    "_ZnwmSt11align_val_t",
    "_ZnamSt11align_val_t",
    "_ZnwmSt11align_val_tRKSt9nothrow_t",
    "_ZnamSt11align_val_tRKSt9nothrow_t",
};
enum { NAMES = sizeof(names) / sizeof(names[0]), MET = 16 };

static uint64_t operators[NAMES];
static struct kiln_in_object maker; /* that has the first of them */
static _Atomic uint64_t met[MET];   /* addresses in them */

/* What is not there is no failure of the program's, whose word for failures it would be. */
static uint64_t find_quietly(const char *name)
{
    uint64_t found = (uintptr_t)dlsym(RTLD_DEFAULT, name);

    if (!found)
        (void)dlerror();
    return found;
}

/* Once: children start again where nobody knows who has the linker's lock. */
void kiln_in_tail_start(void)
{
    static bool has_looked;

    if (!KILN_IN_HAS_TABLES || has_looked)
        return;
    has_looked = true;
    for (unsigned i = 0; i < NAMES && (i == 0 || operators[0]); i++)
        operators[i] = find_quietly(names[i]);
    if (!kiln_in_object_find(operators[0], &maker) || !maker.stays)
        maker = (struct kiln_in_object){0};
}

static bool is_one(uint64_t function)
{
    bool is = false;

    for (unsigned i = 0; i < NAMES; i++)
        is |= function && operators[i] == function;
    return is;
}

static bool is_in_operator(uint64_t address)
{
    _Atomic uint64_t *memory = &met[address % MET];
    struct kiln_in_room *room;
    bool is;

    if (address - maker.start >= maker.end - maker.start)
        return false;
    if (atomic_load_explicit(memory, memory_order_relaxed) == address)
        return true;
    room = kiln_in_room_take();
    is = room && is_one(kiln_in_table_function(room, &maker, address));
    kiln_in_room_give(room);
    if (is)
        atomic_store_explicit(memory, address, memory_order_relaxed);
    return is;
}

/* ---- the stack ---- */

/* Without the operators that it begins with.  True: there were some. */
static bool drop_operators(uint64_t *pcs, unsigned *n)
{
    unsigned from = 0;

    while (from + 1 < *n && is_in_operator(pcs[from] - (from > 0)))
        from++;
    if (from == 0)
        return false;
    *n -= from;
    memmove(pcs, pcs + from, *n * sizeof(*pcs));
    pcs[0]--; /* the leaf's own instruction */
    return true;
}

static unsigned insert(uint64_t *pcs, unsigned at, unsigned n, unsigned depth)
{
    n = n < depth ? n + 1 : depth;
    memmove(pcs + at + 1, pcs + at, (n - at - 1) * sizeof(*pcs));
    return n;
}

unsigned kiln_in_tail_mend(uint64_t *pcs, unsigned n, unsigned depth)
{
    struct kiln_in_object object;
    uint64_t first, second = 0;

    if (!KILN_IN_HAS_TABLES || n == 0 || depth < 2)
        return n;
    if (drop_operators(pcs, &n))
        first = jumped_from(pcs[0] + 1, maker.start, maker.end - maker.start);
    else
        first = jumped_from(pcs[0] + 1, kiln_in_object_own_low, kiln_in_object_own_size);
    if (n > 1 && kiln_in_object_find(pcs[0], &object))
        second = jumped_from(pcs[1], object.start, object.end - object.start);
    if (second) {
        n = insert(pcs, 1, n, depth);
        pcs[1] = second + 1;
    }
    if (first) {
        n = insert(pcs, 0, n, depth);
        pcs[1]++; /* it was the leaf's own instruction */
        pcs[0] = first;
    }
    return n;
}
