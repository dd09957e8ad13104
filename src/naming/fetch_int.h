/* SPDX-License-Identifier: Apache-2.0 */
/* fetch_int - what fetch.c and its child agree upon. */
#ifndef KILN_NAMING_FETCH_INT_H
#define KILN_NAMING_FETCH_INT_H

enum { KILN_FETCH_FILE = 3 }; /* the descriptor that the child writes into */

/* exit code, name, what it says */
#define KILN_FETCH_ENDS(X)                                                                         \
    X(0, WELL, "all is there")                                                                     \
    X(10, ABSENT, "the server does not have it")                                                   \
    X(11, REFUSED, "the server does not answer such questions")                                    \
    X(12, NETWORK, "the server cannot be reached")                                                 \
    X(13, TOO_LARGE, "the file is larger than may be fetched")                                     \
    X(14, TIMEOUT, "the server took too long")                                                     \
    X(15, DISK, "the file cannot be written")                                                      \
    X(16, UNSAFE, "the process that fetches could not give up its rights")                         \
    X(17, TRUST, "the server's certificate is not trusted")

enum kiln_fetch_end {
#define X(code, name, text) KILN_FETCH_##name = (code),
    KILN_FETCH_ENDS(X)
#undef X
};

#endif /* KILN_NAMING_FETCH_INT_H */
