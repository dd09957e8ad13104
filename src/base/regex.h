/* SPDX-License-Identifier: Apache-2.0 */
/*
 * regex - regular expressions (PCRE2) that cannot run away.
 *
 * Perl's syntax, case matters unless the pattern says (?i), UTF-8; a text that is not valid UTF-8
 * can still be searched.  Steps, depth and memory of one match are limited, so that an evil pattern
 * is an error and not a hang.
 *
 * Threads: one owner at a time (a match writes into the expression).
 */
#ifndef KILN_BASE_REGEX_H
#define KILN_BASE_REGEX_H

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

struct kiln_regex;

enum kiln_regex_flags {
    KILN_REGEX_WHOLE = 1, /* the whole text must match, not a part of it */
    KILN_REGEX_RE2 = 2,   /* as RE2 reads it: . is any character, $ the very end */
    /* For patterns of strangers that are tried on many texts: after the first match that took too
     * many steps every other one fails at once, and kiln_regex_gave_up() says so. */
    KILN_REGEX_GIVES_UP = 4,
};

/*
 * Returns 0, -ENOMEM, or KILN_E_PATTERN: then the error quotes the pattern and names the offset at
 * which it stops making sense.
 */
KILN_CHECK int kiln_regex_new(struct kiln_str pattern, unsigned flags,
                              struct kiln_regex **ret_regex, struct kiln_err *err);
void kiln_regex_free(struct kiln_regex *regex);

/* Returns 1 (it matches), 0, -ENOMEM, or KILN_E_LIMIT where the match took too many steps. */
KILN_CHECK int kiln_regex_matches(struct kiln_regex *regex, struct kiln_str text);
/*
 * The i-th group that has a name (from 0), after a match of `text`.  Returns 1, or 0 where there is
 * no such group; its text is KILN_STR_NONE where it took no part.
 */
int kiln_regex_named(const struct kiln_regex *regex, uint32_t i, struct kiln_str text,
                     struct kiln_str *ret_name, struct kiln_str *ret_text);
bool kiln_regex_gave_up(const struct kiln_regex *regex);

/*
 * Appends `text` to `out` with every match replaced by `with`, in which $0 is the match, $1 or ${1}
 * a group of it, ${name} a group with a name, and $$ a dollar.  Returns how many were replaced,
 * -ENOMEM or KILN_E_LIMIT (also of `out`).
 */
KILN_CHECK int kiln_regex_replace(struct kiln_regex *regex, struct kiln_str text,
                                  struct kiln_str with, struct kiln_buf *out);

/*
 * The same, with what `put` writes for each match.  It returns 0, or a code that ends all and is
 * returned.
 */
KILN_CHECK int kiln_regex_replace_by(struct kiln_regex *regex, struct kiln_str text,
                                     int (*put)(const void *context, struct kiln_str match,
                                                struct kiln_buf *out),
                                     const void *context, struct kiln_buf *out);

/* Whether kiln_regex_replace() could make sense of `with`: 0, or KILN_E_PATTERN and a sentence. */
KILN_CHECK int kiln_regex_check_replacement(const struct kiln_regex *regex, struct kiln_str with,
                                            struct kiln_err *err);

#endif /* KILN_BASE_REGEX_H */
