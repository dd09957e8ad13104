/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From state to state:
 *
 *   OWN       the file's own debug information is opened      ─▶ READY, or LOOKING
 *   LOOKING   its debug file is wanted                        ─▶ CHECKING, OPENING, or NOTHING
 *   CHECKING  the CRC of what came is reckoned, bit by bit    ─▶ OPENING, or LOOKING again
 *   OPENING   the debug file's debug information is opened    ─▶ READY, or NOTHING
 *   READY     addresses are found; more files may be wanted
 *   NOTHING   there is none
 *
 * .gnu_debuglink: the file's name, NUL, padded to four bytes; u32 CRC-32 of all of the file.
 */
#include "symbol/names_deep.h"

#include <errno.h>
#include <libdeflate.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"

enum {
    MEMORY_DEFAULT = 48 << 20,
    TEXT_MAX = 4096,
    CHUNK = 64 << 10,
    ATTEMPTS = 8,
    FAILURES = 8, /* for want of memory, one after the other */
    OTHERS_MAX = 1024,
};

enum state { OWN, LOOKING, CHECKING, OPENING, READY, NOTHING };

struct kiln_deep {
    enum state state;
    const struct kiln_elf *elf;
    struct kiln_elf *separate; /* NULL: none, or not checked yet */
    struct kiln_dwarf *dwarf;
    struct kiln_budget budget;
    struct kiln_deep_opts opts;
    uint64_t deadline_ns;
    bool is_wanted; /* `wanted` is */
    struct kiln_wanted wanted;
    char name[TEXT_MAX], directory[TEXT_MAX];
    uint64_t checked; /* bytes of the CRC so far */
    uint32_t crc;
    uint32_t failures;
    struct kiln_elf **others; /* alternates and split units */
    uint32_t n_others, cap_others;
    uint8_t chunk[CHUNK];
};

static bool is_late(const struct kiln_deep *deep)
{
    return deep->deadline_ns && kiln_clock_mono_ns() >= deep->deadline_ns;
}

int kiln_deep_new(const struct kiln_elf *elf, const struct kiln_deep_opts *opts,
                  struct kiln_deep **ret_deep)
{
    struct kiln_deep *deep = kiln_calloc(1, sizeof(*deep));

    if (!deep)
        return -ENOMEM;
    deep->elf = elf;
    deep->opts = *opts;
    deep->budget.limit = opts->memory_bytes ? opts->memory_bytes : MEMORY_DEFAULT;
    *ret_deep = deep;
    return 0;
}

void kiln_deep_free(struct kiln_deep *deep)
{
    if (!deep)
        return;
    kiln_dwarf_close(deep->dwarf);
    for (uint32_t i = 0; i < deep->n_others; i++)
        kiln_elf_close(deep->others[i]);
    kiln_free(deep->others);
    kiln_elf_close(deep->separate);
    kiln_free(deep);
}

size_t kiln_deep_bytes(const struct kiln_deep *deep)
{
    return sizeof(*deep) + (deep->dwarf ? kiln_dwarf_bytes(deep->dwarf) : 0) +
           (deep->separate ? kiln_elf_bytes(deep->separate) : 0);
}

void kiln_deep_deadline(struct kiln_deep *deep, uint64_t deadline_ns)
{
    deep->deadline_ns = deadline_ns;
    if (deep->dwarf)
        kiln_dwarf_deadline(deep->dwarf, deadline_ns);
}

const struct kiln_elf *kiln_deep_separate(const struct kiln_deep *deep)
{
    return deep->state == OPENING || deep->state == READY || deep->state == NOTHING ? deep->separate
                                                                                    : NULL;
}

/* ---- what is wanted ---- */

static void read_link(struct kiln_deep *deep)
{
    const struct kiln_elf_section *section = kiln_elf_section(deep->elf, ".gnu_debuglink");
    void *data;
    size_t size, len;

    if (!section || kiln_elf_load(deep->elf, section, TEXT_MAX, &data, &size) < 0)
        return;
    len = strnlen(data, size);
    if (len > 0 && len + 1 <= size && (len + 4) / 4 * 4 + 4 <= size) {
        memcpy(deep->name, data, len);
        deep->wanted.name = (struct kiln_str){deep->name, len};
        memcpy(&deep->wanted.crc, (const char *)data + (len + 4) / 4 * 4, 4);
        deep->wanted.has_crc = true;
    }
    kiln_free(data);
}

/* The file itself has none: its debug file is wanted, if anything tells which that is. */
static void look(struct kiln_deep *deep)
{
    deep->wanted = (struct kiln_wanted){.kind = KILN_WANTED_DEBUG};
    if (kiln_elf_build_id(deep->elf, deep->wanted.build_id, &deep->wanted.build_id_len) < 0)
        deep->wanted.build_id_len = 0;
    read_link(deep);
    deep->is_wanted = deep->wanted.build_id_len > 0 || deep->wanted.has_crc;
    deep->state = deep->is_wanted ? LOOKING : NOTHING;
}

static struct kiln_str copy(char to[TEXT_MAX], struct kiln_str text)
{
    size_t n = text.len < TEXT_MAX ? text.len : TEXT_MAX;

    if (n)
        memcpy(to, text.ptr, n);
    return (struct kiln_str){to, n};
}

/* What the debug information itself lacks. */
static void want_more(struct kiln_deep *deep)
{
    struct kiln_wanted wanted = {0};

    if (!kiln_dwarf_wants(deep->dwarf, &wanted))
        return;
    wanted.name = copy(deep->name, wanted.name);
    wanted.directory = copy(deep->directory, wanted.directory);
    wanted.attempt = 0;
    deep->wanted = wanted;
    deep->is_wanted = true;
}

bool kiln_deep_wants(struct kiln_deep *deep, struct kiln_wanted *ret_wanted)
{
    if (deep->state == READY && !deep->is_wanted)
        want_more(deep);
    if (deep->is_wanted)
        *ret_wanted = deep->wanted;
    return deep->is_wanted;
}

/* What came was another. */
static void look_again(struct kiln_deep *deep)
{
    deep->is_wanted = ++deep->wanted.attempt < ATTEMPTS;
    if (deep->wanted.kind != KILN_WANTED_DEBUG)
        return;
    kiln_elf_close(deep->separate);
    deep->separate = NULL;
    deep->state = deep->is_wanted ? LOOKING : NOTHING;
}

/* ---- what is given ---- */

/* Whether it is what was wanted, as far as build ids tell: 1 it is, 0 it is not, -1 they do not. */
static int compare_ids(const struct kiln_elf *elf, const struct kiln_wanted *wanted)
{
    uint8_t id[KILN_BUILD_ID_MAX];
    uint8_t len;

    if (wanted->build_id_len == 0 || kiln_elf_build_id(elf, id, &len) < 0)
        return wanted->has_crc ? -1 : 0;
    return len == wanted->build_id_len && memcmp(id, wanted->build_id, len) == 0;
}

/* A build id tells at once; without one all of the file has to be read. */
static int take_separate(struct kiln_deep *deep, struct kiln_elf *elf)
{
    int same = compare_ids(elf, &deep->wanted);

    deep->separate = elf;
    deep->is_wanted = false;
    if (elf->machine != deep->elf->machine || same == 0) {
        look_again(deep);
        return KILN_E_NOMATCH;
    }
    deep->checked = 0;
    deep->crc = 0;
    deep->state = same == 1 ? OPENING : CHECKING;
    return 0;
}

static int take_other(struct kiln_deep *deep, struct kiln_elf *elf)
{
    int r = kiln_grow(&deep->budget, (void **)&deep->others, &deep->cap_others,
                      (uint64_t)deep->n_others + 1, sizeof(struct kiln_elf *), OTHERS_MAX);

    deep->is_wanted = false;
    if (r == 0)
        r = kiln_dwarf_attach(deep->dwarf, (enum kiln_wanted_kind)deep->wanted.kind, elf);
    if (r < 0) {
        kiln_elf_close(elf);
        if (r == KILN_E_NOMATCH)
            look_again(deep);
        return r;
    }
    deep->others[deep->n_others++] = elf;
    return 0;
}

int kiln_deep_attach(struct kiln_deep *deep, const struct kiln_bytes *bytes)
{
    struct kiln_elf *elf;
    int r;

    if (!deep->is_wanted)
        return -EINVAL;
    if (!bytes) {
        deep->is_wanted = false;
        if (deep->state == LOOKING)
            deep->state = NOTHING;
        return 0;
    }
    r = kiln_elf_open(bytes, &elf);
    if (r < 0) {
        look_again(deep);
        return r == -ENOMEM ? r : KILN_E_NOMATCH;
    }
    return deep->state == LOOKING ? take_separate(deep, elf) : take_other(deep, elf);
}

/* ---- on the way to debug information ---- */

static int check(struct kiln_deep *deep)
{
    const struct kiln_bytes *bytes = &deep->separate->bytes;

    while (deep->checked < bytes->size) {
        uint64_t left = bytes->size - deep->checked;
        size_t n = left < CHUNK ? (size_t)left : CHUNK;

        if (is_late(deep))
            return -EAGAIN;
        if (bytes->read(bytes, deep->checked, deep->chunk, n) < 0)
            break;
        deep->crc = libdeflate_crc32(deep->crc, deep->chunk, n);
        deep->checked += n;
    }
    if (deep->checked < bytes->size || deep->crc != deep->wanted.crc) {
        look_again(deep);
        return -EAGAIN;
    }
    deep->state = OPENING;
    return 0;
}

static int open_dwarf(struct kiln_deep *deep, const struct kiln_elf *elf)
{
    const struct kiln_dwarf_opts opts = {
        .budget = &deep->budget, .scratch = deep->opts.scratch, .deadline_ns = deep->deadline_ns};

    return kiln_dwarf_open(elf, &opts, &deep->dwarf);
}

/* One state on; -EAGAIN: not now. */
static int go_on(struct kiln_deep *deep)
{
    const struct kiln_elf *elf = deep->state == OWN ? deep->elf : deep->separate;
    int r;

    if (deep->state == CHECKING)
        return check(deep);
    if (deep->state == LOOKING)
        return -EAGAIN;
    r = open_dwarf(deep, elf);
    if (r == -EAGAIN || r == -ENOMEM)
        return r;
    if (r == -ENOENT && deep->state == OWN)
        look(deep);
    else
        deep->state = r < 0 ? NOTHING : READY;
    return 0;
}

int kiln_deep_find(struct kiln_deep *deep, uint64_t address,
                   const struct kiln_dwarf_frame **ret_frames, uint32_t *ret_n)
{
    int r = is_late(deep) ? -EAGAIN : 0;

    while (r == 0 && deep->state != READY && deep->state != NOTHING)
        r = go_on(deep);
    if (deep->state == NOTHING)
        return -ENOENT;
    if (r == 0)
        r = kiln_dwarf_find(deep->dwarf, address, ret_frames, ret_n);
    /* What is found while a file is lacking may not be all. */
    if (r == 0 && !deep->is_wanted)
        want_more(deep);
    if (r == 0 && deep->is_wanted)
        r = -EAGAIN;
    if (r != -ENOMEM) {
        deep->failures = 0;
        return r;
    }
    if (++deep->failures >= FAILURES)
        deep->state = NOTHING;
    return -EAGAIN;
}
