/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locations without a function are sorted by mapping and address, so that each file is opened once
 * for all of its addresses, and only if one of them is new.  What is found waits in an array by
 * location while the batch is copied with it (core/remap.h).
 *
 * A file is believed to be the one that is mapped if it has the build id that the mapping tells.
 */
#include "inproc/out/names.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/bytetext.h"
#include "base/hash.h"
#include "core/frame.h"
#include "core/remap.h"
#include "inproc/out/names_kept.h"
#include "symbol/clean.h"
#include "symbol/demangle.h"
#include "symbol/names_int.h"

enum { SYMBOLS_MAX = 4 << 20, FOUND_MAX = 16 << 20 };

/* What stays between two batches. */
static struct {
    pthread_mutex_t lock;
    bool begun;
    struct kiln_in_kept kept;
    struct kiln_demangler *demangler;
    /* of /tmp/perf-PID.map */
    bool has_map;
    ino_t map_inode;
    struct kiln_symtab map;
    struct kiln_map_end map_end;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct found {
    struct kiln_str function, system_name;
};

/* A location that lacks a name. */
struct want {
    uint32_t location, mapping;
    uint64_t address;
};

struct run {
    const struct kiln_batch *batch;
    bool rest; /* files with a build id are left to whoever gets it */
    struct want *wants;
    struct found *found; /* by location */
    uint32_t n;
    struct kiln_budget budget;
    struct kiln_arena arena;
};

/* ---- what was found ---- */

static int keep_found(struct run *run, uint32_t location, struct kiln_str function,
                      struct kiln_str system_name)
{
    struct found *found = &run->found[location];

    if (!function.len)
        return 0;
    found->function = kiln_arena_copy(&run->arena, function);
    found->system_name = kiln_str_eq(function, system_name)
                             ? KILN_STR_NONE
                             : kiln_arena_copy(&run->arena, system_name);
    return found->function.ptr ? 0 : -ENOMEM;
}

/* Undone and cleaned; `key` 0: it is not to be kept. */
static int name_it(struct run *run, const struct want *want, struct kiln_symtab *table,
                   uint64_t address, uint64_t key)
{
    char cleaned[KILN_SYMTAB_NAME_MAX], raw[KILN_SYMTAB_NAME_MAX];
    struct kiln_str function = KILN_STR_NONE, system_name = KILN_STR_NONE;
    const struct kiln_symtab_entry *symbol;

    if (kiln_symtab_find(table, address, &symbol, &system_name)) {
        function = kiln_demangle(state.demangler, system_name);
        function.len = kiln_name_clean(function, cleaned, sizeof(cleaned));
        function.ptr = cleaned;
        system_name.len = kiln_name_clean(system_name, raw, sizeof(raw));
        system_name.ptr = raw;
    }
    if (key)
        kiln_in_kept_put(&state.kept, key, function, system_name);
    return keep_found(run, want->location, function, system_name);
}

/* ---- files ---- */

struct file {
    int fd;
    struct kiln_bytes bytes;
    struct kiln_elf *elf;
    struct kiln_symtab table;
};

/* By GNU's build id, or where it has none by OpenTelemetry's hash. */
static bool is_same_file(const struct kiln_elf *elf, struct kiln_str build_id)
{
    uint8_t id[KILN_BUILD_ID_MAX];
    char text[2 * KILN_BUILD_ID_MAX + 1];
    uint8_t n;

    if (!build_id.len)
        return true;
    if (kiln_elf_build_id(elf, id, &n) == 0) {
        kiln_hex_encode(id, n, text);
        return kiln_str_eq(build_id, (struct kiln_str){text, 2 * (size_t)n});
    }
    return kiln_elf_hash(&elf->bytes, text) == 0 && kiln_str_eq(build_id, kiln_str_of(text));
}

static int open_path(const char *path, int *ret_fd)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return -ENOENT;
    }
    *ret_fd = fd;
    return 0;
}

/* The vDSO is in memory alone: mappings of a batch say where things are in their files. */
static int open_vdso(struct file *file)
{
    const ElfW(Ehdr) *head = (const void *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);

    if (!head)
        return -ENOENT;
    file->bytes =
        kiln_bytes_memory(head, head->e_shoff + (size_t)head->e_shnum * head->e_shentsize);
    return kiln_elf_open(&file->bytes, &file->elf);
}

/* `path` is a file of this build id, or it is of no use. */
static int try_file(const char *path, struct kiln_str build_id, struct file *file)
{
    int r = open_path(path, &file->fd);

    if (r == 0)
        r = kiln_bytes_file(file->fd, &file->bytes);
    if (r == 0)
        r = kiln_elf_open(&file->bytes, &file->elf);
    if (r == 0 && is_same_file(file->elf, build_id))
        return 0;
    kiln_elf_close(file->elf);
    if (file->fd >= 0)
        close(file->fd);
    file->elf = NULL;
    file->fd = -1;
    return r < 0 ? r : -ENOENT;
}

/* A program that was replaced while it runs is still to be had as such. */
static int try_files(struct kiln_str path, struct kiln_str build_id, struct file *file)
{
    char text[4096];
    int r;

    if (path.len >= sizeof(text))
        return -ENAMETOOLONG;
    snprintf(text, sizeof(text), "%.*s", KILN_STR_ARG(path));
    r = try_file(text, build_id, file);
    return r < 0 && r != -ENOMEM && build_id.len ? try_file("/proc/self/exe", build_id, file) : r;
}

static void close_file(struct file *file)
{
    kiln_symtab_done(&file->table);
    kiln_elf_close(file->elf);
    if (file->fd >= 0)
        close(file->fd);
}

/* Only a lack of memory is an error of ours; a file that cannot be read has no names. */
static int open_file(const struct run *run, const struct kiln_mapping *mapping, struct file *file)
{
    struct kiln_str path = kiln_batch_str(run->batch, mapping->filename);
    int r;

    *file = (struct file){.fd = -1};
    kiln_symtab_init(&file->table, KILN_IN_NAMES_TABLE, SYMBOLS_MAX);
    r = kiln_str_eq(path, KILN_STR("[vdso]"))
            ? open_vdso(file)
            : try_files(path, kiln_frame_build_id(run->batch, mapping->attrs), file);
    if (r < 0)
        return r;
    r = kiln_names_read_elf(&file->table, file->elf);
    if (r != -ENOMEM && r != KILN_E_LIMIT)
        r = kiln_names_read_packed(&file->table, file->elf);
    return r == -ENOMEM ? r : kiln_symtab_finish(&file->table);
}

/* What says which file it is: its build id, else its path. */
static uint64_t file_key(const struct run *run, const struct kiln_mapping *mapping)
{
    struct kiln_str id = kiln_frame_build_id(run->batch, mapping->attrs);

    if (!id.len)
        id = kiln_batch_str(run->batch, mapping->filename);
    return id.len ? kiln_hash(id.ptr, id.len) : 0;
}

static uint64_t offset_of(const struct kiln_mapping *mapping, uint64_t address)
{
    return address - mapping->start + mapping->offset;
}

/* The addresses [from, to) of one mapping, those that are known already; true: all are. */
static bool fill_known(struct run *run, uint32_t from, uint32_t to, uint64_t key, int *ret_error)
{
    const struct kiln_mapping *mapping = &run->batch->dict.mappings[run->wants[from].mapping];
    bool all = true;

    for (uint32_t i = from; i < to && *ret_error == 0; i++) {
        uint64_t at = offset_of(mapping, run->wants[i].address);
        struct kiln_str function, system_name;

        if (kiln_in_kept_find(&state.kept, kiln_hash_mix(key, at), &function, &system_name))
            *ret_error = keep_found(run, run->wants[i].location, function, system_name);
        else
            all = false;
    }
    return all;
}

static int fill_file(struct run *run, uint32_t from, uint32_t to)
{
    const struct kiln_mapping *mapping = &run->batch->dict.mappings[run->wants[from].mapping];
    uint64_t key = file_key(run, mapping);
    struct file file;
    int r = 0, opened;

    if (fill_known(run, from, to, key, &r) || r < 0)
        return r;
    opened = open_file(run, mapping, &file);
    for (uint32_t i = from; i < to && r == 0; i++) {
        uint64_t at = offset_of(mapping, run->wants[i].address), address;
        uint64_t kept_key = kiln_hash_mix(key, at);

        if (opened < 0 || kiln_elf_address(file.elf, at, &address) < 0)
            kiln_in_kept_put(&state.kept, kept_key, KILN_STR_NONE, KILN_STR_NONE);
        else if (!run->found[run->wants[i].location].function.len)
            r = name_it(run, &run->wants[i], &file.table, address, kept_key);
    }
    close_file(&file);
    return r < 0 ? r : opened == -ENOMEM ? opened : 0;
}

/* ---- code that was made at run time ---- */

static void forget_map(void)
{
    if (state.has_map)
        kiln_symtab_done(&state.map);
    state.has_map = false;
}

/* Of another user it could say anything.  -1: there is none. */
static int open_map(void)
{
    char path[64];
    struct stat st;
    int fd;

    snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid()) {
        close(fd);
        return -1;
    }
    if (state.map_inode != st.st_ino)
        forget_map();
    state.map_inode = st.st_ino;
    return fd;
}

/* Reads what has been added since; a map that is another by now is read anew. */
static bool read_map(int fd)
{
    struct kiln_bytes bytes;
    int r;

    if (kiln_bytes_file(fd, &bytes) < 0)
        return false;
    r = state.has_map ? kiln_names_grow_map(&state.map, &bytes, &state.map_end)
                      : KILN_E_UNSUPPORTED;
    if (r < 0) {
        if (state.has_map)
            kiln_symtab_done(&state.map);
        kiln_symtab_init(&state.map, KILN_IN_NAMES_MAP, SYMBOLS_MAX);
        state.has_map = true;
        r = kiln_names_read_map(&state.map, &bytes, &state.map_end);
    }
    if (r == 0)
        r = kiln_symtab_finish(&state.map);
    if (r < 0)
        forget_map();
    return r == 0;
}

/* The table reads names where they are, and is opened each time: threads share no descriptors. */
static int fill_made(struct run *run, uint32_t from, uint32_t to)
{
    int fd = open_map(), r = 0;

    if (fd < 0) {
        forget_map();
        return 0;
    }
    if (read_map(fd))
        for (uint32_t i = from; i < to && r == 0; i++)
            r = name_it(run, &run->wants[i], &state.map, run->wants[i].address, 0);
    close(fd);
    return r;
}

/* ---- a batch ---- */

static int compare_wants(const void *left, const void *right)
{
    const struct want *a = left, *b = right;

    if (a->mapping != b->mapping)
        return a->mapping < b->mapping ? -1 : 1;
    return a->address < b->address ? -1 : a->address > b->address;
}

static void collect(struct run *run)
{
    const struct kiln_dict *d = &run->batch->dict;

    for (uint32_t i = 1; i < d->n_locations; i++)
        if (d->locations[i].n == 0 && d->locations[i].address)
            run->wants[run->n++] = (struct want){.location = i,
                                                 .mapping = d->locations[i].mapping,
                                                 .address = d->locations[i].address};
    qsort(run->wants, run->n, sizeof(*run->wants), compare_wants);
}

static bool is_of_file(const struct kiln_batch *batch, uint32_t mapping)
{
    struct kiln_str path = kiln_batch_str(batch, batch->dict.mappings[mapping].filename);

    return mapping && path.len && (path.ptr[0] == '/' || kiln_str_eq(path, KILN_STR("[vdso]"))) &&
           !kiln_str_starts(path, KILN_STR("//anon"));
}

static bool is_left_out(const struct run *run, uint32_t mapping)
{
    const struct kiln_mapping *m = &run->batch->dict.mappings[mapping];

    return run->rest && kiln_frame_build_id(run->batch, m->attrs).len &&
           kiln_str_starts(kiln_batch_str(run->batch, m->filename), KILN_STR("/"));
}

static int find_all(struct run *run)
{
    uint32_t from = 0, to;
    int r = 0;

    for (; from < run->n && r == 0; from = to) {
        uint32_t mapping = run->wants[from].mapping;

        for (to = from; to < run->n && run->wants[to].mapping == mapping; to++)
            ;
        if (is_left_out(run, mapping))
            continue;
        r = is_of_file(run->batch, mapping) ? fill_file(run, from, to) : fill_made(run, from, to);
    }
    return r;
}

static uint32_t give_lines(void *context, struct kiln_builder *b, const struct kiln_batch *from,
                           const struct kiln_location *location, struct kiln_line *lines)
{
    const struct run *run = context;
    const struct found *found = &run->found[location - from->dict.locations];
    struct kiln_function function = {0};

    if (!found->function.len)
        return 0;
    function.name = kiln_builder_string(b, found->function);
    function.system_name = kiln_builder_string(b, found->system_name);
    lines[0] = (struct kiln_line){.function = kiln_builder_function(b, &function)};
    return 1;
}

/* Under the lock. */
static int begin(void)
{
    if (!state.begun)
        kiln_in_kept_init(&state.kept);
    state.begun = true;
    return state.demangler ? 0 : kiln_demangler_new(&state.demangler);
}

static int fill(struct kiln_batch *batch, bool rest, struct kiln_batch **ret_named,
                struct kiln_err *err)
{
    struct run run = {.batch = batch, .rest = rest, .budget = {.limit = FOUND_MAX}};
    const struct kiln_remap_edit edit = {.context = &run, .lines = give_lines};
    uint32_t n = batch->dict.n_locations;
    int r = 0;

    kiln_arena_init(&run.arena, &run.budget);
    run.wants = kiln_calloc(n + 1, sizeof(*run.wants));
    run.found = kiln_calloc(n + 1, sizeof(*run.found));
    if (!run.wants || !run.found)
        r = -ENOMEM;
    pthread_mutex_lock(&state.lock);
    if (r == 0)
        r = begin();
    if (r == 0) {
        collect(&run);
        r = find_all(&run);
    }
    pthread_mutex_unlock(&state.lock);
    r = r < 0 ? kiln_err_set(err, r, NULL, "%s", kiln_err_text(r))
              : kiln_remap_batch(batch, &edit, NULL, ret_named, err);
    kiln_free(run.wants);
    kiln_free(run.found);
    kiln_arena_done(&run.arena);
    return r;
}

int kiln_in_names_fill(struct kiln_batch *batch, struct kiln_batch **ret_named,
                       struct kiln_err *err)
{
    return fill(batch, false, ret_named, err);
}

int kiln_in_names_fill_rest(struct kiln_batch *batch, struct kiln_batch **ret_named,
                            struct kiln_err *err)
{
    return fill(batch, true, ret_named, err);
}

void kiln_in_names_forked(void)
{
    /* The parent's memory is a copy that nobody needs; its map is of another process. */
    state.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    state.begun = state.has_map = false;
    state.demangler = NULL;
}
