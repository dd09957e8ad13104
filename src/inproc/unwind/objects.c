/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the loader tells without a lock.  The list of objects that stay is made once, by a
 * constructor; guests are entered by whoever meets one first, so that the keeper sees when they
 * leave: _dl_find_object() then has something else to say of their place.
 */
#include "inproc/unwind/objects.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "inproc/unwind/arch.h"
#include "inproc/unwind/objects_int.h"

enum { FIRST_MAX = 512, CLAIMED = 1 };

uint64_t kiln_in_object_own_low, kiln_in_object_own_size;
uint64_t kiln_in_object_entry, kiln_in_object_stack_end, kiln_in_object_main_pointer;
struct kiln_in_guest kiln_in_guests[KILN_IN_GUESTS_MAX];

static struct kiln_in_object first[FIRST_MAX];
static uint32_t n_first;

/* ---- what the loader knows ---- */

#ifdef __GLIBC__
#pragma weak _dl_find_object

bool kiln_in_object_can_ask(void)
{
    return _dl_find_object != NULL;
}

bool kiln_in_object_ask(uint64_t address, struct kiln_in_object *ret_object)
{
    struct dl_find_object found;

    if (!_dl_find_object ||
        _dl_find_object((void *)(uintptr_t)address, &found) < 0) /* NOLINT(performance-*) */
        return false;
    *ret_object = (struct kiln_in_object){
        .start = (uintptr_t)found.dlfo_map_start,
        .end = (uintptr_t)found.dlfo_map_end,
        .header = (uintptr_t)found.dlfo_eh_frame,
        .identity = (uintptr_t)found.dlfo_link_map,
    };
    return true;
}
#else
bool kiln_in_object_can_ask(void)
{
    return false;
}

bool kiln_in_object_ask(uint64_t address, struct kiln_in_object *ret_object)
{
    (void)address;
    (void)ret_object;
    return false;
}
#endif

/* ---- objects that stay ---- */

/* All code of libkiln.a: cmake/join.sh. */
extern const char __start_kiln_text[] __attribute__((weak, visibility("hidden")));
extern const char __stop_kiln_text[] __attribute__((weak, visibility("hidden")));

static void find_own_code(const struct kiln_in_object *object, bool is_program)
{
    uint64_t low = is_program ? (uintptr_t)__start_kiln_text : object->start;
    uint64_t high = is_program ? (uintptr_t)__stop_kiln_text : object->end;

    kiln_in_object_own_low = low;
    kiln_in_object_own_size = high - low;
}

static bool has(const struct kiln_in_object *object, uint64_t address)
{
    return address >= object->start && address < object->end;
}

static void widen(uint64_t *low, uint64_t *high, uint64_t start, uint64_t end)
{
    if (start < *low)
        *low = start;
    if (end > *high)
        *high = end;
}

static struct kiln_in_object object_of(const struct dl_phdr_info *info)
{
    struct kiln_in_object made = {
        .start = UINT64_MAX, .code_low = UINT64_MAX, .stays = true, .listed = true};

    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uint64_t start = info->dlpi_addr + segment->p_vaddr;

        if (segment->p_type == PT_GNU_EH_FRAME)
            made.header = start;
        if (segment->p_type != PT_LOAD)
            continue;
        widen(&made.start, &made.end, start, start + segment->p_memsz);
        if (segment->p_flags & PF_X)
            widen(&made.code_low, &made.code_high, start, start + segment->p_memsz);
    }
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uint64_t start = info->dlpi_addr + segment->p_vaddr;

        if (segment->p_type == PT_LOAD && made.header - start < segment->p_filesz) {
            made.low = start;
            made.high = start + segment->p_filesz;
        }
    }
    return made;
}

static void keep(const struct kiln_in_object *object)
{
    uint32_t i = n_first;

    if (n_first == FIRST_MAX || object->start >= object->end)
        return;
    for (; i && first[i - 1].start > object->start; i--)
        first[i] = first[i - 1];
    first[i] = *object;
    n_first++;
}

static bool is_ours(const char *path)
{
    const char *name = strrchr(path, '/');

    return strncmp(name ? name + 1 : path, "libkiln.", strlen("libkiln.")) == 0;
}

/* Whether the program itself asks for this library. */
static bool needs_us(const struct dl_phdr_info *info)
{
    const ElfW(Dyn) *dynamic = NULL;
    uint64_t strings = 0;

    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            dynamic = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr); /* NOLINT */
    }
    for (const ElfW(Dyn) *d = dynamic; d && d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_STRTAB)
            strings = d->d_un.d_ptr;
    }
    if (!strings)
        return false;
    if (strings < info->dlpi_addr)
        strings += info->dlpi_addr;
    for (const ElfW(Dyn) *d = dynamic; d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_NEEDED && is_ours((const char *)(strings + d->d_un.d_val))) /* NOLINT */
            return true;
    }
    return false;
}

struct beginning {
    bool is_first;  /* the program itself comes first */
    bool all_stays; /* this library is here since the program began, and so is all else */
};

static int see_object(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct beginning *beginning = arg;
    struct kiln_in_object object = object_of(info);
    uint64_t own = (uintptr_t)&kiln_in_object_find, libc = (uintptr_t)&getenv;
    bool is_program = beginning->is_first;

    (void)size;
    beginning->is_first = false;
    if (is_program && (has(&object, own) || needs_us(info)))
        beginning->all_stays = true;
    if (has(&object, own))
        find_own_code(&object, is_program);
    if (beginning->all_stays || is_program || has(&object, own) || has(&object, libc) ||
        has(&object, getauxval(AT_BASE)) || has(&object, getauxval(AT_SYSINFO_EHDR)))
        keep(&object);
    return 0;
}

__attribute__((constructor(101))) static void begin(void)
{
    const char *preload = getenv("LD_PRELOAD");
    struct beginning beginning = {.is_first = true,
                                  .all_stays = preload && strstr(preload, "libkiln.")};

    kiln_in_object_entry = getauxval(AT_ENTRY);
    kiln_in_object_stack_end = getauxval(AT_RANDOM) & ~(uint64_t)7;
    if (getpid() == syscall(SYS_gettid))
        kiln_in_object_main_pointer = kiln_in_arch_thread_pointer() & ~(uint64_t)7;
    dl_iterate_phdr(see_object, &beginning);
}

static const struct kiln_in_object *find_first(uint64_t address)
{
    uint32_t low = 0, n = n_first;

    while (n) {
        uint32_t half = n / 2;

        if (first[low + half].start <= address) {
            low += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return low && address < first[low - 1].end ? &first[low - 1] : NULL;
}

/* ---- guests ---- */

static struct kiln_in_object object_in(struct kiln_in_guest *guest)
{
    return (struct kiln_in_object){
        .start = atomic_load_explicit(&guest->start, memory_order_acquire),
        .end = atomic_load_explicit(&guest->end, memory_order_relaxed),
        .header = atomic_load_explicit(&guest->header, memory_order_relaxed),
        .identity = atomic_load_explicit(&guest->identity, memory_order_relaxed),
    };
}

static bool is_same(const struct kiln_in_object *a, const struct kiln_in_object *b)
{
    return a->start == b->start && a->end == b->end && a->header == b->header &&
           a->identity == b->identity;
}

static bool find_guest(uint64_t address, struct kiln_in_object *ret_object)
{
    for (uint32_t i = 0; i < KILN_IN_GUESTS_MAX; i++) {
        struct kiln_in_object object = object_in(&kiln_in_guests[i]);

        if (object.start > CLAIMED && has(&object, address)) {
            *ret_object = object;
            ret_object->listed = true;
            return true;
        }
    }
    return false;
}

bool kiln_in_guest_enter(const struct kiln_in_object *object)
{
    for (uint32_t i = 0; i < KILN_IN_GUESTS_MAX; i++) {
        struct kiln_in_object other = object_in(&kiln_in_guests[i]);

        if (is_same(&other, object))
            return true;
    }
    for (uint32_t i = 0; i < KILN_IN_GUESTS_MAX; i++) {
        struct kiln_in_guest *guest = &kiln_in_guests[i];
        uint64_t nobody = 0;

        if (!atomic_compare_exchange_strong_explicit(&guest->start, &nobody, CLAIMED,
                                                     memory_order_acquire, memory_order_relaxed))
            continue;
        atomic_store_explicit(&guest->end, object->end, memory_order_relaxed);
        atomic_store_explicit(&guest->header, object->header, memory_order_relaxed);
        atomic_store_explicit(&guest->identity, object->identity, memory_order_relaxed);
        atomic_store_explicit(&guest->start, object->start, memory_order_release);
        return true;
    }
    return false;
}

bool kiln_in_guests_check(bool (*is_here)(const struct kiln_in_object *guest))
{
    bool left = false;

    for (uint32_t i = 0; i < KILN_IN_GUESTS_MAX; i++) {
        struct kiln_in_object object;

        if (atomic_load_explicit(&kiln_in_guests[i].start, memory_order_relaxed) <= CLAIMED)
            continue;
        object = object_in(&kiln_in_guests[i]);
        if (is_here(&object))
            continue;
        atomic_store_explicit(&kiln_in_guests[i].start, 0, memory_order_release);
        left = true;
    }
    return left;
}

bool kiln_in_object_is_loaded(const struct kiln_in_object *guest)
{
    struct kiln_in_object now;

    return kiln_in_object_ask(guest->start, &now) && is_same(&now, guest);
}

bool kiln_in_object_find(uint64_t address, struct kiln_in_object *ret_object)
{
    const struct kiln_in_object *stays = find_first(address);

    if (stays) {
        *ret_object = *stays;
        return address >= stays->code_low && address < stays->code_high;
    }
    if (!kiln_in_object_can_ask())
        return find_guest(address, ret_object);
    if (!kiln_in_object_ask(address, ret_object))
        return false;
    ret_object->listed = kiln_in_guest_enter(ret_object);
    return true;
}
