/* SPDX-License-Identifier: Apache-2.0 */
#include "traffic.h"

#include <errno.h>

int traffic_append(struct traffic *t, struct kiln_batch *batch)
{
    int code;

    do {
        code = kit_append_to(&t->kit, "anonymous", batch).code;
    } while (code == -EAGAIN);
    return code;
}

void *traffic_cut(void *context)
{
    struct traffic *t = context;

    while (atomic_load(&t->running)) {
        EXPECT(t, kiln_store_flush(t->kit.engine, NULL) == 0);
        EXPECT(t, kiln_store_compact(t->kit.engine, true, NULL) == 0);
    }
    return NULL;
}
