/* SPDX-License-Identifier: Apache-2.0 */
/* A message of traces, metrics or logs, which the first byte of an input says, and the same twice.
 */
#ifndef KILN_FUZZ_OTLP_ITEMS_FUZZ_H
#define KILN_FUZZ_OTLP_ITEMS_FUZZ_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/receivers/otlp_int.h"

struct fuzz_message {
    enum kiln_signal signal;
    struct kiln_str once, twice; /* `once` is where `twice` begins, which is freed */
};

static inline bool fuzz_message_read(const uint8_t *data, size_t size, struct fuzz_message *ret)
{
    size_t n = size ? size - 1 : 0;
    char *copy = n && n <= 1 << 20 ? malloc(2 * n) : NULL;

    if (!copy)
        return false;
    memcpy(copy, data + 1, n);
    memcpy(copy + n, data + 1, n);
    *ret = (struct fuzz_message){.signal = (enum kiln_signal)(1 + data[0] % (KILN_SIGNALS - 1)),
                                 .once = {copy, n},
                                 .twice = {copy, 2 * n}};
    return true;
}

static inline void fuzz_message_free(struct fuzz_message *message)
{
    free((char *)(uintptr_t)message->twice.ptr);
}

#endif /* KILN_FUZZ_OTLP_ITEMS_FUZZ_H */
