/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/pipeline.h"

void kiln_delivery_end(struct kiln_delivery *delivery, const struct kiln_outcome *outcome)
{
    kiln_batch_unref(delivery->batch);
    delivery->batch = NULL;
    if (delivery->pool)
        kiln_pool_give(delivery->pool, delivery->charged);
    delivery->charged = 0;
    delivery->done(delivery, outcome);
}
