/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mapping after mapping: the addresses of all its locations that lack something are asked for, a
 * slice at a time, and once more where lines are still being looked for.  What is found is kept by
 * location until the batch is made anew.
 */
#include "naming/here.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "core/frame.h"
#include "core/remap.h"
#include "naming/debug_file.h"
#include "symbol/debugfile.h"

enum { SLICE = 1024, PAUSE_MS = 5 };
#define MEMORY_BYTES ((size_t)256 << 20)

/* What is known of a location; frames are in the arena. */
struct found {
    struct kiln_name_frame *frames;
    uint32_t n;
};

struct kiln_here {
    struct kiln_resolver *resolver;
};

struct naming {
    const struct kiln_batch *batch;
    struct kiln_resolver *resolver;
    struct kiln_budget budget;
    struct kiln_arena arena;
    struct found *found; /* by location */
    uint32_t n_found;
    uint64_t deadline_ns;
    uint32_t n; /* of the slice */
    uint32_t locations[SLICE];
    uint64_t addresses[SLICE];
    struct kiln_name names[SLICE];
};

/* ---- one file ---- */

/* The file of a mapping, if it is here and the same. */
static int open_file(const struct kiln_batch *batch, uint32_t mapping, char ret_path[PATH_MAX])
{
    const struct kiln_mapping *m = &batch->dict.mappings[mapping];
    struct kiln_str path = batch->dict.strings[m->filename];
    struct kiln_str id = kiln_frame_build_id(batch, m->attrs);
    struct kiln_debug_facts facts;
    struct kiln_bytes bytes;
    int fd;

    if (path.len < 2 || path.len >= PATH_MAX || path.ptr[0] != '/' || id.len == 0)
        return -ENOENT;
    snprintf(ret_path, PATH_MAX, "%.*s", KILN_STR_ARG(path));
    if (kiln_file_open_plain(ret_path, &fd) < 0)
        return -ENOENT;
    if (kiln_bytes_file(fd, &bytes) == 0 && kiln_debug_inspect(&bytes, &facts, NULL) == 0 &&
        kiln_debug_facts_match(&facts, id))
        return fd;
    close(fd);
    return -ENOENT;
}

static struct kiln_str copied(struct naming *n, struct kiln_str text)
{
    return text.len ? kiln_arena_copy(&n->arena, text) : text;
}

static int keep(struct naming *n, uint32_t location, const struct kiln_name *name)
{
    struct found *found = &n->found[location];

    if (name->n == 0)
        return 0;
    found->frames = kiln_arena_alloc(&n->arena, name->n * sizeof(*found->frames));
    if (!found->frames)
        return -ENOMEM;
    for (uint32_t i = 0; i < name->n; i++) {
        found->frames[i] = name->frames[i];
        found->frames[i].function = copied(n, name->frames[i].function);
        found->frames[i].system_name = copied(n, name->frames[i].system_name);
        found->frames[i].file = copied(n, name->frames[i].file);
        if (!found->frames[i].function.ptr)
            return -ENOMEM;
    }
    n->n_found += found->n == 0;
    found->n = name->n;
    return 0;
}

static bool is_late(const struct naming *n)
{
    return kiln_clock_mono_ns() >= n->deadline_ns;
}

/* Asks for the slice; what has no lines yet stays in it. */
static int ask(struct naming *n, const struct kiln_source *source)
{
    int r = kiln_resolver_ask(n->resolver, source, n->addresses, n->n, n->names);
    uint32_t left = 0;

    if (r == -EAGAIN && !is_late(n))
        return 0;
    for (uint32_t i = 0; r == 0 && i < n->n; i++) {
        uint32_t location = n->locations[i];

        r = keep(n, location, &n->names[i]);
        if (!n->names[i].shallow)
            continue;
        n->locations[left] = location;
        n->addresses[left++] = n->addresses[i];
    }
    n->n = left;
    return r;
}

static int ask_all(struct naming *n, const struct kiln_source *source)
{
    const struct timespec pause = kiln_timespec_of(PAUSE_MS * KILN_NS_PER_MS);
    int r = 0;

    while (r == 0 && n->n) {
        uint32_t before = n->n;

        r = ask(n, source);
        if (n->n && is_late(n))
            break;
        if (n->n == before)
            (void)nanosleep(&pause, NULL);
    }
    n->n = 0;
    return r;
}

static int name_file(struct naming *n, uint32_t mapping, int fd, const char *path)
{
    struct kiln_str id = kiln_frame_build_id(n->batch, n->batch->dict.mappings[mapping].attrs);
    struct kiln_debugfile where = {.program = path};
    const struct kiln_source source = {.kind = KILN_SOURCE_ELF,
                                       .fd = fd,
                                       .id = kiln_hash(id.ptr, id.len),
                                       .version = 1,
                                       .key = kiln_str_of(path),
                                       .open = kiln_debugfile_opener,
                                       .context = &where};
    const struct kiln_dict *dict = &n->batch->dict;
    struct kiln_debug_map map;
    int r = kiln_debug_map_load(fd, &map);

    if (r < 0)
        return 0;
    where.root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (uint32_t i = 0; r == 0 && i < dict->n_locations; i++) {
        const struct kiln_location *location = &dict->locations[i];

        if (location->mapping != mapping ||
            kiln_frame_lack(n->batch, location) == KILN_LACKS_NOTHING ||
            !kiln_debug_map_address(&map, kiln_frame_address(n->batch, location),
                                    &n->addresses[n->n]))
            continue;
        n->locations[n->n++] = i;
        if (n->n == SLICE)
            r = ask_all(n, &source);
    }
    if (r == 0)
        r = ask_all(n, &source);
    if (where.root >= 0)
        close(where.root);
    return r;
}

/* ---- the batch ---- */

static bool lacks_something(const struct kiln_batch *batch, uint32_t mapping)
{
    for (uint32_t i = 0; i < batch->dict.n_locations; i++)
        if (batch->dict.locations[i].mapping == mapping &&
            kiln_frame_lack(batch, &batch->dict.locations[i]) != KILN_LACKS_NOTHING)
            return true;
    return false;
}

static int name_mappings(struct naming *n)
{
    char path[PATH_MAX];
    int r = 0;

    for (uint32_t i = 1; r == 0 && i < n->batch->dict.n_mappings; i++) {
        int fd = lacks_something(n->batch, i) ? open_file(n->batch, i, path) : -ENOENT;

        if (fd < 0)
            continue;
        r = name_file(n, i, fd, path);
        close(fd);
    }
    return r;
}

static uint32_t give_lines(void *context, struct kiln_builder *b, const struct kiln_batch *from,
                           const struct kiln_location *location, struct kiln_line *lines)
{
    const struct naming *n = context;
    const struct found *found = &n->found[location - from->dict.locations];
    uint32_t most = found->n < KILN_REMAP_LINES ? found->n : KILN_REMAP_LINES;

    for (uint32_t i = 0; i < most; i++) {
        const struct kiln_name_frame *frame = &found->frames[i];
        struct kiln_function function = {.start_line = frame->start_line};

        function.name = kiln_builder_string(b, frame->function);
        function.system_name =
            frame->system_name.len ? kiln_builder_string(b, frame->system_name) : function.name;
        function.filename = kiln_builder_string(b, frame->file);
        lines[i] = (struct kiln_line){.function = kiln_builder_function(b, &function),
                                      .line = frame->line,
                                      .column = frame->column};
    }
    return most;
}

static int name_all(struct naming *n, struct kiln_batch **ret_named, struct kiln_err *err)
{
    const struct kiln_remap_edit edit = {.context = n, .lines = give_lines};
    int r = name_mappings(n);

    if (r == 0 && n->n_found)
        r = kiln_remap_batch(n->batch, &edit, NULL, ret_named, err);
    return r;
}

int kiln_here_name(struct kiln_here *here, struct kiln_batch **batch, uint64_t timeout_ns,
                   struct kiln_err *err)
{
    struct naming *n = kiln_calloc(1, sizeof(*n));
    struct kiln_batch *named = NULL;
    int r = -ENOMEM;

    if (!n)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    n->batch = *batch;
    n->resolver = here->resolver;
    n->deadline_ns = kiln_clock_mono_ns() + timeout_ns;
    n->budget.limit = MEMORY_BYTES;
    kiln_arena_init(&n->arena, &n->budget);
    n->found = kiln_calloc(n->batch->dict.n_locations + 1, sizeof(*n->found));
    if (n->found)
        r = name_all(n, &named, err);
    kiln_arena_done(&n->arena);
    kiln_free(n->found);
    kiln_free(n);
    if (r < 0)
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    if (!named)
        return 0;
    kiln_batch_unref(*batch);
    *batch = named;
    return 1;
}

int kiln_here_new(const struct kiln_resolver_opts *opts, struct kiln_here **ret_here,
                  struct kiln_err *err)
{
    struct kiln_here *here = kiln_calloc(1, sizeof(*here));
    int r = here ? kiln_resolver_new(opts, &here->resolver, err) : -ENOMEM;

    if (r < 0) {
        kiln_free(here);
        return kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    *ret_here = here;
    return 0;
}

void kiln_here_free(struct kiln_here *here)
{
    if (!here)
        return;
    kiln_resolver_free(here->resolver);
    kiln_free(here);
}

int kiln_name_here(struct kiln_batch **batch, uint64_t timeout_ns, struct kiln_err *err)
{
    const struct kiln_resolver_opts opts = {.patient = true, .scratch_directory = getenv("TMPDIR")};
    struct kiln_here *here;
    int r = kiln_here_new(&opts, &here, err);

    if (r < 0)
        return r;
    r = kiln_here_name(here, batch, timeout_ns, err);
    kiln_here_free(here);
    return r < 0 ? r : 0;
}
