/* SPDX-License-Identifier: Apache-2.0 */
#include "host_keeper.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "test.h"

static void keep(struct kiln_consumer *consumer, struct kiln_delivery *delivery)
{
    struct kiln_kept *keeper = (struct kiln_kept *)consumer;
    struct kiln_outcome outcome = {.code = keeper->code};

    pthread_mutex_lock(&keeper->lock);
    if (keeper->n < 256)
        keeper->batches[keeper->n++] = kiln_batch_ref(delivery->batch);
    pthread_mutex_unlock(&keeper->lock);
    kiln_delivery_end(delivery, &outcome);
}

struct kiln_kept kiln_kept = {.consumer.consume = keep, .lock = PTHREAD_MUTEX_INITIALIZER};

void kiln_kept_forget(void)
{
    while (kiln_kept.n)
        kiln_batch_unref(kiln_kept.batches[--kiln_kept.n]);
    kiln_kept.code = 0;
}

struct kiln_host *kiln_kept_start(struct kiln_host_opts opts)
{
    struct kiln_err err = {0};
    struct kiln_host *host;
    int r;

    kiln_kept_forget();
    opts.consumer = &kiln_kept.consumer;
    opts.names_program = getenv("KILN");
    opts.no_names = !opts.names_program;
    opts.every_ns = opts.every_ns ? opts.every_ns : 300 * KILN_NS_PER_MS;
    opts.hz = opts.hz ? opts.hz : 199;
    r = kiln_host_start(&opts, &host, &err);
    if (r == -EPERM || r == -ENOSYS || r == -EOPNOTSUPP || r == -EACCES) {
        printf("skipped: %s\n", err.text);
        exit(77);
    }
    if (r < 0)
        print_error("%s\n", err.text);
    CHECK_OK(r);
    return host;
}
