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

enum { CLAIMED = 1, NEEDED_MAX = 2048 };

uint64_t kiln_in_object_own_low, kiln_in_object_own_size;
uint64_t kiln_in_object_entry, kiln_in_object_stack_end, kiln_in_object_main_pointer;
struct kiln_in_guest kiln_in_guests[KILN_IN_GUESTS_MAX];

static struct kiln_in_object first[KILN_IN_STAYING_MAX];
static uint32_t n_first;

/* ---- what the loader knows ---- */

#ifdef __GLIBC__
#if !__GLIBC_PREREQ(2, 35)
/* The C library that runs it may have what that of its headers has not. */
struct dl_find_object {
    unsigned long long dlfo_flags;
    void *dlfo_map_start, *dlfo_map_end;
    struct link_map *dlfo_link_map;
    void *dlfo_eh_frame;
    unsigned long long reserved[7];
};
int _dl_find_object(void *address, struct dl_find_object *ret_found);
#endif
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
            made.constant = !(segment->p_flags & PF_W);
        }
    }
    return made;
}

static void keep(const struct kiln_in_object *object)
{
    uint32_t i = n_first;

    if (n_first == KILN_IN_STAYING_MAX || object->start >= object->end)
        return;
    for (; i && first[i - 1].start > object->start; i--)
        first[i] = first[i - 1];
    first[i] = *object;
    n_first++;
}

/* ---- which of them were there when the program began, and what they need ---- */

struct names {
    const ElfW(Dyn) * dynamic; /* NULL: it has none */
    const char *strings;
};

static struct names names_of(const struct dl_phdr_info *info)
{
    struct names names = {0};
    uint64_t strings = 0;

    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            names.dynamic =
                (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr); /* NOLINT */
    }
    for (const ElfW(Dyn) *d = names.dynamic; d && d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_STRTAB)
            strings = d->d_un.d_ptr;
    }
    if (strings && strings < info->dlpi_addr)
        strings += info->dlpi_addr;
    names.strings = (const char *)strings; /* NOLINT(performance-no-int-to-ptr) */
    return strings ? names : (struct names){0};
}

static uint64_t hash_of_file(const char *path)
{
    const char *slash = strrchr(path, '/');
    uint64_t hash = 0xcbf29ce484222325;

    for (const char *at = slash ? slash + 1 : path; *at; at++)
        hash = (hash ^ (uint8_t)*at) * 0x100000001b3;
    return hash | 1;
}

/* Files that objects which stay need, by the hashes of their names. */
struct beginning {
    uint64_t needed[NEEDED_MAX]; /* 0: none */
    uint32_t n;
    bool has_begun; /* the program itself comes first */
    bool is_done;   /* with preloads, which come before all that anybody needs */
};

/* Its place, or where it would be; the table is never full. */
static uint64_t *place_of(struct beginning *b, uint64_t hash)
{
    uint64_t at = hash % NEEDED_MAX;

    while (b->needed[at] && b->needed[at] != hash)
        at = (at + 1) % NEEDED_MAX;
    return &b->needed[at];
}

static void note_needed(struct beginning *b, const struct names *names)
{
    for (const ElfW(Dyn) *d = names->dynamic; d && d->d_tag != DT_NULL; d++) {
        uint64_t hash;

        if (d->d_tag != DT_NEEDED || b->n >= NEEDED_MAX / 2)
            continue;
        hash = hash_of_file(names->strings + d->d_un.d_val);
        *place_of(b, hash) = hash;
        b->n++;
    }
}

static bool is_needed(struct beginning *b, const struct names *names, const char *path)
{
    bool is = path[0] && *place_of(b, hash_of_file(path)) != 0;

    for (const ElfW(Dyn) *d = names->dynamic; !is && d && d->d_tag != DT_NULL; d++)
        is = d->d_tag == DT_SONAME &&
             *place_of(b, hash_of_file(names->strings + d->d_un.d_val)) != 0;
    return is;
}

static bool is_basic(const struct kiln_in_object *object)
{
    return has(object, (uintptr_t)&kiln_in_object_find) || has(object, (uintptr_t)&getenv) ||
           has(object, getauxval(AT_BASE)) || has(object, getauxval(AT_SYSINFO_EHDR));
}

/*
 * The program, its preloads, and what these need, in the order that they were loaded in: nobody can
 * unload them.  What constructors opened before us comes behind, and is a guest.
 */
static int see_object(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct beginning *b = arg;
    struct kiln_in_object object = object_of(info);
    struct names names = names_of(info);
    bool needed = is_needed(b, &names, info->dlpi_name);

    (void)size;
    if (has(&object, (uintptr_t)&kiln_in_object_find))
        find_own_code(&object, !b->has_begun);
    b->is_done = b->is_done || needed;
    b->has_begun = true;
    if (!b->is_done || needed || is_basic(&object)) {
        keep(&object);
        note_needed(b, &names);
    }
    return 0;
}

__attribute__((constructor(101))) static void begin(void)
{
    static struct beginning beginning;

    kiln_in_object_entry = getauxval(AT_ENTRY);
    kiln_in_object_stack_end = getauxval(AT_RANDOM) & ~(uint64_t)7;
    if (getpid() == syscall(SYS_gettid))
        kiln_in_object_main_pointer = kiln_in_arch_thread_pointer() & ~(uint64_t)7;
    dl_iterate_phdr(see_object, &beginning);
    for (uint32_t i = 0; i < n_first; i++)
        first[i].number = i;
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
