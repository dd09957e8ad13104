/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_names FILE [--child]: reads addresses (0x..., one a line) and prints the name of each, as
 * symbolizers do; with --child through a resolver, else in this process.  How long it took and how
 * much memory is for who started it to see; the last line says what was found.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "symbol/names.h"

enum { ADDRESSES_MAX = 1 << 20 };

static void die(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static void show(const struct kiln_name *name)
{
    printf("%.*s\n", KILN_STR_ARG(kiln_name_function(name)));
}

static uint32_t find_here(int fd, const uint64_t *addresses, uint32_t n)
{
    const struct kiln_names_limits limits = {.shallow = true};
    struct kiln_names *names;
    struct kiln_bytes bytes;
    uint32_t found = 0;

    if (kiln_bytes_file(fd, &bytes) < 0 ||
        kiln_names_open(KILN_SOURCE_ELF, &bytes, &limits, &names) < 0)
        die("the file cannot be read");
    for (uint32_t i = 0; i < n; i++) {
        struct kiln_name name = {0};

        found += kiln_names_find(names, addresses[i], &name);
        show(&name);
    }
    fprintf(stderr, "table_bytes %zu\n", kiln_names_bytes(names));
    kiln_names_close(names);
    return found;
}

static uint32_t find_by_child(int fd, const uint64_t *addresses, uint32_t n)
{
    const struct kiln_resolver_opts opts = {.program = "", .deep_cpu_ms = 1};
    struct kiln_source source = {.fd = fd, .id = 1, .version = 1, .key = KILN_STR("bench")};
    struct kiln_name *names = calloc(n, sizeof(*names));
    struct kiln_resolver *resolver;
    struct kiln_err err = {0};
    uint32_t found = 0;

    if (!names || kiln_resolver_new(&opts, &resolver, &err) < 0 ||
        kiln_resolver_ask(resolver, &source, addresses, n, names) < 0)
        die("no child");
    for (uint32_t i = 0; i < n; i++) {
        found += names[i].n > 0;
        show(names + i);
    }
    kiln_resolver_free(resolver);
    free(names);
    return found;
}

int main(int argc, char **argv)
{
    uint64_t *addresses = calloc(ADDRESSES_MAX, sizeof(*addresses));
    uint32_t n = 0;
    uint32_t found;
    int fd = argc > 1 ? open(argv[1], O_RDONLY) : -1;

    if (fd < 0 || !addresses)
        die("usage: bench_names FILE [--child] < ADDRESSES");
    while (n < ADDRESSES_MAX && scanf("%" SCNx64, addresses + n) == 1)
        n++;
    found = argc > 2 ? find_by_child(fd, addresses, n) : find_here(fd, addresses, n);
    fprintf(stderr, "found %u of %u\n", found, n);
    free(addresses);
    close(fd);
    return 0;
}
