/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environment - the variables that a command is started with: ours, and changes to them.
 *
 * Setting never needs a check: the first failure sticks in `error`.
 * Threads: one owner at a time.
 */
#ifndef KILN_CLI_ENVIRONMENT_H
#define KILN_CLI_ENVIRONMENT_H

#include <stdint.h>

#include "base/attr.h"

struct kiln_environment {
    char **items; /* "NAME=value", all of them ours; ends with NULL */
    uint32_t n;
    int error; /* 0 or -ENOMEM */
};

/* As this process has it. */
void kiln_environment_init(struct kiln_environment *env);
void kiln_environment_done(struct kiln_environment *env);

/* NULL: not set. */
const char *kiln_environment_get(const struct kiln_environment *env, const char *name);
/* `value` NULL: takes it out. */
void kiln_environment_set(struct kiln_environment *env, const char *name, const char *value);
void kiln_environment_set_u64(struct kiln_environment *env, const char *name, uint64_t value);
/* "value", or "value" + separator + what is there already. */
void kiln_environment_put_before(struct kiln_environment *env, const char *name, const char *value,
                                 char separator);

#endif /* KILN_CLI_ENVIRONMENT_H */
