/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/pulse.h"
#include "test.h"

#define S KILN_NS_PER_S

static void note(struct kiln_pulse *pulse, uint64_t at_s, double value)
{
    double values[KILN_PULSE_VALUES] = {value, 2 * value};

    kiln_pulse_note(pulse, at_s * S, values);
}

static struct kiln_pulse_rates ask(struct kiln_pulse *pulse, uint64_t at_s, double value)
{
    double values[KILN_PULSE_VALUES] = {value, 2 * value};
    struct kiln_pulse_rates rates;

    kiln_pulse_rates(pulse, at_s * S, values, &rates);
    return rates;
}

TEST(pulse, nothing_was_noted_and_nothing_is_fast)
{
    struct kiln_pulse pulse;

    kiln_pulse_init(&pulse);
    CHECK(ask(&pulse, 100, 50).per_second[0] == 0);
    CHECK(ask(&pulse, 100, 50).grown[0] == 0);
    kiln_pulse_done(&pulse);
}

TEST(pulse, growth_is_since_the_first_note_and_the_rate_of_the_last_minute)
{
    struct kiln_pulse pulse;

    kiln_pulse_init(&pulse);
    for (uint64_t s = 1000; s <= 2000; s += 5)
        note(&pulse, s, (double)s); /* one a second */
    note(&pulse, 2005, 2000 + 5 * 11);
    CHECK(ask(&pulse, 2000, 2000).per_second[0] == 1);
    CHECK(ask(&pulse, 2000, 2000).per_second[1] == 2);
    CHECK(ask(&pulse, 2005, 2055).per_second[0] == (2055.0 - 1945) / 60);
    CHECK(ask(&pulse, 2005, 2055).grown[0] == 1055);
    kiln_pulse_done(&pulse);
}

TEST(pulse, what_came_before_the_first_note_is_not_counted)
{
    struct kiln_pulse pulse;

    kiln_pulse_init(&pulse);
    note(&pulse, 10, 1000000); /* a log that was replayed */
    CHECK(ask(&pulse, 10, 1000000).per_second[0] == 0);
    CHECK(ask(&pulse, 12, 1000010).per_second[0] == 5);
    CHECK(ask(&pulse, 12, 1000010).grown[0] == 10);
    kiln_pulse_done(&pulse);
}

TEST(pulse, a_moment_is_too_short_for_a_rate_and_a_counter_never_shrinks)
{
    struct kiln_pulse pulse;

    kiln_pulse_init(&pulse);
    note(&pulse, 10, 100);
    CHECK(ask(&pulse, 10, 200).per_second[0] == 0);
    CHECK(ask(&pulse, 9, 200).per_second[0] == 0);
    CHECK(ask(&pulse, 20, 50).per_second[0] == 0);
    CHECK(ask(&pulse, 20, 50).grown[0] == 0);
    kiln_pulse_done(&pulse);
}

TEST(pulse, a_note_is_due_every_five_seconds)
{
    struct kiln_pulse pulse;

    kiln_pulse_init(&pulse);
    CHECK(kiln_pulse_is_due(&pulse, 0));
    note(&pulse, 10, 1);
    CHECK(!kiln_pulse_is_due(&pulse, 10 * S));
    CHECK(!kiln_pulse_is_due(&pulse, 15 * S - 1));
    CHECK(kiln_pulse_is_due(&pulse, 15 * S));
    kiln_pulse_done(&pulse);
}
