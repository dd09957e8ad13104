/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_warm FILE MILLISECONDS < ADDRESSES: how many look-ups a second one processor does once
 * names are known: through a resolver from its memory, and from a shelf on disk that was written
 * and opened again.  Prints for each: its name, look-ups a second of CPU time, frames of a look-up.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../bench.h"
#include "symbol/shelf.h"

enum { ADDRESSES_MAX = 1 << 20, AT_ONCE = 512, ASKS_MAX = 1000 };

#define ID "00112233445566778899aabbccddeeff00112233"

struct warm {
    struct kiln_source source;
    struct kiln_resolver *resolver;
    struct kiln_shelf *shelf;
    uint64_t *addresses;
    uint32_t n;
    struct kiln_name names[AT_ONCE];
    uint64_t frames; /* of the last pass */
};

static const struct kiln_shelf_key key = {{ID, sizeof(ID) - 1}, false};

static uint32_t some(const struct warm *w, uint32_t i)
{
    return w->n - i < AT_ONCE ? w->n - i : AT_ONCE;
}

static void ask(struct warm *w, uint32_t i)
{
    if (kiln_resolver_ask(w->resolver, &w->source, w->addresses + i, some(w, i), w->names) < 0)
        bench_die("resolver", "does not answer");
}

/* Until all of it is as deep as it gets. */
static void ask_deep(struct warm *w, uint32_t i)
{
    for (uint32_t tries = 0; tries < ASKS_MAX; tries++) {
        bool shallow = false;

        ask(w, i);
        for (uint32_t k = 0; k < some(w, i); k++)
            shallow |= w->names[k].shallow;
        if (!shallow)
            return;
    }
    bench_die("resolver", "does not finish");
}

static void learn(struct warm *w, const char *folder)
{
    const struct kiln_shelf_opts opts = {.directory = folder};
    struct kiln_err err = {0};

    if (kiln_shelf_open(&opts, &w->shelf, &err) < 0)
        bench_die(folder, err.text);
    for (uint32_t i = 0; i < w->n; i += AT_ONCE) {
        ask_deep(w, i);
        if (kiln_shelf_put(w->shelf, &key, w->addresses + i, w->names, some(w, i)) < 0)
            bench_die("shelf", "has no memory");
    }
    kiln_shelf_close(w->shelf);
    if (kiln_shelf_open(&opts, &w->shelf, &err) < 0)
        bench_die(folder, err.text);
}

static void from_memory(struct warm *w)
{
    for (uint32_t i = 0; i < w->n; i += AT_ONCE) {
        ask(w, i);
        for (uint32_t k = 0; k < some(w, i); k++)
            w->frames += w->names[k].n;
    }
}

static void from_shelf(struct warm *w)
{
    for (uint32_t i = 0; i < w->n; i++) {
        if (kiln_shelf_get(w->shelf, &key, w->addresses[i], &w->names[0]) != 1)
            bench_die("shelf", "does not know an address");
        w->frames += w->names[0].n;
    }
}

static void measure(struct warm *w, const char *name, void (*pass)(struct warm *w), double budget_s)
{
    double start, now;
    uint64_t passes = 0;

    pass(w);
    start = now = bench_cpu_s();
    for (; now - start < budget_s; passes++) {
        w->frames = 0;
        pass(w);
        now = bench_cpu_s();
    }
    printf("%s %.0f %.2f\n", name, (double)passes * w->n / (now - start), (double)w->frames / w->n);
}

static void forget(const char *folder)
{
    static const char *const files[] = {ID ".shelf", "lock"};
    char path[256];

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", folder, files[i]);
        (void)unlink(path);
    }
    (void)rmdir(folder);
}

int main(int argc, char **argv)
{
    const struct kiln_resolver_opts opts = {
        .program = "", .cache_bytes = (size_t)1 << 30, .patient = true};
    struct warm w = {.source = {.id = 1, .key = KILN_STR("bench")}};
    char folder[] = "/tmp/kiln-warm-XXXXXX";
    double budget_s = argc > 2 ? strtod(argv[2], NULL) / 1e3 : 0;
    struct kiln_err err = {0};

    w.addresses = calloc(ADDRESSES_MAX, sizeof(*w.addresses));
    w.source.fd = argc > 2 ? open(argv[1], O_RDONLY) : -1;
    if (w.source.fd < 0 || !w.addresses || !mkdtemp(folder))
        bench_die(argv[0], "usage: FILE MILLISECONDS < ADDRESSES");
    while (w.n < ADDRESSES_MAX && scanf("%" SCNx64, w.addresses + w.n) == 1)
        w.n++;
    if (w.n == 0 || kiln_resolver_new(&opts, &w.resolver, &err) < 0)
        bench_die("resolver", err.text);
    learn(&w, folder);
    measure(&w, "memory", from_memory, budget_s);
    measure(&w, "shelf", from_shelf, budget_s);
    kiln_shelf_close(w.shelf);
    kiln_resolver_free(w.resolver);
    forget(folder);
    free(w.addresses);
    close(w.source.fd);
    return 0;
}
