/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Go's own table is asked first, since it has lines; then debug information; then one table of
 * symbols from all else that a file has, and from its debug file where it has no .symtab itself.  A
 * name is read, cleaned and undone when it is asked for.  A part of a file that cannot be read
 * takes nothing from the others.
 *
 * Where an ELF file has no name, its call frame information still tells where functions begin; it
 * is opened when that is first asked for.
 */
#include "symbol/names.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "symbol/cfi.h"
#include "symbol/clean.h"
#include "symbol/gopcln.h"
#include "symbol/names_deep.h"
#include "symbol/names_int.h"

enum { MEMORY_DEFAULT = 192 << 20, SYMBOLS_DEFAULT = 8000000 };

static const struct kiln_str plt_suffix = {"@plt", 4};

/* A cleaned text. */
struct text {
    size_t n;
    char text[KILN_SYMTAB_NAME_MAX];
};

struct kiln_names {
    enum kiln_source_kind kind;
    struct kiln_elf *elf;   /* NULL: it is none */
    struct kiln_gopcln *go; /* NULL: not Go */
    struct kiln_deep *deep; /* NULL: without debug information */
    bool has_symtab;        /* itself, or its debug file's was read */
    struct kiln_cfi *cfi;   /* NULL: not asked for yet, or none */
    bool asked_cfi;
    struct kiln_symtab table;
    struct kiln_map_end end;   /* of a perf-map */
    struct kiln_jitdump *dump; /* NULL: it is none */
    struct kiln_demangler *demangler;
    struct kiln_frames frames;
    struct text module;
};

/* Only a lack of memory ends it: another time there may be enough. */
static int read_elf(struct kiln_names *names, const struct kiln_bytes *bytes,
                    const struct kiln_names_limits *limits)
{
    static int (*const readers[])(struct kiln_symtab * table, const struct kiln_elf *elf) = {
        kiln_names_read_elf, kiln_names_read_plt, kiln_names_read_packed};
    int r = kiln_elf_open(bytes, &names->elf);

    if (r < 0)
        return r;
    for (uint32_t i = 0; i < KILN_ARRAY_LEN(readers) && r != -ENOMEM; i++)
        r = readers[i](&names->table, names->elf);
    if (r != -ENOMEM)
        r = kiln_gopcln_open(names->elf, &names->go);
    names->has_symtab = kiln_elf_section(names->elf, ".symtab") != NULL;
    if (r != -ENOMEM && !limits->shallow)
        r = kiln_deep_new(names->elf,
                          &(struct kiln_deep_opts){
                              .memory_bytes = limits->deep_bytes,
                              .scratch = limits->scratch,
                          },
                          &names->deep);
    return r == -ENOMEM ? r : 0;
}

static int read_names(struct kiln_names *names, enum kiln_source_kind kind,
                      const struct kiln_bytes *bytes, const struct kiln_names_limits *limits)
{
    switch (kind) {
    case KILN_SOURCE_ELF:
        return read_elf(names, bytes, limits);
    case KILN_SOURCE_KERNEL:
        return kiln_names_read_kernel(&names->table, bytes);
    case KILN_SOURCE_PERF_MAP:
        return kiln_names_read_map(&names->table, bytes, &names->end);
    case KILN_SOURCE_JITDUMP:
        return kiln_jitdump_open(&names->table, bytes, &names->dump);
    }
    return -EINVAL;
}

int kiln_names_open(enum kiln_source_kind kind, const struct kiln_bytes *bytes,
                    const struct kiln_names_limits *limits, struct kiln_names **ret_names)
{
    static const struct kiln_names_limits none;
    struct kiln_names *names = kiln_malloc(sizeof(*names));
    int r;

    if (!names)
        return -ENOMEM;
    limits = limits ? limits : &none;
    names->kind = kind;
    names->demangler = NULL;
    names->elf = NULL;
    names->go = NULL;
    names->deep = NULL;
    names->has_symtab = false;
    names->cfi = NULL;
    names->asked_cfi = false;
    names->dump = NULL;
    kiln_symtab_init(&names->table, limits->memory_bytes ? limits->memory_bytes : MEMORY_DEFAULT,
                     limits->symbols ? limits->symbols : SYMBOLS_DEFAULT);
    r = kiln_demangler_new(&names->demangler);
    if (r == 0)
        r = read_names(names, kind, bytes, limits);
    if (r == 0)
        r = kiln_symtab_finish(&names->table);
    if (r < 0) {
        kiln_names_close(names);
        return r;
    }
    *ret_names = names;
    return 0;
}

int kiln_names_grow(struct kiln_names *names, const struct kiln_bytes *bytes)
{
    int r = KILN_E_UNSUPPORTED;

    if (names->kind == KILN_SOURCE_PERF_MAP)
        r = kiln_names_grow_map(&names->table, bytes, &names->end);
    else if (names->dump)
        r = kiln_jitdump_grow(names->dump, bytes);
    return r < 0 ? r : kiln_symtab_finish(&names->table);
}

void kiln_names_close(struct kiln_names *names)
{
    if (!names)
        return;
    kiln_cfi_close(names->cfi);
    kiln_gopcln_close(names->go);
    kiln_deep_free(names->deep);
    kiln_elf_close(names->elf);
    kiln_jitdump_close(names->dump);
    kiln_symtab_done(&names->table);
    kiln_demangler_free(names->demangler);
    kiln_free(names);
}

size_t kiln_names_bytes(const struct kiln_names *names)
{
    return names->table.budget.used + sizeof(*names) +
           (names->elf ? kiln_elf_bytes(names->elf) : 0) +
           (names->cfi ? kiln_cfi_bytes(names->cfi) : 0) +
           (names->deep ? kiln_deep_bytes(names->deep) : 0);
}

/* ---- debug information ---- */

void kiln_names_deadline(struct kiln_names *names, uint64_t deadline_ns)
{
    if (names->deep)
        kiln_deep_deadline(names->deep, deadline_ns);
}

bool kiln_names_wants(struct kiln_names *names, struct kiln_wanted *ret_wanted)
{
    return names->deep && kiln_deep_wants(names->deep, ret_wanted);
}

int kiln_names_attach(struct kiln_names *names, const struct kiln_bytes *bytes)
{
    return names->deep ? kiln_deep_attach(names->deep, bytes) : -EINVAL;
}

void kiln_names_give_up(struct kiln_names *names)
{
    kiln_deep_free(names->deep);
    names->deep = NULL;
}

/* A stripped program's debug file has all its symbols; where they cannot be read there are none. */
static void read_separate(struct kiln_names *names)
{
    const struct kiln_elf *elf = kiln_deep_separate(names->deep);
    int r;

    if (!elf || names->has_symtab)
        return;
    names->has_symtab = true;
    r = kiln_names_read_elf(&names->table, elf);
    if (r != -ENOMEM)
        r = kiln_symtab_finish(&names->table);
    if (r < 0)
        names->table.n = 0;
}

static struct kiln_str clean(struct text *text, struct kiln_str name)
{
    text->n = kiln_name_clean(name, text->text, sizeof(text->text));
    return (struct kiln_str){text->text, text->n};
}

static bool find_go(struct kiln_names *names, uint64_t address)
{
    return names->go && kiln_names_find_go(names->go, address, &names->frames);
}

/* All stubs of a linker's table have one entry of call frame information, and are no function. */
static bool is_stub(const struct kiln_elf *elf, uint64_t address)
{
    for (uint32_t i = 0; i < elf->n_sections; i++) {
        const struct kiln_elf_section *s = elf->sections + i;

        if (address >= s->address && address - s->address < s->size && s->flags & SHF_ALLOC &&
            strncmp(s->name, ".plt", 4) == 0)
            return true;
    }
    return false;
}

/* Where the function begins that an address without a name is in; 0: not known. */
static uint64_t find_begin(struct kiln_names *names, uint64_t address)
{
    uint64_t begin, end;

    if (!names->elf)
        return 0;
    if (!names->asked_cfi && kiln_cfi_open(names->elf, &names->cfi) < 0)
        names->cfi = NULL;
    names->asked_cfi = true;
    if (!names->cfi || kiln_cfi_function(names->cfi, address, &begin, &end) < 0 ||
        is_stub(names->elf, address))
        return 0;
    return begin;
}

static bool find_symbol(struct kiln_names *names, uint64_t address, struct kiln_str *ret_module)
{
    const struct kiln_symtab_entry *symbol;
    struct kiln_str suffix = KILN_STR_NONE;
    struct kiln_name_frame frame = {0};
    struct kiln_str module = KILN_STR_NONE;
    char renamed[KILN_SYMTAB_NAME_MAX];

    if (!kiln_symtab_find(&names->table, address, &symbol, &frame.system_name))
        return false;
    if (kiln_symtab_kind(symbol) == KILN_SYMTAB_PLT)
        suffix = plt_suffix;
    if (names->kind == KILN_SOURCE_KERNEL) {
        module = frame.system_name;
        frame.system_name = kiln_str_cut(&module, '\t');
    }
    frame.function = kiln_demangle(names->demangler, frame.system_name);
    if (names->kind == KILN_SOURCE_PERF_MAP && kiln_str_eq(frame.function, frame.system_name))
        kiln_frame_read_v8(&frame, renamed);
    kiln_frames_add(&names->frames, &frame, suffix);
    if (module.len > 0)
        *ret_module = clean(&names->module, module);
    return names->frames.n > 0;
}

static bool is_mangled(struct kiln_str name)
{
    return kiln_str_starts(name, KILN_STR("_Z")) || kiln_str_starts(name, KILN_STR("_R"));
}

/*
 * What the symbol says of a function whose debug information has no mangled name for it.  It may
 * have one all the same, local to its file.  A function of C has that of its symbol, as it has
 * without debug information: "clock_gettime" and not "__GI___clock_gettime"; and so has what has no
 * name at all there (assembly).  A guess, a symbol without a size, is worse than any of these.
 */
static void ask_symbol(struct kiln_names *names, uint64_t address,
                       const struct kiln_dwarf_frame *deep, struct kiln_name_frame *frame)
{
    const struct kiln_symtab_entry *symbol;
    struct kiln_str name;

    if (!kiln_symtab_find(&names->table, address, &symbol, &name) ||
        (kiln_symtab_size(symbol) == 0 && deep->name.len) ||
        (deep->qualified.len && !is_mangled(name)))
        return;
    if (!deep->linkage.len && (is_mangled(name) || !deep->name.len))
        frame->system_name = name;
    frame->function = kiln_demangle(names->demangler, name);
}

/* The name of the source; where its short form leaves something out the whole is kept. */
static void shorten(struct kiln_names *names, struct kiln_name_frame *frame)
{
    struct kiln_str whole = frame->function;

    frame->function = kiln_demangle_text(names->demangler, whole);
    if (!frame->system_name.len && !kiln_str_eq(frame->function, whole))
        frame->system_name = whole;
}

/* A frame of debug information. */
static void add_deep(struct kiln_names *names, const struct kiln_dwarf_frame *deep,
                     uint64_t address, bool outermost)
{
    bool has_scopes = deep->qualified.len > 0;
    struct kiln_name_frame frame = {
        .function = has_scopes ? deep->qualified : deep->name,
        .system_name = deep->linkage.len || has_scopes ? deep->linkage : deep->name,
        .file = deep->file,
        .line = deep->line,
        .column = deep->column,
        .start_line = deep->start_line,
    };

    if (is_mangled(deep->linkage)) {
        frame.function = kiln_demangle(names->demangler, deep->linkage);
    } else {
        shorten(names, &frame);
        if (outermost)
            ask_symbol(names, address, deep, &frame);
    }
    kiln_frames_add(&names->frames, &frame, KILN_STR_NONE);
}

/* 1: it has frames; 0: none there; -EAGAIN: not yet. */
static int find_deep(struct kiln_names *names, uint64_t address)
{
    const struct kiln_dwarf_frame *frames = NULL;
    uint32_t n = 0;
    int r = names->deep ? kiln_deep_find(names->deep, address, &frames, &n) : 0;

    if (names->deep)
        read_separate(names);
    for (uint32_t i = 0; r == 0 && i < n; i++)
        add_deep(names, frames + i, address, i == n - 1);
    if (r == -EAGAIN)
        return r;
    return names->frames.n > 0;
}

bool kiln_names_find(struct kiln_names *names, uint64_t address, struct kiln_name *ret_name)
{
    struct kiln_name name = {.frames = names->frames.frames};
    int deep;

    kiln_frames_clear(&names->frames);
    if (names->dump) {
        (void)kiln_jitdump_find(names->dump, address, &names->frames);
    } else if (!find_go(names, address)) {
        deep = find_deep(names, address);
        name.shallow = deep == -EAGAIN;
        if (deep != 1 && !find_symbol(names, address, &name.module))
            name.begin = find_begin(names, address);
    }
    name.n = names->frames.n;
    *ret_name = name;
    return name.n > 0;
}
