/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/processors/matching.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "collector/processors/actions.h"
#include "drawn.h"
#include "test.h"

static struct kiln_batch *draw(void)
{
    static const struct kiln_drawn drawn[] = {
        {.resource = "service.name=pay,host=a",
         .scope = "lib",
         .stacks = "f 1 thread=gc-1,n=7\n"
                   "g 2 thread=main,n=7\n"},
        {.resource = "service.name=shop,host=b", .scope = "other", .stacks = "h 3 thread=gc-2\n"},
    };

    return kiln_test_batch(drawn, KILN_ARRAY_LEN(drawn));
}

/* Which samples get a new attribute: "1 2", by their values; or what is said. */
static const char *marked(const char *matching)
{
    static char text[512];
    struct kiln_actions actions = {0};
    struct kiln_batch *batch = draw();
    struct kiln_config *config;
    struct kiln_err err = {0};
    char yaml[512];

    text[0] = '\0';
    snprintf(yaml, sizeof(yaml), "{actions: [{key: x, value: y, action: insert}], %s}", matching);
    CHECK_OK(kiln_config_parse_plain(kiln_str_of(yaml), &config, &err));
    CHECK_OK(kiln_actions_read(kiln_node_get(kiln_config_root(config), "actions"), &actions, &err));
    if (kiln_matching_read(kiln_node_get(kiln_config_root(config), "include"),
                           kiln_node_get(kiln_config_root(config), "exclude"), &actions.only,
                           &err) < 0) {
        snprintf(text, sizeof(text), "%s", err.text);
    } else {
        CHECK_EQ(kiln_actions_on_samples(&actions, &batch, &err), 1);
        for (uint32_t i = 0; i < batch->n_samples; i++)
            if (kiln_set_text(batch, batch->samples[i].attrs, KILN_STR("x")).len)
                snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%lld",
                         text[0] ? " " : "",
                         (long long)kiln_sample_values(batch, &batch->samples[i])[0]);
    }
    kiln_batch_unref(batch);
    kiln_actions_done(&actions);
    kiln_config_free(config);
    CHECK_EQ(kiln_mem_live(), 0);
    return text;
}

TEST(matching, include_and_exclude_say_which_samples_are_changed)
{
    CHECK_TEXT(marked(""), "1 2 3");
    CHECK_TEXT(marked("include: {match_type: strict, services: [pay, none]}"), "1 2");
    CHECK_TEXT(marked("exclude: {match_type: strict, services: [pay]}"), "3");
    CHECK_TEXT(marked("include: {match_type: regexp, services: ['^s']}"), "3");
    CHECK_TEXT(marked("include: {match_type: strict, resources: [{key: host, value: b}]}"), "3");
    CHECK_TEXT(marked("include: {match_type: strict, libraries: [{name: lib}]}"), "1 2");
    CHECK_TEXT(marked("include: {match_type: strict, attributes: [{key: n}]}"), "1 2");
    CHECK_TEXT(marked("include: {match_type: strict, attributes: [{key: n, value: 7}, "
                      "{key: thread, value: main}]}"),
               "2");
    CHECK_TEXT(marked("include: {match_type: regexp, attributes: [{key: thread, value: ^gc-}]}, "
                      "exclude: {match_type: strict, services: [shop]}"),
               "1");
    CHECK_TEXT(marked("exclude: {match_type: regexp, attributes: [{key: none, value: x}]}"),
               "1 2 3");
    CHECK_TEXT(marked("include: {match_type: strict, services: ['a\"b\\c']}"), "");
}

TEST(matching, what_cannot_be_meant_is_said)
{
    CHECK_TEXT(marked("include: {services: [pay]}"), "match_type is strict or regexp");
    CHECK_TEXT(marked("include: {match_type: strict}"),
               "say services, resources, libraries or attributes, one of them at least");
    CHECK_TEXT(marked("include: {match_type: strict, attributes: [{value: 1}]}"),
               "this has no key");
    CHECK(strstr(marked("include: {match_type: strict, span_names: [a]}"), "unknown key"));
}
