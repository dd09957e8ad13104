/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store - where `kiln store` finds the store: in a directory, or behind its server.
 *
 * A directory that a server has locked is asked for over the server's socket; --server says which
 * server outright.  Either way the answer is the same text.
 *
 * Threads: only the main thread.
 */
#ifndef KILN_CLI_STORE_H
#define KILN_CLI_STORE_H

#include <limits.h>

#include "cli/cli.h"
#include "net/client.h"
#include "store/engine.h"
#include "store/io.h"

enum kiln_store_need {
    KILN_STORE_FILES,  /* its files, for reading: nothing is changed, not even a lock taken */
    KILN_STORE_READ,   /* its profiles */
    KILN_STORE_CHANGE, /* the right to change it */
};

struct kiln_store_place {
    char dir[PATH_MAX];
    struct kiln_client *client; /* not NULL: a server has it, and the rest is NULL */
    struct kiln_io *io;
    struct kiln_engine *engine; /* not for FILES */
};

/* The directory of --data-dir, KILN_DATA_DIR, or the usual one; an exit code. */
KILN_CHECK int kiln_store_dir(const struct kiln_cli *cli, char ret_dir[PATH_MAX]);

/* Prints what went wrong and returns an exit code, 0 for success. */
KILN_CHECK int kiln_store_place_open(const struct kiln_cli *cli, enum kiln_store_need need,
                                     struct kiln_store_place *ret_place);
void kiln_store_place_close(struct kiln_store_place *place);

/*
 * Calls the server; `query` is name, value, name, value, ..., NULL (a NULL value: left out).  The
 * body of its answer is appended to `out`.  Prints what went wrong and returns an exit code.
 */
KILN_CHECK int kiln_store_ask(struct kiln_store_place *place, const char *method, const char *path,
                              const char *const *query, struct kiln_buf *out);

/* `kiln store salvage`: store_salvage.c. */
KILN_CHECK int kiln_store_run_salvage(struct kiln_cli *cli);

/* ---- answers for people: store_report.c ---- */

/* Appends what the JSON of a check, or of stats, says; an exit code. */
KILN_CHECK int kiln_store_print_check(struct kiln_cli *cli, struct kiln_str json,
                                      uint64_t *ret_damaged);
KILN_CHECK int kiln_store_print_stats(struct kiln_cli *cli, struct kiln_str json);
KILN_CHECK int kiln_store_print_salvage(struct kiln_cli *cli, struct kiln_str json);
/* The number that is the only member of an object; 0 where there is none. */
uint64_t kiln_store_read_number(struct kiln_str json, const char *name);

#endif /* KILN_CLI_STORE_H */
