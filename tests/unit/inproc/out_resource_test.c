/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "inproc/out/resource.h"
#include "test.h"

static const char *const (*variables)[2];

static const char *variable(const char *name)
{
    for (uint32_t i = 0; variables[i][0]; i++)
        if (strcmp(variables[i][0], name) == 0)
            return variables[i][1];
    return NULL;
}

static void check(const struct kiln_in_resource *resource, const char *key, const char *value)
{
    CHECK_STR(kiln_in_resource_get(resource, key), value);
}

TEST(out_resource, what_is_stated_counts_more_than_variables_and_those_more_than_what_is_seen)
{
    static const struct kiln_attribute stated[] = {{"service.name", "shop"},
                                                   {"git.commit", "0af3"}};
    static const char *const set[][2] = {{"GIT_COMMIT", "ffff"},
                                         {"GIT_BRANCH", "main"},
                                         {"DEPLOYMENT_ENVIRONMENT", "prod"},
                                         {"DEPLOYMENT_ID", "d-17"},
                                         {"APP_VERSION", "1.2"},
                                         {"SERVICE_VERSION", "1.3"},
                                         {"RUNTIME_VERSION", "node 20"},
                                         {NULL, NULL}};
    struct kiln_in_resource resource;
    char pid[16];

    variables = set;
    CHECK_OK(kiln_in_resource_init(&resource, stated, 2, variable));
    check(&resource, "service.name", "shop");
    check(&resource, "git.commit", "0af3");
    check(&resource, "git.branch", "main");
    check(&resource, "deployment.environment", "prod");
    check(&resource, "deployment_id", "d-17");
    check(&resource, "service.version", "1.3");
    check(&resource, "runtime.version", "node 20");
    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    check(&resource, "process.pid", pid);
    check(&resource, "telemetry.sdk.name", "libkiln");
    CHECK(kiln_in_resource_get(&resource, "host.name").len > 0);
    CHECK_EQ(kiln_in_resource_get(&resource, "service.instance.id").len, 36);
    kiln_in_resource_done(&resource);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(out_resource, a_program_without_a_name_is_called_by_its_file)
{
    static const char *const none[][2] = {{NULL, NULL}};
    struct kiln_in_resource resource;
    struct kiln_builder *b;
    struct kiln_batch *batch;
    const struct kiln_attr *pid;

    variables = none;
    CHECK_OK(kiln_in_resource_init(&resource, NULL, 0, variable));
    check(&resource, "service.name", "unit_inproc_out_resource");
    CHECK_OK(kiln_builder_new(NULL, &b));
    kiln_builder_add_resource(b,
                              &(struct kiln_resource){.attrs = kiln_in_resource_set(&resource, b)});
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    pid = kiln_set_find(batch, batch->resources[0].attrs, KILN_STR("process.pid"));
    CHECK(pid && pid->value.kind == KILN_VALUE_INT && pid->value.i == getpid());
    kiln_batch_unref(batch);
    kiln_in_resource_done(&resource);
    CHECK_EQ(kiln_mem_live(), 0);
}
