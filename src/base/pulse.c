/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pulse.h"

#include <string.h>

#include "base/clock.h"

void kiln_pulse_init(struct kiln_pulse *pulse)
{
    *pulse = (struct kiln_pulse){0};
    pthread_mutex_init(&pulse->lock, NULL);
}

void kiln_pulse_done(struct kiln_pulse *pulse)
{
    pthread_mutex_destroy(&pulse->lock);
}

bool kiln_pulse_is_due(struct kiln_pulse *pulse, uint64_t now_ns)
{
    bool due;

    pthread_mutex_lock(&pulse->lock);
    due = pulse->n == 0 ||
          now_ns >= pulse->beats[(pulse->n - 1) % KILN_PULSE_BEATS].at_ns + KILN_PULSE_EVERY_NS;
    pthread_mutex_unlock(&pulse->lock);
    return due;
}

void kiln_pulse_note(struct kiln_pulse *pulse, uint64_t now_ns,
                     const double values[KILN_PULSE_VALUES])
{
    struct kiln_beat beat = {.at_ns = now_ns};

    memcpy(beat.values, values, sizeof(beat.values));
    pthread_mutex_lock(&pulse->lock);
    if (pulse->n == 0)
        pulse->first = beat;
    pulse->beats[pulse->n++ % KILN_PULSE_BEATS] = beat;
    pthread_mutex_unlock(&pulse->lock);
}

void kiln_pulse_rates(struct kiln_pulse *pulse, uint64_t now_ns,
                      const double values[KILN_PULSE_VALUES], struct kiln_pulse_rates *ret_rates)
{
    struct kiln_pulse_rates rates = {0};
    struct kiln_beat first, oldest;
    double seconds;

    pthread_mutex_lock(&pulse->lock);
    first = pulse->first;
    oldest = pulse->beats[pulse->n < KILN_PULSE_BEATS ? 0 : pulse->n % KILN_PULSE_BEATS];
    if (pulse->n == 0)
        now_ns = 0;
    pthread_mutex_unlock(&pulse->lock);
    seconds = now_ns > oldest.at_ns ? (double)(now_ns - oldest.at_ns) / (double)KILN_NS_PER_S : 0;
    for (int i = 0; now_ns && i < KILN_PULSE_VALUES; i++) {
        /* A counter that begins anew (a profiler that was stopped) has grown by nothing. */
        rates.grown[i] = values[i] > first.values[i] ? values[i] - first.values[i] : 0;
        if (seconds >= 1 && values[i] > oldest.values[i])
            rates.per_second[i] = (values[i] - oldest.values[i]) / seconds;
    }
    *ret_rates = rates;
}
