/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of places.  Places are sorted by where their names are, so that each file is asked once for
 * all of its addresses; a location is made of each as soon as its name is there.
 *
 *   native     mapping and the file's own address always, the functions where they are known, a
 *              line for each that is inlined there: deeper names can be found later from build id
 *              and address.  Without a name, but with a beginning of the function, that function is
 *              made up of it: core/frame.h
 *   kernel     the function alone, address 0: where the kernel lies is a secret of the host
 *              (KASLR), and an address beside a name would tell.  All of a function is one
 *              location.  Without a name, "[kernel]".
 *   JIT        the name and line of the jitdump, else the name of the perf-map, else "[jit]";
 *              addresses say nothing to anybody else
 *   lost       "[unknown]"
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytetext.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "core/frame.h"
#include "host/publish_int.h"
#include "symbol/resolver.h"

enum { ASK_MAX = 512 };
#define REREAD_MIN_NS (60 * KILN_NS_PER_S)
#define REREAD_MAX_NS (3600 * KILN_NS_PER_S)

/* ---- locations ---- */

static uint32_t frame_type(struct run *run, const char *type)
{
    uint32_t attr = publish_attr(run, KILN_STR("profile.frame.type"), kiln_str_of(type));

    return kiln_builder_set(run->b, &attr, 1, NULL);
}

static uint32_t function_of(struct run *run, const struct kiln_name_frame *frame)
{
    bool lean = run->publisher->opts.lean;
    const struct kiln_function function = {
        .name = publish_text(run, frame->function),
        .system_name = lean ? 0 : publish_text(run, frame->system_name),
        .filename = publish_text(run, frame->file),
        .start_line = lean ? 0 : frame->start_line,
    };

    return kiln_builder_function(run->b, &function);
}

static uint32_t add_location(struct run *run, const struct kiln_name *name,
                             struct kiln_location location)
{
    struct kiln_line lines[KILN_NAME_FRAMES_MAX];
    bool lean = run->publisher->opts.lean;

    for (uint32_t i = 0; i < name->n; i++)
        lines[i] = (struct kiln_line){.function = function_of(run, name->frames + i),
                                      .line = name->frames[i].line,
                                      .column = lean ? 0 : name->frames[i].column};
    return kiln_builder_location(run->b, &location, lines, name->n);
}

/* A location that has this function and no more. */
static uint32_t add_function(struct run *run, struct kiln_str function,
                             struct kiln_location location)
{
    const struct kiln_name_frame frame = {.function = function};

    return add_location(run, &(struct kiln_name){.frames = &frame, .n = 1}, location);
}

uint32_t publish_marker(struct run *run, const char *name)
{
    return add_function(run, kiln_str_of(name), (struct kiln_location){.address = 0});
}

/* Rust's own mangling, or the older one: _ZN...17h<16 digits>E. */
static bool is_rust(struct kiln_str system_name)
{
    if (kiln_str_starts(system_name, KILN_STR("_R")))
        return true;
    return system_name.len > 24 && kiln_str_starts(system_name, KILN_STR("_ZN")) &&
           memcmp(system_name.ptr + system_name.len - 20, "17h", 3) == 0 &&
           system_name.ptr[system_name.len - 1] == 'E';
}

static const char *native_type(const struct kiln_object *object, const struct kiln_name *name)
{
    if (object->is_go)
        return "go";
    return name->n && is_rust(name->frames[name->n - 1].system_name) ? "rust" : "native";
}

/* Whose code a perf-map names: the runtime's, where the name or the program tells. */
static const char *jit_type(const struct kiln_identity *identity, const struct kiln_name *name)
{
    static const struct {
        const char *program, *type;
    } runtimes[] = {{"node", "v8js"}, {"java", "jvm"}, {"dotnet", "dotnet"}, {"beam.smp", "beam"}};

    if (kiln_str_starts(kiln_name_function(name), KILN_STR("py::")))
        return "cpython";
    for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++)
        if (strcmp(identity->name, runtimes[i].program) == 0)
            return runtimes[i].type;
    return "native";
}

/* A function without a name is called what its first address would be. */
static struct kiln_str make_up(struct run *run, const struct kiln_object *object, uint64_t begin)
{
    struct kiln_str name = kiln_frame_unnamed(kiln_str_of(object->path), begin, &run->made_up);

    if (run->made_up.error)
        kiln_builder_fail(run->b, run->made_up.error);
    return name;
}

static void make_native(struct run *run, struct place *place, const struct kiln_name *name)
{
    struct kiln_mapping mapping = {0};
    struct kiln_location location = {
        .address = place->address,
        .mapping = publish_mapping(run, place->object, place->address, &mapping),
        .attrs = frame_type(run, native_type(place->object, name))};
    uint64_t begin = kiln_frame_offset(&mapping, name->begin);

    if (!name->n && name->begin && begin && location.mapping)
        place->location = add_function(run, make_up(run, place->object, begin), location);
    else
        place->location = add_location(run, name, location);
}

/* The name of a function that only says that a thread waits, to be added when it is needed. */
static struct kiln_str keep_waiting(struct run *run, struct kiln_str function)
{
    char *copy =
        kiln_wait_says_nothing(function) ? kiln_builder_scratch(run->b, function.len) : NULL;

    if (!copy)
        return KILN_STR_NONE;
    memcpy(copy, function.ptr, function.len);
    return (struct kiln_str){copy, function.len};
}

static struct kiln_location kernel_location(struct run *run, struct kiln_str module)
{
    return (struct kiln_location){.mapping = publish_kernel_mapping(run, module),
                                  .attrs = frame_type(run, "kernel")};
}

static void make_kernel(struct run *run, struct place *place, const struct kiln_name *name)
{
    place->merges = !name->n;
    place->waits = keep_waiting(run, kiln_name_function(name));
    if (place->merges)
        place->location =
            add_function(run, KILN_STR("[kernel]"), kernel_location(run, name->module));
    else if (!place->waits.len)
        place->location = add_location(run, name, kernel_location(run, name->module));
}

uint32_t publish_location(struct run *run, struct place *place)
{
    if (!place->location && place->waits.len)
        place->location = add_function(run, place->waits, kernel_location(run, KILN_STR_NONE));
    return place->location;
}

static void make_jit(struct run *run, struct place *place, const struct kiln_name *name)
{
    const struct kiln_identity *identity = run->g->identities[place->process];
    const struct kiln_location location = {.attrs = frame_type(run, jit_type(identity, name))};

    place->merges = !name->n;
    place->location = place->merges ? add_function(run, KILN_STR("[jit]"), location)
                                    : add_location(run, name, location);
}

static void make_location(struct run *run, struct place *place, const struct kiln_name *name)
{
    switch (place->kind) {
    case KILN_FRAME_NATIVE:
        make_native(run, place, name);
        break;
    case KILN_FRAME_KERNEL:
        make_kernel(run, place, name);
        break;
    case KILN_FRAME_JIT:
        make_jit(run, place, name);
        break;
    default:
        place->location = publish_marker(run, "[unknown]");
    }
}

/* ---- asking ---- */

/* A source and what it takes to name it. */
struct asked {
    struct kiln_source source;
    int opened; /* -1, or a file to close */
    struct debug_roots roots;
    char key[2 * KILN_BUILD_ID_MAX + 64];
};

static void ask_object(struct asked *asked, struct kiln_object *object)
{
    size_t n = (size_t)2 * object->build_id_len;

    if (kiln_object_dup(object, &asked->opened) < 0)
        asked->opened = -1;
    kiln_hex_encode(object->build_id, object->build_id_len, asked->key);
    asked->roots.object = object;
    asked->source = (struct kiln_source){
        .kind = KILN_SOURCE_ELF,
        .fd = asked->opened,
        .id = object->id,
        .key = n ? (struct kiln_str){asked->key, n} : kiln_str_of(object->path),
        /* what lies beside a file that may not answer may not, either */
        .open = object->kind == KILN_OBJECT_ELF && !object->aside ? publish_debug_file : NULL,
        .context = &asked->roots,
    };
}

static void ask_kernel(struct run *run, struct asked *asked)
{
    asked->source = (struct kiln_source){
        .kind = KILN_SOURCE_KERNEL,
        .fd = run->publisher->kallsyms,
        .version = run->publisher->kernel_version,
        .key = KILN_STR("/proc/kallsyms"),
    };
}

/* Of a file that grows. */
static uint64_t version_of(int fd)
{
    struct stat st = {0};

    if (fd >= 0 && fstat(fd, &st) < 0)
        st = (struct stat){0};
    return kiln_hash_mix((uint64_t)st.st_size, kiln_timespec_ns(st.st_mtim));
}

static void ask_jitdump(struct asked *asked, struct kiln_object *object)
{
    if (kiln_object_dup(object, &asked->opened) < 0)
        asked->opened = -1;
    asked->source = (struct kiln_source){
        .kind = KILN_SOURCE_JITDUMP,
        .fd = asked->opened,
        .id = object->id,
        .version = version_of(asked->opened),
        .key = kiln_str_of(object->path),
    };
}

static void ask_perf_map(struct asked *asked, const struct kiln_identity *identity)
{
    int n;

    if (kiln_process_open_perf_map(identity, &asked->opened) < 0)
        asked->opened = -1;
    n = snprintf(asked->key, sizeof(asked->key), "perf-%u-%llu.map", identity->pid,
                 (unsigned long long)identity->start_ns);
    asked->source = (struct kiln_source){
        .kind = KILN_SOURCE_PERF_MAP,
        .fd = asked->opened,
        .id = kiln_hash_mix(identity->pid, identity->start_ns),
        .version = version_of(asked->opened),
        .key = {asked->key, (size_t)n},
    };
}

/* False: nothing can know names of this place. */
static bool ask_whom(struct run *run, const struct place *place, bool of_dump, struct asked *asked)
{
    asked->opened = -1;
    if (!run->publisher->opts.resolver)
        return false;
    if (place->kind == KILN_FRAME_NATIVE)
        ask_object(asked, place->object);
    else if (place->kind == KILN_FRAME_KERNEL)
        ask_kernel(run, asked);
    else if (of_dump)
        ask_jitdump(asked, place->object);
    else if (place->kind == KILN_FRAME_JIT)
        ask_perf_map(asked, run->g->identities[place->process]);
    else
        return false;
    return place->kind != KILN_FRAME_JIT || asked->opened >= 0;
}

static int by_source(const void *a, const void *b)
{
    const struct place *x = *(struct place *const *)a, *y = *(struct place *const *)b;
    uint32_t object_x = x->object ? x->object->id : 0, object_y = y->object ? y->object->id : 0;

    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (object_x != object_y)
        return object_x < object_y ? -1 : 1;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    return x->address < y->address ? -1 : x->address > y->address;
}

static bool same_source(const struct place *x, const struct place *y)
{
    return x->kind == y->kind && x->object == y->object && x->process == y->process;
}

static bool has_shallow(const struct kiln_name *names, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (names[i].shallow)
            return true;
    return false;
}

/* False: nobody could be asked, and only names from before are there. */
static bool ask(struct run *run, const struct asked *asked, const uint64_t *addresses, uint32_t n,
                struct kiln_name *names)
{
    struct kiln_publisher *publisher = run->publisher;
    int r;

    do
        r = kiln_resolver_ask(publisher->opts.resolver, &asked->source, addresses, n, names);
    while (r == 0 && has_shallow(names, n) && kiln_clock_mono_ns() < run->patient_until_ns);
    if (r == 0)
        return true;
    if (!publisher->said)
        kiln_log(publisher->opts.log, KILN_LOG_WARN, "new functions have no names for now",
                 "reason", "%s", kiln_err_text(r), NULL);
    publisher->said = true;
    return false;
}

/*
 * A module or a BPF program may have come: the next batch reads the kernel's names again.  Where
 * that does not help, ever less often.
 */
static void reread_kernel(struct kiln_publisher *publisher)
{
    uint64_t now = kiln_clock_mono_ns();

    if (now < publisher->kernel_again_ns)
        return;
    publisher->kernel_version++;
    publisher->kernel_wait_ns =
        publisher->kernel_wait_ns ? 2 * publisher->kernel_wait_ns : REREAD_MIN_NS;
    if (publisher->kernel_wait_ns > REREAD_MAX_NS)
        publisher->kernel_wait_ns = REREAD_MAX_NS;
    publisher->kernel_again_ns = now + publisher->kernel_wait_ns;
}

/*
 * At most ASK_MAX places of one source.  Those without a name stay so; or, if there is another one
 * to ask, they are put to `left`.  Returns how many these are.  What has a name comes before what
 * has none, so that functions and their names, of which those that are made up stand apart
 * (codec/otlp_tables.h), count up alike: fewer bytes when compressed.
 */
static uint32_t name_some(struct run *run, const struct asked *asked, struct place **places,
                          uint32_t n, struct place **left)
{
    struct kiln_name names[ASK_MAX];
    uint64_t addresses[ASK_MAX];
    uint32_t missing = 0, n_left = 0;
    bool answered, is_kernel = places[0]->kind == KILN_FRAME_KERNEL;

    memset(names, 0, n * sizeof(names[0]));
    for (uint32_t i = 0; i < n; i++)
        addresses[i] = places[i]->address;
    answered = asked && ask(run, asked, addresses, n, names);
    for (uint32_t i = 0; i < n; i++)
        if (names[i].n)
            make_location(run, places[i], &names[i]);
    for (uint32_t i = 0; i < n; i++) {
        missing += !names[i].n;
        if (left && !names[i].n)
            left[n_left++] = places[i];
        else if (!names[i].n)
            make_location(run, places[i], &names[i]);
    }
    if (places[0]->kind != KILN_FRAME_LOST) {
        atomic_fetch_add_explicit(&run->publisher->names_asked, n - n_left, memory_order_relaxed);
        atomic_fetch_add_explicit(&run->publisher->names_missing, missing - n_left,
                                  memory_order_relaxed);
    }
    if (missing && answered && is_kernel)
        reread_kernel(run->publisher);
    return n_left;
}

static void shut(struct place *const *places, uint32_t n, int opened)
{
    if (n && opened >= 0 && places[0]->object)
        kiln_object_shut(places[0]->object, opened);
    else if (n && opened >= 0)
        close(opened);
}

/* All places of one source; `of_dump`: those that the jitdump does not have are put first, and it
 * is returned how many these are. */
static uint32_t name_all(struct run *run, struct place **places, uint32_t n, bool of_dump)
{
    struct asked asked = {.roots = {.run = run, .places = places, .n = n, .root = -1, .host = -1}};
    bool can = n && ask_whom(run, places[0], of_dump, &asked);
    uint32_t left = 0, some;

    for (uint32_t done = 0; done < n; done += some) {
        some = n - done < ASK_MAX ? n - done : ASK_MAX;
        left += name_some(run, can ? &asked : NULL, places + done, some,
                          of_dump ? places + left : NULL);
    }
    shut(places, n, asked.opened);
    publish_debug_done(&asked.roots);
    return left;
}

static uint32_t name_source(struct run *run, struct place **places, uint32_t n)
{
    uint32_t same = 1, left;

    while (same < n && same_source(places[0], places[same]))
        same++;
    left = same;
    if (places[0]->kind == KILN_FRAME_JIT && places[0]->object)
        left = name_all(run, places, same, true);
    (void)name_all(run, places, left, false);
    return same;
}

int publish_places(struct run *run)
{
    size_t bytes = (size_t)run->n_places * sizeof(struct place *);
    struct place **sorted = kiln_builder_scratch(run->b, bytes);

    if (!sorted)
        return kiln_builder_error(run->b);
    for (uint32_t i = 0; i < run->n_places; i++)
        sorted[i] = &run->places[i];
    qsort(sorted, run->n_places, sizeof(struct place *), by_source);
    for (uint32_t i = 0; i < run->n_places;)
        i += name_source(run, sorted + i, run->n_places - i);
    return kiln_builder_error(run->b);
}
