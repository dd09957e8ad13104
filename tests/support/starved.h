/* SPDX-License-Identifier: Apache-2.0 */
/*
 * starved - runs the same thing with the first, then the second, ... allocation failing, until it
 * gets all the memory it wants.  Every failure must be an error that says so and leaves nothing
 * behind.
 *
 *   struct kiln_starved s = {0};
 *
 *   while (kiln_test_starve(&s))
 *       s.r = kiln_call_graph_new(view, NULL, &graph);
 *   CHECK(s.n > 4);
 */
#ifndef KILN_TESTS_STARVED_H
#define KILN_TESTS_STARVED_H

#include <stdbool.h>
#include <stdint.h>

struct kiln_starved {
    uint64_t n;   /* the allocation that fails; at the end the first that did not exist */
    int64_t live; /* blocks before the first run */
    int r;        /* what the last run returned; set by the caller */
};

/* Whether there is another run; after the last one s->r is 0, and what it made is the caller's. */
bool kiln_test_starve(struct kiln_starved *s);

#endif /* KILN_TESTS_STARVED_H */
