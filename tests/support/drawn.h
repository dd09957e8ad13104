/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drawn - batches drawn as text for tests, and views, trees and tops printed back as text.
 *
 *   main;parse;read 3            a stack, root first, and its value
 *   main;parse@json.c:12 3       with file and line
 *   main;parse>read 3            read is inlined into parse: one location, two lines
 *   main;0x1234 3                no function: an address; lib.so+0x1234: in a mapping
 *   main 3 thread=main,n=7       attributes of the sample (a whole number is an int)
 *   main 3 ^7.2                  linked to span 2 of trace 7 (the last bytes of the ids)
 *   - 3                          the empty stack
 *   main 5@100 6@200             values with timestamps; "main @100 @200": timestamps only
 *
 * Helpers fail the test on any error.
 */
#ifndef KILN_TESTS_SUPPORT_DRAWN_H
#define KILN_TESTS_SUPPORT_DRAWN_H

#include "core/builder.h"
#include "core/diff.h"
#include "core/top.h"
#include "core/tree.h"
#include "core/view.h"

/* One profile of a drawn batch; what is NULL or 0 is absent. */
struct kiln_drawn {
    const char *stacks;
    const char *type, *unit; /* NULL: samples, count */
    const char *period_type, *period_unit;
    int64_t period;
    uint64_t time_ns, duration_ns;
    uint8_t id;           /* the last byte of the profile's id */
    const char *attrs;    /* of the profile: "k=v,k=v" */
    const char *resource; /* not NULL: begins a resource with these attributes, and a scope */
    const char *scope;    /* not NULL: begins a scope of that name */
    const char *scope_attrs;
};

/* One profile of samples/count. */
struct kiln_batch *kiln_test_stacks(const char *stacks);
struct kiln_batch *kiln_test_batch(const struct kiln_drawn *profiles, uint32_t n);
/* Adds the samples of a drawing to a profile of a builder. */
void kiln_test_draw(struct kiln_builder *b, uint32_t profile, const char *stacks);

/* A view of a batch, which it takes over (opts NULL: the default). */
struct kiln_view *kiln_test_view(struct kiln_batch *batch, const struct kiln_view_opts *opts);

/* As collapsed stacks, sorted; as an indented tree ("main 3 1": total, self; of a diff both sides
 * as "a->b"); as a list ("read self total").  The texts live until the next call of any of them. */
const char *kiln_test_view_text(const struct kiln_view *view);
const char *kiln_test_tree_text(const struct kiln_tree *tree);
const char *kiln_test_top_text(const struct kiln_view *view, enum kiln_top_order order);

#endif /* KILN_TESTS_SUPPORT_DRAWN_H */
