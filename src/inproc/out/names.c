/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locations without a function are sorted by mapping and address, so that each file is opened once
 * for all of its addresses, and only if one of them is new.  What is found waits in an array by
 * location while the batch is copied with it (core/remap.h).
 */
#include "inproc/out/names.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/hash.h"
#include "core/frame.h"
#include "core/remap.h"
#include "inproc/out/names_file.h"
#include "inproc/out/names_kept.h"
#include "symbol/clean.h"
#include "symbol/demangle.h"
#include "symbol/names_int.h"
#include "symbol/v8_name.h"

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
    const struct kiln_in_names_how *how;
    struct want *wants;
    struct found *found; /* by location */
    uint32_t n;
    struct kiln_budget budget;
    struct kiln_arena arena;
    struct kiln_str raw; /* the last name that came, as it came; its location has what it became */
    uint32_t raw_location;
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

/* Addresses are sorted: the next one is often in the same function. */
static int name_again(struct run *run, const struct want *want, uint64_t key)
{
    struct found *same = &run->found[run->raw_location];

    if (key)
        kiln_in_kept_put(&state.kept, key, same->function,
                         same->system_name.len ? same->system_name : same->function);
    run->found[want->location] = *same;
    return 0;
}

/* Undone and cleaned; `key` 0: it is not to be kept. */
static int name_it(struct run *run, const struct want *want, struct kiln_str system_name,
                   uint64_t key)
{
    char cleaned[KILN_SYMTAB_NAME_MAX], raw[KILN_SYMTAB_NAME_MAX];
    struct kiln_str function;

    if (run->raw.len && kiln_str_eq(run->raw, system_name))
        return name_again(run, want, key);
    run->raw = kiln_arena_copy(&run->arena, system_name);
    run->raw_location = want->location;
    function = kiln_demangle(state.demangler, system_name);
    function = kiln_v8_name(function, raw, sizeof(raw));
    function.len = kiln_name_clean(function, cleaned, sizeof(cleaned));
    function.ptr = cleaned;
    system_name.len = kiln_name_clean(system_name, raw, sizeof(raw));
    system_name.ptr = raw;
    if (key)
        kiln_in_kept_put(&state.kept, key, function, system_name);
    return keep_found(run, want->location, function, system_name);
}

/* ---- files ---- */

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

/* The addresses [from, to) of one mapping. */
struct part {
    struct run *run;
    uint32_t from, to;
    const struct kiln_mapping *mapping;
    uint64_t key;
};

static uint64_t kept_key(const struct part *part, uint32_t i)
{
    return kiln_hash_mix(part->key, offset_of(part->mapping, part->run->wants[i].address));
}

static bool is_named(const struct part *part, uint32_t i)
{
    return part->run->found[part->run->wants[i].location].function.len > 0;
}

/* Those that are known already; true: all are. */
static bool fill_known(const struct part *part, int *ret_error)
{
    bool all = true;

    for (uint32_t i = part->from; i < part->to && *ret_error == 0; i++) {
        struct kiln_str function, system_name;

        if (kiln_in_kept_find(&state.kept, kept_key(part, i), &function, &system_name))
            *ret_error = keep_found(part->run, part->run->wants[i].location, function, system_name);
        else
            all = false;
    }
    return all;
}

static int tell(void *context, uint32_t who, struct kiln_str system_name)
{
    const struct part *part = context;

    return name_it(part->run, &part->run->wants[who], system_name, kept_key(part, who));
}

static int ask_file(struct part *part, struct kiln_in_names_file *file)
{
    struct kiln_in_asked *asked = kiln_malloc((part->to - part->from) * sizeof(*asked));
    uint32_t n = 0;
    int r;

    if (!asked)
        return -ENOMEM;
    for (uint32_t i = part->from; i < part->to; i++) {
        uint64_t at = offset_of(part->mapping, part->run->wants[i].address);

        if (!is_named(part, i) && kiln_elf_address(file->elf, at, &asked[n].address) == 0)
            asked[n++].who = i;
    }
    r = kiln_in_names_file_ask(file, asked, n, tell, part);
    kiln_free(asked);
    return r;
}

/* Only a lack of memory is an error of ours; a file that cannot be read has no names. */
static int fill_file(struct run *run, uint32_t from, uint32_t to)
{
    const struct kiln_mapping *mapping = &run->batch->dict.mappings[run->wants[from].mapping];
    struct part part = {run, from, to, mapping, file_key(run, mapping)};
    struct kiln_in_names_file file;
    int r = 0;

    if (fill_known(&part, &r) || r < 0)
        return r;
    r = kiln_in_names_file_open(kiln_batch_str(run->batch, mapping->filename),
                                kiln_frame_build_id(run->batch, mapping->attrs), &file);
    if (r == 0)
        r = ask_file(&part, &file);
    kiln_in_names_file_close(&file);
    if (r == -ENOMEM)
        return r;
    for (uint32_t i = from; i < to; i++) {
        if (!is_named(&part, i))
            kiln_in_kept_put(&state.kept, kept_key(&part, i), KILN_STR_NONE, KILN_STR_NONE);
    }
    return 0;
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
    const struct kiln_symtab_entry *symbol;
    struct kiln_str name;
    int fd = open_map(), r = 0;

    if (fd < 0) {
        forget_map();
        return 0;
    }
    if (!read_map(fd))
        to = from;
    for (uint32_t i = from; i < to && r == 0; i++) {
        if (kiln_symtab_find(&state.map, run->wants[i].address, &symbol, &name))
            r = name_it(run, &run->wants[i], name, 0);
    }
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

    return run->how->rest && kiln_frame_build_id(run->batch, m->attrs).len &&
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
    struct kiln_str file;
    uint32_t line;

    if (!found->function.len)
        return 0;
    function.name = kiln_builder_string(b, found->function);
    function.system_name = kiln_builder_string(b, found->system_name);
    if (kiln_v8_name_place(found->function, &file, &line)) {
        function.filename = kiln_builder_string(b, file);
        function.start_line = line;
    }
    lines[0] = (struct kiln_line){.function = kiln_builder_function(b, &function)};
    return 1;
}

static void finish(void *context, struct kiln_builder *b)
{
    const struct run *run = context;

    if (run->how->finish)
        run->how->finish(run->how->context, b);
}

/* Under the lock. */
static int begin(void)
{
    if (!state.begun)
        kiln_in_kept_init(&state.kept);
    state.begun = true;
    return state.demangler ? 0 : kiln_demangler_new(&state.demangler);
}

int kiln_in_names_fill(struct kiln_batch *batch, const struct kiln_in_names_how *how,
                       struct kiln_batch **ret_named, struct kiln_err *err)
{
    struct run run = {.batch = batch, .how = how, .budget = {.limit = FOUND_MAX}};
    const struct kiln_remap_edit edit = {.context = &run, .lines = give_lines, .finish = finish};
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

void kiln_in_names_forked(void)
{
    /* The parent's memory is a copy that nobody needs; its map is of another process. */
    state.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    state.begun = state.has_map = false;
    state.demangler = NULL;
}
