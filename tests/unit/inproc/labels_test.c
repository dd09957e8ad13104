/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of labels: equal ones are one, and limits hold. */
#include <errno.h>
#include <kiln.h>

#include "inproc/labels.h"
#include "inproc/thread/line.h"
#include "inproc/thread/thread.h"
#include "test.h"

static uint16_t with(uint16_t set, const char *key, const char *value)
{
    int r = kiln_in_labels_with(set, key, value);

    CHECK(r > 0);
    return (uint16_t)r;
}

TEST(labels, equal_sets_are_one_whatever_their_order)
{
    uint16_t ab = with(with(0, "a", "1"), "b", "2"), ba = with(with(0, "b", "2"), "a", "1");
    struct kiln_in_label labels[KILN_IN_LABELS_MAX];

    CHECK_EQ(ab, ba);
    CHECK_EQ(kiln_in_labels_get(ab, labels), 2);
    CHECK_TEXT(labels[0].key, "a");
    CHECK_TEXT(labels[1].value, "2");
    CHECK_NE(ab, with(ab, "b", "3"));
    CHECK_EQ(kiln_in_labels_without(ab, "b"), with(0, "a", "1"));
    CHECK_EQ(kiln_in_labels_without(ab, NULL), 0);
    CHECK_EQ(kiln_in_labels_without(ab, "c"), ab);
}

TEST(labels, have_limits)
{
    char key[] = "a", large[300];
    uint16_t set = 0;

    memset(large, 'x', sizeof(large) - 1);
    large[sizeof(large) - 1] = '\0';
    CHECK_EQ(kiln_in_labels_with(0, large, "v"), -EINVAL);
    CHECK_EQ(kiln_in_labels_with(0, "", "v"), -EINVAL);
    CHECK_EQ(kiln_in_labels_with(0, "k", NULL), -EINVAL);
    for (unsigned i = 0; i < KILN_IN_LABELS_MAX; i++, key[0]++)
        set = with(set, key, "v");
    CHECK_EQ(kiln_in_labels_with(set, key, "v"), -ENOSPC);
    CHECK(kiln_in_labels_with(set, "a", "w") > 0);
}

TEST(labels, too_many_sets_are_refused_and_old_ones_stay)
{
    uint16_t known = with(0, "known", "set");
    char value[16];
    int r = 1;

    for (unsigned i = 0; i <= KILN_IN_LABEL_SETS && r > 0; i++) {
        snprintf(value, sizeof(value), "%u", i);
        r = kiln_in_labels_with(0, "many", value);
    }
    CHECK_EQ(r, -ENOSPC);
    CHECK_EQ(with(0, "known", "set"), known);
}

TEST(labels, that_are_none_are_refused_where_nobody_samples_too)
{
    kiln_in_on = KILN_IN_OFF;
    CHECK_EQ(kiln_label_set("", "v"), -EINVAL);
    CHECK_EQ(kiln_label_set("k", NULL), -EINVAL);
    CHECK_OK(kiln_label_set("k", "v"));
}

TEST(labels, of_a_thread_are_in_its_records)
{
    struct kiln_in_record record;

    CHECK_OK(kiln_in_threads_init(1));
    kiln_in_on = KILN_IN_ON;
    CHECK_OK(kiln_label_set("known", "set"));
    kiln_in_record_begin(&record, KILN_IN_CPU);
    CHECK_EQ(record.labels, with(0, "known", "set"));
    kiln_label_clear("known");
    kiln_in_record_begin(&record, KILN_IN_CPU);
    CHECK_EQ(record.labels, 0);
    kiln_in_on = KILN_IN_OFF;
}
