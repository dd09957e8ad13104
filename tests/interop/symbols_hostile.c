/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interop_symbols_hostile GOOD ADDRESS FILE...: one resolver, as an agent has it, asked for names
 * in every FILE, a hostile one, and after each for those of GOOD at ADDRESS.
 *
 * A line for each FILE: how many of its addresses have a name, whether GOOD still has its frames,
 * how long it took in milliseconds of CPU time of the child, its path.  The addresses asked for are
 * 64, from ADDRESS on.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "symbol/resolver.h"

enum { PLACES = 64, ROUNDS = 400, PAUSE_MS = 5 };

_Noreturn static void die(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(1);
}

/* Asks until the answer is deep, for two seconds at most.  How many have a name. */
static uint32_t ask(struct kiln_resolver *resolver, const char *path, uint64_t id,
                    const uint64_t *addresses, struct kiln_name *names)
{
    const struct timespec pause = kiln_timespec_of(PAUSE_MS * KILN_NS_PER_MS);
    struct kiln_source source = {.kind = KILN_SOURCE_ELF, .id = id, .version = 1};
    uint32_t named = 0;
    bool shallow = true;

    source.fd = open(path, O_RDONLY | O_CLOEXEC);
    source.key = kiln_str_of(path);
    if (source.fd < 0)
        die(path);
    for (uint32_t round = 0; shallow && round < ROUNDS; round++) {
        int r = kiln_resolver_ask(resolver, &source, addresses, PLACES, names);

        shallow = r == -EAGAIN;
        for (uint32_t i = 0; i < PLACES; i++)
            shallow = shallow || names[i].shallow;
        if (shallow)
            (void)nanosleep(&pause, NULL);
    }
    for (uint32_t i = 0; i < PLACES; i++)
        named += names[i].n > 0;
    close(source.fd);
    return named;
}

/* Function, file and line of each frame at the first address. */
static uint64_t print_of(const struct kiln_name *name)
{
    uint64_t hash = name->n;

    for (uint32_t i = 0; i < name->n; i++) {
        hash = hash * 31 + kiln_hash(name->frames[i].function.ptr, name->frames[i].function.len);
        hash = hash * 31 + kiln_hash(name->frames[i].file.ptr, name->frames[i].file.len);
        hash = hash * 31 + name->frames[i].line;
    }
    return hash;
}

static void spread(uint64_t first, uint64_t *addresses)
{
    for (uint32_t i = 0; i < PLACES; i++)
        addresses[i] = first + (uint64_t)i * 7;
}

int main(int argc, char **argv)
{
    const struct kiln_resolver_opts opts = {.program = getenv("KILN"), .patient = true};
    struct kiln_name names[PLACES];
    uint64_t addresses[PLACES];
    struct kiln_resolver *resolver;
    struct kiln_err err = {0};
    struct kiln_resolver_cost before = {0};
    uint64_t good;

    if (argc < 3 || !opts.program || kiln_resolver_new(&opts, &resolver, &err) < 0)
        die("usage: KILN=PROGRAM interop_symbols_hostile GOOD ADDRESS FILE...");
    spread(strtoull(argv[2], NULL, 16), addresses);
    if (!ask(resolver, argv[1], 1, addresses, names))
        die("the good file has no names");
    good = print_of(names);
    for (int i = 3; i < argc; i++) {
        uint32_t named = ask(resolver, argv[i], (uint64_t)i, addresses, names);
        struct kiln_resolver_cost after;
        bool well;

        kiln_resolver_cost(resolver, &after);
        /* Another id: nothing is answered from memory. */
        well = ask(resolver, argv[1], (uint64_t)(argc + i), addresses, names) > 0 &&
               print_of(names) == good;
        printf("%u %s %" PRIu64 " %s\n", named, well ? "well" : "HURT",
               (after.cpu_ns - before.cpu_ns) / KILN_NS_PER_MS, argv[i]);
        kiln_resolver_cost(resolver, &before);
    }
    kiln_resolver_free(resolver);
    return 0;
}
