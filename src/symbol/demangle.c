/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Demangling is libiberty's: Itanium C++ and both schemes of Rust.  Its recursion limit stays on:
 * names come from strangers' files.
 */
#include <errno.h>
#include <libiberty/demangle.h>
#include <string.h>

#include "base/mem.h"
#include "symbol/names.h"

enum { TEXT_MAX = 4096 };

struct kiln_demangler {
    char in[TEXT_MAX + 1];
    char out[TEXT_MAX];
    size_t n;
};

int kiln_demangler_new(struct kiln_demangler **ret_demangler)
{
    struct kiln_demangler *d = kiln_malloc(sizeof(*d));

    if (!d)
        return -ENOMEM;
    *ret_demangler = d;
    return 0;
}

void kiln_demangler_free(struct kiln_demangler *demangler)
{
    kiln_free(demangler);
}

/* What is longer than fits is cut. */
static void take(const char *text, size_t n, void *context)
{
    struct kiln_demangler *d = context;

    if (n > TEXT_MAX - d->n)
        n = TEXT_MAX - d->n;
    memcpy(d->out + d->n, text, n);
    d->n += n;
}

struct kiln_str kiln_demangle(struct kiln_demangler *d, struct kiln_str name)
{
    if (name.len < 3 || name.len > TEXT_MAX || name.ptr[0] != '_')
        return name;
    memcpy(d->in, name.ptr, name.len);
    d->in[name.len] = '\0';
    d->n = 0;
    if (rust_demangle_callback(d->in, DMGL_RUST, take, d))
        return (struct kiln_str){d->out, d->n};
    d->n = 0;
    if (cplus_demangle_v3_callback(d->in, DMGL_PARAMS | DMGL_ANSI, take, d))
        return (struct kiln_str){d->out, d->n};
    return name;
}
