/* SPDX-License-Identifier: Apache-2.0 */
#include "query/deployments.h"

#include "base/mem.h"
#include "fake_engine.h"
#include "test.h"

static const struct kiln_fake_series there[] = {
    {"cart|t|service.version|1.0|", 50, 900, 4},
    {"shop|t|", 1, 999, 9},
    {"shop|t|git.commit|aa|service.version|1.0|", 100, 200, 2},
    {"shop|u|git.commit|aa|service.version|1.0|", 90, 190, 1},
    {"shop|t|git.commit|bb|service.version|1.0|", 180, 300, 3},
    {"shop|t|git.commit|cc|service.version|2.0|", 290, 400, 5},
    {"web|t|deployment_id|d7|", 10, 20, 1},
    {"web|t|version|beta|", 30, 40, 1},
};

static const struct kiln_str tenant = {"anonymous", 9};

static struct kiln_deployments *found(const char *service, const struct kiln_deployment *told,
                                      uint32_t n_told)
{
    const struct kiln_deployments_query query = {
        .tenants = &tenant,
        .n_tenants = 1,
        .service = kiln_str_of(service),
        .told = told,
        .n_told = n_told,
    };
    struct kiln_deployments *list = NULL;
    struct kiln_fake fake;

    kiln_fake_init(&fake);
    fake.series = there;
    fake.n_series = KILN_ARRAY_LEN(there);
    CHECK_OK(kiln_deployments_find(&fake.engine, &query, &list, NULL));
    return list;
}

/* "id at-until" a line each; lives until the next call.  Frees the list. */
static const char *listed(struct kiln_deployments *list)
{
    static char text[1024];
    size_t len = 0;

    text[0] = 0;
    for (uint32_t i = 0; i < list->n; i++) {
        const struct kiln_deployment *d = &list->rows[i];

        len += (size_t)snprintf(text + len, sizeof(text) - len, "%.*s %llu-%llu%s\n",
                                KILN_STR_ARG(d->id), (unsigned long long)d->at_ns,
                                (unsigned long long)d->until_ns, d->told ? " told" : "");
    }
    kiln_deployments_free(list);
    return text;
}

/* "selector start-end", or the error. */
static const char *chosen(struct kiln_deployments *list, const char *service, const char *wanted)
{
    static char text[512];
    struct kiln_deployment_choice choice;
    struct kiln_err err = {0};
    int r = kiln_deployments_choose(list, kiln_str_of(service), kiln_str_of(wanted), &choice, &err);

    if (r < 0)
        snprintf(text, sizeof(text), "%s", err.text);
    else
        snprintf(text, sizeof(text), "%.*s %llu-%llu", KILN_STR_ARG(choice.selector),
                 (unsigned long long)choice.window.start_ns,
                 (unsigned long long)choice.window.end_ns);
    return text;
}

TEST(deployments, a_label_that_changes_is_a_deployment_from_its_first_profile_on)
{
    CHECK_TEXT(listed(found("shop", NULL, 0)), "shop@2.0@cc 290-0\n"
                                               "shop@1.0@bb 180-290\n"
                                               "shop@1.0@aa 90-180\n");
}

TEST(deployments, those_of_all_services_stand_newest_first)
{
    CHECK_TEXT(listed(found("", NULL, 0)), "shop@2.0@cc 290-0\n"
                                           "shop@1.0@bb 180-290\n"
                                           "shop@1.0@aa 90-180\n"
                                           "cart@1.0 50-0\n"
                                           "web@beta 30-0\n"
                                           "web@d7 10-30\n");
}

TEST(deployments, one_that_was_told_stands_for_one_that_was_found)
{
    static const struct kiln_deployment told[] = {
        {.id = {"t1", 2}, .service = {"shop", 4}, .version = {"2.0", 3}, .at_ns = 280},
        {.id = {"t2", 2},
         .service = {"shop", 4},
         .version = {"3.0", 3},
         .at_ns = 500,
         .name = {"big", 3}},
        {.id = {"t3", 2}, .service = {"other", 5}, .version = {"9", 1}, .at_ns = 600},
    };
    struct kiln_deployments *list = found("shop", told, 3);

    CHECK_TEXT(chosen(list, "shop", "big"), "{service_name=\"shop\"} 500-18446744073709551615");
    CHECK_TEXT(
        chosen(list, "", "t1"),
        "{service_name=\"shop\", \"service.version\"=\"2.0\", \"git.commit\"=\"cc\"} 290-401");
    CHECK_TEXT(listed(list), "t2 500-0 told\n"
                             "t1 280-500 told\n"
                             "shop@1.0@bb 180-280\n"
                             "shop@1.0@aa 90-180\n");
}

TEST(deployments, a_version_is_chosen_by_its_label_while_its_profiles_last)
{
    struct kiln_deployments *list = found("", NULL, 0);

    CHECK_TEXT(chosen(list, "shop", "1.0"),
               "{service_name=\"shop\", \"service.version\"=\"1.0\"} 90-301");
    CHECK_TEXT(
        chosen(list, "shop", "bb"),
        "{service_name=\"shop\", \"service.version\"=\"1.0\", \"git.commit\"=\"bb\"} 180-301");
    CHECK_TEXT(chosen(list, "", "d7"), "{service_name=\"web\", \"deployment_id\"=\"d7\"} 10-21");
    CHECK_TEXT(chosen(list, "web", "-1"), "{service_name=\"web\", \"version\"=\"beta\"} 30-41");
    CHECK_TEXT(chosen(list, "web", "-2"), "{service_name=\"web\", \"deployment_id\"=\"d7\"} 10-21");
    kiln_deployments_free(list);
}

TEST(deployments, one_that_is_not_there_or_not_clear_is_an_error_that_lists_them)
{
    struct kiln_deployments *list = found("", NULL, 0);

    CHECK_TEXT(chosen(list, "web", "gamma"), "no deployment is gamma; there are web@beta, web@d7");
    CHECK_TEXT(chosen(list, "web", "-3"), "no deployment is -3; there are web@beta, web@d7");
    CHECK_TEXT(chosen(list, "x", "1.0"), "no deployment is known of x");
    CHECK_TEXT(chosen(list, "", "1.0"),
               "1.0 is a deployment of shop and of cart: say which service");
    kiln_deployments_free(list);
}

TEST(deployments, one_ran_from_its_first_sign_to_its_last)
{
    struct kiln_deployments *list = found("web", NULL, 0);
    const struct kiln_deployment *beta = &list->rows[0];

    CHECK(kiln_deployment_ran(beta, 0, 0));
    CHECK(kiln_deployment_ran(beta, 40, 50));
    CHECK(!kiln_deployment_ran(beta, 41, 50));
    CHECK(!kiln_deployment_ran(beta, 0, 30));
    kiln_deployments_free(list);
}

TEST(deployments, no_memory_is_an_ordinary_error)
{
    static const struct kiln_deployment told[] = {
        {.id = {"t1", 2}, .service = {"shop", 4}, .version = {"2.0", 3}, .at_ns = 280},
        {.id = {"t2", 2}, .service = {"shop", 4}, .version = {"3.0", 3}, .at_ns = 500},
    };
    const struct kiln_deployments_query query = {
        .tenants = &tenant, .n_tenants = 1, .told = told, .n_told = 2};
    int64_t live = kiln_mem_live();
    struct kiln_fake fake;
    int r = -1;

    kiln_fake_init(&fake);
    fake.series = there;
    fake.n_series = KILN_ARRAY_LEN(there);
    for (uint64_t n = 1; r < 0; n++) {
        struct kiln_deployments *list = NULL;

        kiln_mem_fail_at(n);
        r = kiln_deployments_find(&fake.engine, &query, &list, NULL);
        kiln_mem_fail_at(0);
        kiln_deployments_free(list);
        CHECK_EQ(kiln_mem_live(), live);
        CHECK(n < 1000);
    }
}
