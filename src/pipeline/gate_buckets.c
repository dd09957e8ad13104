/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bucket fills with bytes_per_s up to its burst.  It is made when a tenant is first seen; past
 * TENANTS_MAX all new ones share one, so that made-up tenants cost no memory.
 */
#include <errno.h>
#include <math.h>
#include <pthread.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "pipeline/gate_int.h"

#define TENANTS_MAX 4096u
#define CHAINS      1024u /* a power of two */

struct bucket {
    struct bucket *next;
    double level; /* bytes; below zero: a debt */
    uint64_t filled_ns;
    char tenant[KILN_TENANT_MAX + 1];
};

struct kiln_buckets {
    pthread_mutex_t lock;
    double bytes_per_s, burst;
    uint32_t n;
    struct bucket shared;
    struct bucket *chains[CHAINS];
};

int kiln_buckets_new(uint64_t bytes_per_s, uint64_t burst_bytes, struct kiln_buckets **ret_buckets)
{
    struct kiln_buckets *b = kiln_calloc(1, sizeof(*b));

    if (!b)
        return -ENOMEM;
    pthread_mutex_init(&b->lock, NULL);
    b->bytes_per_s = (double)bytes_per_s;
    b->burst = (double)burst_bytes;
    b->shared.level = b->burst;
    b->shared.filled_ns = kiln_clock_mono_ns();
    *ret_buckets = b;
    return 0;
}

void kiln_buckets_free(struct kiln_buckets *buckets)
{
    if (!buckets)
        return;
    for (size_t i = 0; i < CHAINS; i++) {
        while (buckets->chains[i]) {
            struct bucket *gone = buckets->chains[i];

            buckets->chains[i] = gone->next;
            kiln_free(gone);
        }
    }
    pthread_mutex_destroy(&buckets->lock);
    kiln_free(buckets);
}

static struct bucket *find(struct kiln_buckets *b, const char *tenant)
{
    size_t len = strlen(tenant);
    struct bucket **chain = &b->chains[kiln_hash(tenant, len) & (CHAINS - 1)];
    struct bucket *bucket = *chain;

    while (bucket && strcmp(bucket->tenant, tenant) != 0)
        bucket = bucket->next;
    if (bucket)
        return bucket;
    if (b->n >= TENANTS_MAX || len > KILN_TENANT_MAX)
        return &b->shared;
    bucket = kiln_calloc(1, sizeof(*bucket));
    if (!bucket)
        return &b->shared;
    memcpy(bucket->tenant, tenant, len);
    bucket->level = b->burst;
    bucket->filled_ns = kiln_clock_mono_ns();
    bucket->next = *chain;
    *chain = bucket;
    b->n++;
    return bucket;
}

static void fill(const struct kiln_buckets *b, struct bucket *bucket)
{
    uint64_t now = kiln_clock_mono_ns();
    double passed = (double)(now - bucket->filled_ns) / (double)KILN_NS_PER_S;

    bucket->level = fmin(b->burst, bucket->level + passed * b->bytes_per_s);
    bucket->filled_ns = now;
}

uint32_t kiln_buckets_take(struct kiln_buckets *buckets, const char *tenant, uint64_t bytes)
{
    struct bucket *bucket;
    double wait_s = 0;

    pthread_mutex_lock(&buckets->lock);
    bucket = find(buckets, tenant);
    fill(buckets, bucket);
    if (bucket->level > 0)
        bucket->level -= (double)bytes;
    else
        wait_s = fmax(1, ceil(-bucket->level / buckets->bytes_per_s));
    pthread_mutex_unlock(&buckets->lock);
    return wait_s < UINT32_MAX ? (uint32_t)wait_s : UINT32_MAX;
}

void kiln_buckets_charge(struct kiln_buckets *buckets, const char *tenant, uint64_t bytes)
{
    struct bucket *bucket;

    pthread_mutex_lock(&buckets->lock);
    bucket = find(buckets, tenant);
    fill(buckets, bucket);
    bucket->level -= (double)bytes;
    pthread_mutex_unlock(&buckets->lock);
}
