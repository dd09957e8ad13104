/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_engine.h"
#include "query/query.h"
#include "test.h"

static const struct kiln_query_tenant tenants[] = {
    {"busy", {.time_ms = 1000, .range_ns = 500}},
    {"rich", {.time_ms = 90000, .bytes = 7000, .nodes_max = 9}},
};

static struct kiln_query_limits limits_of(const char *names)
{
    struct kiln_fake fake;
    struct kiln_querier *querier;
    struct kiln_query_limits limits;
    struct kiln_querier_opts opts = {.engine = &fake.engine,
                                     .limits = {.time_ms = 5000, .memory_bytes = 300},
                                     .tenants = tenants,
                                     .n_tenants = KILN_ARRAY_LEN(tenants)};

    kiln_fake_init(&fake);
    CHECK_OK(kiln_querier_new(&opts, &querier));
    limits = kiln_querier_limits_of(querier, kiln_str_of(names));
    kiln_querier_free(querier);
    return limits;
}

TEST(limits, a_tenant_without_its_own_has_those_of_all)
{
    struct kiln_query_limits l = limits_of("other");

    CHECK_EQ(l.time_ms, 5000);
    CHECK_EQ(l.bytes, (uint64_t)16 << 30);
    CHECK_EQ(l.memory_bytes, 300);
    CHECK_EQ(l.range_ns, 0);
    CHECK_EQ(l.nodes_max, 1048576);
}

TEST(limits, a_tenant_may_have_less_or_more)
{
    struct kiln_query_limits busy = limits_of("busy"), rich = limits_of("rich");

    CHECK_EQ(busy.time_ms, 1000);
    CHECK_EQ(busy.range_ns, 500);
    CHECK_EQ(busy.memory_bytes, 300);
    CHECK_EQ(rich.time_ms, 90000);
    CHECK_EQ(rich.bytes, 7000);
    CHECK_EQ(rich.nodes_max, 9);
}

TEST(limits, a_question_about_several_has_the_least_of_each)
{
    struct kiln_query_limits l = limits_of("busy|other|rich");

    CHECK_EQ(l.time_ms, 1000);
    CHECK_EQ(l.bytes, 7000);
    CHECK_EQ(l.range_ns, 500);
    CHECK_EQ(l.nodes_max, 9);
}
