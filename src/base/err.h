/* SPDX-License-Identifier: Apache-2.0 */
/*
 * err - error codes, and the error a person reads.
 *
 * A function that can fail returns 0 or a negative code: a negated errno, or one of our own codes
 * below (from -4096 down).  Where a person will read the failure (a file, a query, a configuration)
 * the last argument is a `struct kiln_err *`: the code, the place, and a sentence.  It may be NULL
 * when the caller does not care.  Libraries fill it; they never print and never exit.
 *
 * Threads: plain data, no state.
 */
#ifndef KILN_BASE_ERR_H
#define KILN_BASE_ERR_H

#include <stdarg.h>

#include "base/attr.h"

/* number, name, the sentence kiln_err_text() gives for it */
#define KILN_ERR_MAP(X)                                                                            \
    X(4096, TRUNCATED, "the input ends in the middle of something")                                \
    X(4097, MALFORMED, "the input breaks the rules of its format")                                 \
    X(4098, LIMIT, "a limit on size, count or depth was reached")                                  \
    X(4099, RANGE, "an index points outside its table")                                            \
    X(4100, UTF8, "a text is not valid UTF-8")                                                     \
    X(4101, CORRUPT, "the compressed data is damaged")                                             \
    X(4102, UNKNOWN, "the format of the input is not known")                                       \
    X(4103, UNSUPPORTED, "this is valid, but Kiln does not do it")                                 \
    X(4104, NOMATCH, "nothing matches the selection")                                              \
    X(4105, AMBIGUOUS, "more than one thing matches the selection")                                \
    X(4106, PATTERN, "the pattern is not valid")

enum kiln_err_code {
#define X(number, name, text) KILN_E_##name = -(number),
    KILN_ERR_MAP(X)
#undef X
};

struct kiln_err {
    int code;        /* 0 while nothing failed */
    char where[160]; /* the place: a field path, a line, a file; "" if there is none */
    char text[256];  /* one sentence without the place and without a full stop */
};

/* The sentence for any code, ours or errno's. */
const char *kiln_err_text(int code);

/*
 * Fills `err` (unless NULL) with a code, a place (NULL: none) and a formatted sentence, and returns
 * `code`, so that `return kiln_err_set(...)` reads well.  The first error is kept: an `err` that
 * already holds one is left alone.
 */
int kiln_err_set(struct kiln_err *err, int code, const char *where, const char *fmt, ...)
    KILN_PRINTF(4, 5);

/*
 * Puts a place before the one that `err` holds: "samples[5]" and then "profiles[2]" make
 * "profiles[2].samples[5]".  Decoders call it on the way out, so that the path costs nothing while
 * all is well.  Does nothing for NULL or an empty error.
 */
void kiln_err_within(struct kiln_err *err, const char *fmt, ...) KILN_PRINTF(2, 3);

/* Says which file the place is in: "rules.yaml: line 3, column 5".  `code` is for an empty error.
 * Returns `code`. */
int kiln_err_in_file(struct kiln_err *err, int code, const char *path);

#endif /* KILN_BASE_ERR_H */
