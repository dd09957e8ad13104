/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/v1/services: what is in the store of each service (store/usage.h), and how fast it came.
 */
#include <errno.h>

#include "api/native_int.h"
#include "base/clock.h"
#include "store/usage.h"

#define LEAST_NS (60 * KILN_NS_PER_S)

struct service {
    const struct kiln_usage *rows; /* its types */
    uint32_t n;
    uint64_t bytes, profiles, min_ns, max_ns;
};

/* The rows of the service that begins at `at`. */
static struct service gather(const struct kiln_usage_list *list, uint32_t at)
{
    struct service s = {.rows = &list->rows[at], .min_ns = UINT64_MAX};

    for (; at < list->n && kiln_str_eq(list->rows[at].service, s.rows->service) &&
           kiln_str_eq(list->rows[at].tenant, s.rows->tenant);
         at++) {
        const struct kiln_usage *row = &list->rows[at];

        s.n++;
        s.bytes += row->bytes;
        s.profiles += row->profiles;
        s.min_ns = row->min_ns < s.min_ns ? row->min_ns : s.min_ns;
        s.max_ns = row->max_ns > s.max_ns ? row->max_ns : s.max_ns;
    }
    return s;
}

static void put_types(struct kiln_native_call *call, const struct service *s)
{
    kiln_json_put_name(&call->w, "types");
    kiln_json_put_array(&call->w);
    for (uint32_t i = 0; i < s->n; i++) {
        const struct kiln_usage *row = &s->rows[i];

        kiln_json_put_object(&call->w);
        kiln_native_put_text(call, "id", row->type);
        kiln_native_put_u64(call, "bytes", row->bytes);
        kiln_native_put_u64(call, "profiles", row->profiles);
        kiln_native_put_time(call, "oldest", row->min_ns);
        kiln_native_put_time(call, "newest", row->max_ns);
        kiln_json_end_object(&call->w);
    }
    kiln_json_end_array(&call->w);
}

/* Over the time it came in, or a minute: profiles that came all at once have no rate of their own.
 */
static double rate(uint64_t n, const struct service *s)
{
    uint64_t ns = s->max_ns - s->min_ns;

    return (double)n * 1e9 / (double)(ns > LEAST_NS ? ns : LEAST_NS);
}

static void put_service(struct kiln_native_call *call, const struct service *s)
{
    kiln_json_put_object(&call->w);
    kiln_native_put_text(call, "name", s->rows->service);
    if (call->api->multitenant)
        kiln_native_put_text(call, "tenant", s->rows->tenant);
    kiln_native_put_u64(call, "bytes", s->bytes);
    kiln_native_put_u64(call, "profiles", s->profiles);
    kiln_native_put_number(call, "profiles_per_second", rate(s->profiles, s));
    kiln_native_put_number(call, "bytes_per_second", rate(s->bytes, s));
    kiln_native_put_time(call, "oldest", s->min_ns);
    kiln_native_put_time(call, "newest", s->max_ns);
    put_types(call, s);
    kiln_json_end_object(&call->w);
}

/* One service by its name, or those whose names match. */
static bool is_wanted(const struct kiln_native_call *call, struct kiln_str name)
{
    if (call->args.said & KILN_NATIVE_BIT(SERVICE) && !kiln_str_eq(name, call->args.service))
        return false;
    return kiln_native_matches(call, name);
}

/* Raises *all by the services that are wanted, and lists them while there is room. */
static int put_tenant(struct kiln_native_call *call, struct kiln_str tenant, uint32_t *all)
{
    struct kiln_usage_list list;
    int r = kiln_usage_collect(call->api->engine, tenant, &list, &call->err);

    if (r < 0)
        return r;
    kiln_native_note_damaged(call, list.total.n_damaged);
    for (uint32_t i = 0; i < list.n;) {
        struct service s = gather(&list, i);

        if (is_wanted(call, s.rows->service) && (*all)++ < kiln_native_most(call, UINT32_MAX))
            put_service(call, &s);
        i += s.n;
    }
    kiln_usage_done(&list);
    return 0;
}

int kiln_native_run_services(struct kiln_native_call *call)
{
    struct kiln_str tenants = kiln_str_of(call->request->tenant);
    uint32_t all = 0;
    int r = 0;

    kiln_json_put_object(&call->w);
    kiln_json_put_name(&call->w, "services");
    kiln_json_put_array(&call->w);
    while (r == 0 && tenants.ptr)
        r = put_tenant(call, kiln_str_cut(&tenants, '|'), &all);
    kiln_json_end_array(&call->w);
    kiln_native_put_u64(call, "all", all);
    kiln_json_end_object(&call->w);
    kiln_buf_putc(&call->body, '\n');
    return r;
}
