/* SPDX-License-Identifier: Apache-2.0 */
/* publish_int - what the files of publish share: one gathering on its way to a batch. */
#ifndef KILN_HOST_PUBLISH_INT_H
#define KILN_HOST_PUBLISH_INT_H

#include "base/buf.h"
#include "base/mem.h"
#include "core/builder.h"
#include "core/intern.h"
#include "host/publish.h"
#include "symbol/wanted.h"

/* A place in code that has a name to be found, each once. */
struct place {
    uint64_t address;
    struct kiln_object *object; /* native */
    uint32_t kind;              /* enum kiln_frame_kind */
    uint32_t process;           /* JIT: whose perf-map may know it */
    uint32_t seen_in;           /* a process that it was sampled in, the first of perhaps many */
    uint32_t location;          /* of the builder */
    struct kiln_str waits; /* kernel: says only that a thread waits; located when it is needed */
    bool merges; /* says nothing beside its neighbour of the same mapping: "[jit]", "[kernel]" */
};

struct kiln_publisher {
    struct kiln_publish_opts opts;
    int kallsyms;            /* -1: not to be had */
    uint64_t kernel_version; /* grows when addresses turn up that kallsyms did not have */
    uint64_t kernel_again_ns, kernel_wait_ns; /* when it may grow again, and how long that was */
    bool said;                                /* that there are no names */
    _Atomic uint64_t names_asked, names_missing;
};

enum { MODULES_MAX = 64 };

struct run {
    struct kiln_publisher *publisher;
    const struct kiln_gathering *g;
    struct kiln_builder *b;
    struct kiln_budget budget;
    uint64_t patient_until_ns; /* lines and inlines are waited for; 0: not at all */
    size_t text_bytes;         /* of names, so far */
    struct kiln_buf text;      /* scratch, for texts on their way into the builder */
    struct kiln_buf made_up;   /* and for names that are made up */
    struct place *places;
    uint32_t n_places, cap_places;
    struct kiln_intern index;
    struct {
        uint32_t name, mapping;
    } modules[MODULES_MAX]; /* of the kernel: name (a string of the builder) and mapping */
    uint32_t n_modules;
};

/* The builder's string of a text of strangers: well-formed UTF-8, at most 4,096 bytes, and shorter
 * ones where there are very many. */
uint32_t publish_text(struct run *run, struct kiln_str text);
/* The attribute key = text; an attribute set of one. */
uint32_t publish_attr(struct run *run, struct kiln_str key, struct kiln_str text);

/* The location of a place that has its name. */
uint32_t publish_location(struct run *run, struct place *place);

/* Where debug files of an object are looked for, while its places are named. */
struct debug_roots {
    struct run *run;
    const struct kiln_object *object;
    struct place *const *places; /* of the object, and then others */
    uint32_t n;
    int root, host; /* of a process that maps it, and of the host; -1: not opened yet */
    bool tried;
};
/* The opener of struct kiln_source, for a struct debug_roots. */
KILN_CHECK int publish_debug_file(void *context, const struct kiln_wanted *wanted, int *ret_fd);
void publish_debug_done(struct debug_roots *roots);

/* Finds names of all places and makes their locations. */
KILN_CHECK int publish_places(struct run *run);
/* A location that stands for something that is no code: "[incomplete: jit]". */
uint32_t publish_marker(struct run *run, const char *name);

/* The attribute set of a process' resource. */
uint32_t publish_resource(struct run *run, const struct kiln_identity *identity);

/* What processes of a container have in common: set after set, then what each has beside it, and
 * the resource of the container. */
struct publish_shared {
    uint32_t *attrs; /* of the builder's scratch memory */
    uint32_t n;
    bool begun;
};
void publish_share(struct run *run, uint32_t set, struct publish_shared *shared);
uint32_t publish_own(struct run *run, uint32_t set, const struct publish_shared *shared);
uint32_t publish_shared(struct run *run, const struct kiln_identity *any,
                        const struct publish_shared *shared);

/* The mapping of a file's segment that holds the address; 0: nothing says which file it is.
 * `ret_mapping` has what it says. */
uint32_t publish_mapping(struct run *run, const struct kiln_object *object, uint64_t address,
                         struct kiln_mapping *ret_mapping);
/* The mapping of the kernel ("" or "[kernel]") or one of its modules. */
uint32_t publish_kernel_mapping(struct run *run, struct kiln_str module);

#endif /* KILN_HOST_PUBLISH_INT_H */
