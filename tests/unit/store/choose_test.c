/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/err.h"
#include "store/choose.h"
#include "test.h"

#define CPU "process_cpu:cpu:nanoseconds:cpu:nanoseconds"

static const char key[] = "checkout\0" CPU "\0host.name\0web-1\0";

/* Whether the series above is chosen by words "name=value" each; -1 where one is refused. */
static int chosen(const char *const *words)
{
    struct kiln_choice choice;
    struct kiln_series series;
    int r = 1;

    kiln_choice_init(&choice);
    CHECK_OK(kiln_series_parse((struct kiln_str){key, sizeof(key) - 1}, &series));
    for (; r == 1 && *words; words++) {
        struct kiln_str value = kiln_str_of(*words);
        struct kiln_str name = kiln_str_cut(&value, '=');

        r = kiln_choice_add(&choice, name, value, NULL);
    }
    if (r == 1 && kiln_choice_end(&choice, NULL) < 0)
        r = -1;
    if (r == 1)
        r = kiln_series_match(&series, choice.selection.matchers, choice.selection.n_matchers);
    kiln_choice_done(&choice);
    return r < 0 ? -1 : r;
}

#define CHOSEN(...) chosen((const char *const[]){__VA_ARGS__, NULL})

TEST(choose, a_service_is_named_whole)
{
    CHECK_EQ(CHOSEN("service=checkout"), 1);
    CHECK_EQ(CHOSEN("service=check"), 0);
}

TEST(choose, a_type_is_named_in_every_way_people_do)
{
    CHECK_EQ(CHOSEN("type=cpu"), 1);
    CHECK_EQ(CHOSEN("type=cpu:nanoseconds"), 1);
    CHECK_EQ(CHOSEN("type=process_cpu:cpu:nanoseconds"), 1);
    CHECK_EQ(CHOSEN("type=" CPU), 1);
    CHECK_EQ(CHOSEN("type=cp"), 0);
    CHECK_EQ(CHOSEN("type=c.u"), 0);
    CHECK_EQ(CHOSEN("type=cpu:bytes"), 0);
    CHECK_EQ(CHOSEN("type="), -1);
    CHECK_EQ(CHOSEN("type=a:b:c:d"), -1);
}

TEST(choose, conditions_have_four_signs)
{
    CHECK_EQ(CHOSEN("match=host.name=web-1"), 1);
    CHECK_EQ(CHOSEN("match=host.name=web"), 0);
    CHECK_EQ(CHOSEN("match=host.name!=web"), 1);
    CHECK_EQ(CHOSEN("match=host.name=~web-[0-9]"), 1);
    CHECK_EQ(CHOSEN("match=host.name=~web"), 0);
    CHECK_EQ(CHOSEN("match=host.name!~web.*"), 0);
    CHECK_EQ(CHOSEN("match=other="), 1);
    CHECK_EQ(CHOSEN("match=other!="), 0);
    CHECK_EQ(CHOSEN("match=host.name"), -1);
    CHECK_EQ(CHOSEN("match=host.name!web"), -1);
    CHECK_EQ(CHOSEN("match==web"), -1);
    CHECK_EQ(CHOSEN("match=host.name=~("), -1);
    CHECK_EQ(CHOSEN("service=checkout", "type=cpu", "match=host.name=web-1"), 1);
}

TEST(choose, times_bound_the_selection)
{
    struct kiln_choice choice;

    kiln_choice_init(&choice);
    CHECK_EQ(kiln_choice_add(&choice, KILN_STR("from"), KILN_STR("1000"), NULL), 1);
    CHECK_OK(kiln_choice_end(&choice, NULL));
    CHECK_EQ(choice.selection.start_ns, 1000 * KILN_NS_PER_S);
    CHECK(choice.selection.end_ns == UINT64_MAX);
    CHECK_EQ(kiln_choice_add(&choice, KILN_STR("to"), KILN_STR("999"), NULL), 1);
    CHECK(kiln_choice_end(&choice, NULL) < 0);
    CHECK(kiln_choice_add(&choice, KILN_STR("to"), KILN_STR("soon"), NULL) < 0);
    CHECK_EQ(kiln_choice_add(&choice, KILN_STR("until"), KILN_STR("999"), NULL), 0);
    kiln_choice_done(&choice);
}

TEST(choose, too_many_conditions_are_refused)
{
    struct kiln_choice choice;
    int r = 1;

    kiln_choice_init(&choice);
    for (int i = 0; r == 1; i++) {
        CHECK(i <= KILN_CHOICE_MAX);
        r = kiln_choice_add(&choice, KILN_STR("match"), KILN_STR("a=~b"), NULL);
    }
    CHECK_EQ(r, KILN_E_LIMIT);
    kiln_choice_done(&choice);
}
