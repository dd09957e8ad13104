/* SPDX-License-Identifier: Apache-2.0 */
/*
 * choose - a selection (store/engine.h) from the words of a command line or of a query string.
 *
 *   tenant=anonymous service=checkout type=cpu from=now-1h to=now match=host.name=~web-.*
 *
 * A type is named as everywhere (core/type.h): "cpu", "cpu:nanoseconds", five parts, or the first
 * three of them.  A match is name=value, name!=value, name=~REGEX or name!~REGEX.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_STORE_CHOOSE_H
#define KILN_STORE_CHOOSE_H

#include "base/mem.h"
#include "store/engine.h"

enum { KILN_CHOICE_MAX = 64 }; /* conditions */

struct kiln_choice {
    struct kiln_selection selection;
    struct kiln_matcher matchers[KILN_CHOICE_MAX];
    char *texts[KILN_CHOICE_MAX + 1]; /* owned: what matchers and the tenant point to */
    uint32_t n_texts;
};

/* Everything of the tenant `anonymous`. */
void kiln_choice_init(struct kiln_choice *choice);
void kiln_choice_done(struct kiln_choice *choice);

/*
 * One word.  Returns 1, 0 where the name is none of ours, or an error that says what is wrong with
 * the value.
 */
KILN_CHECK int kiln_choice_add(struct kiln_choice *choice, struct kiln_str name,
                               struct kiln_str value, struct kiln_err *err);

/* After the last one: fills choice->selection. */
KILN_CHECK int kiln_choice_end(struct kiln_choice *choice, struct kiln_err *err);

#endif /* KILN_STORE_CHOOSE_H */
