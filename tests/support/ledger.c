/* SPDX-License-Identifier: Apache-2.0 */
#include "ledger.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/builder.h"

enum { SAMPLES = 3, SELECT_BYTES = 256 << 20 };

static const char *const tenants[LEDGER_TENANTS] = {"anonymous", "team-a"};

void kiln_ledger_init(struct kiln_ledger *ledger, uint64_t time_ns)
{
    memset(ledger, 0, sizeof(*ledger));
    ledger->time_ns = time_ns;
    pthread_mutex_init(&ledger->lock, NULL);
}

void kiln_ledger_done(struct kiln_ledger *ledger)
{
    pthread_mutex_destroy(&ledger->lock);
}

/* ---- profiles ---- */

static uint64_t time_of(const struct kiln_ledger *ledger, uint32_t id)
{
    return ledger->time_ns - (uint64_t)(id % 3600) * 1000000000u;
}

static int64_t value_of(uint32_t id, uint32_t sample)
{
    return (int64_t)id * 10 + sample + 1;
}

static uint32_t frame(struct kiln_builder *b, const char *format, uint32_t number)
{
    char name[64];
    struct kiln_function function = {0};
    struct kiln_line line = {0};
    struct kiln_location location = {0};
    int n = snprintf(name, sizeof(name), format, number);

    function.name = kiln_builder_string(b, (struct kiln_str){name, (size_t)n});
    line.function = kiln_builder_function(b, &function);
    return kiln_builder_location(b, &location, &line, 1);
}

static void add_samples(const struct kiln_ledger *ledger, struct kiln_builder *b, uint32_t profile,
                        uint32_t id)
{
    uint64_t time = time_of(ledger, id);

    for (uint32_t i = 0; i < SAMPLES; i++) {
        uint32_t frames[] = {frame(b, "leaf_%u", i), frame(b, "work_%u", id % 50),
                             frame(b, "main", 0)};
        int64_t value = value_of(id, i);

        kiln_builder_add_sample(b, profile, kiln_builder_stack(b, frames, 3), 0, 0, &value,
                                id % 5 == 4 ? &time : NULL, 1);
    }
}

static void name_service(uint32_t service, char ret_name[32])
{
    snprintf(ret_name, 32, "service-%u", service);
}

static void add_profile(const struct kiln_ledger *ledger, struct kiln_builder *b, uint32_t id)
{
    char service[32];
    uint32_t key = kiln_builder_string(b, KILN_STR("test.id"));
    uint32_t attr = kiln_builder_attr(b, key, kiln_value_int(id), 0);
    struct kiln_resource resource = {0};
    struct kiln_scope scope = {0};
    struct kiln_profile profile = {
        .sample_type = {kiln_builder_string(b, id % 2 ? KILN_STR("cpu") : KILN_STR("alloc_space")),
                        kiln_builder_string(b,
                                            id % 2 ? KILN_STR("nanoseconds") : KILN_STR("bytes"))},
        .time_ns = time_of(ledger, id),
        .duration_ns = 1000000000,
        .attrs = kiln_builder_set(b, &attr, 1, NULL),
    };

    name_service(id % LEDGER_SERVICES, service);
    attr = kiln_builder_text_attr(b, KILN_STR("service.name"), kiln_str_of(service));
    resource.attrs = kiln_builder_set(b, &attr, 1, NULL);
    kiln_builder_add_resource(b, &resource);
    kiln_builder_add_scope(b, &scope);
    add_samples(ledger, b, kiln_builder_add_profile(b, &profile), id);
}

static int make_batch(const struct kiln_ledger *ledger, uint32_t first, uint32_t n,
                      struct kiln_batch **ret_batch)
{
    struct kiln_builder *b;
    int r = kiln_builder_new(NULL, &b);

    if (r < 0)
        return r;
    for (uint32_t i = 0; i < n; i++)
        add_profile(ledger, b, first + i);
    return kiln_builder_finish(b, ret_batch, NULL);
}

/* ---- append ---- */

struct waiting {
    struct kiln_append append;
    pthread_mutex_t lock;
    pthread_cond_t told;
    bool done;
    int code;
};

static void answer(struct kiln_append *append, int code)
{
    struct waiting *waiting = (struct waiting *)(void *)append;

    pthread_mutex_lock(&waiting->lock);
    waiting->code = code;
    waiting->done = true;
    pthread_cond_signal(&waiting->told);
    pthread_mutex_unlock(&waiting->lock);
}

static int append_batch(struct kiln_engine *engine, struct kiln_batch *batch, const char *tenant,
                        uint64_t now_ns)
{
    struct waiting waiting = {
        .append = {.batch = batch, .tenant = tenant, .received_ns = now_ns, .done = answer}};

    pthread_mutex_init(&waiting.lock, NULL);
    pthread_cond_init(&waiting.told, NULL);
    engine->ops->append(engine, &waiting.append);
    pthread_mutex_lock(&waiting.lock);
    while (!waiting.done)
        pthread_cond_wait(&waiting.told, &waiting.lock);
    pthread_mutex_unlock(&waiting.lock);
    pthread_cond_destroy(&waiting.told);
    pthread_mutex_destroy(&waiting.lock);
    return waiting.code == 0 && waiting.append.rejected ? -ECANCELED : waiting.code;
}

static const char *tenant_of(uint32_t id)
{
    return tenants[id / 8 % LEDGER_TENANTS];
}

static int append_profiles(struct kiln_ledger *ledger, struct kiln_engine *engine, uint32_t first,
                           uint32_t n)
{
    struct kiln_batch *batch = NULL;
    int r = make_batch(ledger, first, n, &batch);

    if (r == 0)
        r = append_batch(engine, batch, tenant_of(first), ledger->time_ns);
    kiln_batch_unref(batch);
    pthread_mutex_lock(&ledger->lock);
    memset(ledger->states + first, r == 0 ? LEDGER_ACKNOWLEDGED : LEDGER_FAILED, n);
    if (r < 0)
        ledger->last_code = r;
    pthread_mutex_unlock(&ledger->lock);
    return r;
}

int kiln_ledger_append(struct kiln_ledger *ledger, struct kiln_engine *engine, uint32_t n)
{
    uint32_t first;

    pthread_mutex_lock(&ledger->lock);
    first = ledger->n;
    /* A batch has one tenant: it ends where the next one's ids begin. */
    if (n > 8 - first % 8)
        n = 8 - first % 8;
    if (first + n <= LEDGER_MAX)
        ledger->n += n;
    else
        n = 0;
    pthread_mutex_unlock(&ledger->lock);
    return n ? append_profiles(ledger, engine, first, n) : -ENOBUFS;
}

int kiln_ledger_resend(struct kiln_ledger *ledger, struct kiln_engine *engine, uint32_t id)
{
    return append_profiles(ledger, engine, id, 1);
}

int kiln_ledger_delete(struct kiln_ledger *ledger, struct kiln_engine *engine, uint32_t tenant,
                       uint32_t service)
{
    char name[32];
    uint64_t n = 0;
    int r;

    name_service(service, name);
    r = engine->ops->delete_service(engine, kiln_str_of(tenants[tenant]), kiln_str_of(name), &n,
                                    NULL);
    for (uint32_t id = 0; id < ledger->n; id++)
        if (ledger->states[id] == LEDGER_ACKNOWLEDGED && id % LEDGER_SERVICES == service &&
            tenant_of(id) == tenants[tenant])
            ledger->states[id] = r == 0 ? LEDGER_DELETED : LEDGER_FAILED;
    return r;
}

/* ---- check ---- */

static bool is_as_given(const struct kiln_ledger *ledger, const struct kiln_batch *batch,
                        const struct kiln_profile *profile, uint32_t id)
{
    int64_t sum = 0;
    int64_t expected = 0;

    for (uint32_t i = 0; i < SAMPLES; i++)
        expected += value_of(id, i);
    for (uint32_t i = 0; i < profile->n_samples; i++) {
        const struct kiln_sample *sample = &batch->samples[profile->first_sample + i];

        sum += kiln_sample_total(batch, sample);
        if (batch->dict.stacks[sample->stack].n != 3)
            return false;
    }
    return profile->n_samples == SAMPLES && sum == expected &&
           profile->time_ns == time_of(ledger, id);
}

static void see_batch(struct kiln_ledger *ledger, const struct kiln_batch *batch,
                      struct kiln_ledger_sum *sum)
{
    for (uint32_t i = 0; i < batch->n_profiles; i++) {
        const struct kiln_profile *profile = &batch->profiles[i];
        const struct kiln_attr *attr = kiln_set_find(batch, profile->attrs, KILN_STR("test.id"));
        uint32_t id;

        if (!attr || attr->value.kind != KILN_VALUE_INT || attr->value.i < 0 ||
            attr->value.i >= ledger->n) {
            sum->wrong++;
            continue;
        }
        id = (uint32_t)attr->value.i;
        sum->wrong += !is_as_given(ledger, batch, profile, id);
        if (ledger->times[id] < UINT8_MAX)
            ledger->times[id]++;
    }
}

static void count(const struct kiln_ledger *ledger, struct kiln_ledger_sum *sum)
{
    for (uint32_t id = 0; id < ledger->n; id++) {
        bool expected = ledger->states[id] == LEDGER_ACKNOWLEDGED;

        sum->acknowledged += expected;
        sum->present += ledger->times[id] > 0;
        sum->twice += ledger->times[id] > 1;
        sum->undead += ledger->states[id] == LEDGER_DELETED && ledger->times[id];
        if (expected && ledger->times[id] == 0 && sum->lost++ == 0)
            sum->first_lost = id;
    }
}

int kiln_ledger_check(struct kiln_ledger *ledger, struct kiln_engine *engine,
                      struct kiln_ledger_sum *ret_sum, struct kiln_err *err)
{
    memset(ret_sum, 0, sizeof(*ret_sum));
    memset(ledger->times, 0, sizeof(ledger->times));
    for (int i = 0; i < LEDGER_TENANTS; i++) {
        struct kiln_selection all = {.tenant = kiln_str_of(tenants[i])};
        struct kiln_batch *batch = NULL;
        int r = engine->ops->select(engine, &all, SELECT_BYTES, &batch, err);

        if (r < 0)
            return r;
        see_batch(ledger, batch, ret_sum);
        kiln_batch_unref(batch);
    }
    count(ledger, ret_sum);
    return 0;
}

void kiln_ledger_forgive(struct kiln_ledger *ledger)
{
    for (uint32_t id = 0; id < ledger->n; id++)
        if (ledger->times[id] == 0)
            ledger->states[id] = LEDGER_FAILED;
}
