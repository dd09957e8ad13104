/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debug: says what comes by.
 *
 *   basic      how much, a line of the log for each delivery
 *   normal     and a line for each profile
 *   detailed   and everything, as OTLP JSON, a line for each delivery on standard output
 */
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "codec/otlp_json.h"
#include "collector/registry.h"

#define TEXT_MAX ((size_t)256 << 20)

enum verbosity { BASIC, NORMAL, DETAILED, N_VERBOSITIES };
static const char *const verbosity_names[N_VERBOSITIES] = {"basic", "normal", "detailed"};

struct debug_settings {
    const struct kiln_node *verbosity_node, *unused;
    enum verbosity verbosity;
    uint32_t initial, thereafter; /* of each second: the first so many, then every n-th */
};

struct debug {
    struct kiln_component component; /* first */
    struct kiln_consumer consumer;
    struct debug_settings settings;
    struct kiln_log *log;
    _Atomic uint64_t second, seen;
};

static const char *const signal_names[KILN_SIGNALS] = {
    [KILN_SIGNAL_PROFILES] = "Profiles",
    [KILN_SIGNAL_TRACES] = "Traces",
    [KILN_SIGNAL_METRICS] = "Metrics",
    [KILN_SIGNAL_LOGS] = "Logs",
};

static const char *text_of(const struct kiln_batch *batch, uint32_t string, char *room, size_t size)
{
    struct kiln_str text = batch->dict.strings[string];

    snprintf(room, size, "%.*s", text.len < size ? (int)text.len : (int)size - 1,
             text.ptr ? text.ptr : "");
    return room;
}

static void say_profiles(struct debug *debug, const struct kiln_batch *batch)
{
    for (uint32_t i = 0; i < batch->n_profiles; i++) {
        const struct kiln_profile *profile = &batch->profiles[i];
        char type[128], unit[128];

        kiln_log(debug->log, KILN_LOG_INFO, "Profile", "type", "%s",
                 text_of(batch, profile->sample_type.type, type, sizeof(type)), "unit", "%s",
                 text_of(batch, profile->sample_type.unit, unit, sizeof(unit)), "sample records",
                 "%u", profile->n_samples, "duration_s", "%.3f",
                 (double)profile->duration_ns / KILN_NS_PER_S, NULL);
    }
}

static void write_all(const struct kiln_batch *batch)
{
    struct kiln_buf text;

    kiln_buf_init(&text, TEXT_MAX);
    if (kiln_otlp_json_encode(batch, &text, NULL) == 0)
        (void)!kiln_fd_write(STDOUT_FILENO, kiln_buf_str(&text));
    kiln_buf_done(&text);
}

/* Of each second the first ones, then a part of them. */
static bool is_due(struct debug *debug)
{
    uint64_t now = kiln_clock_mono_ns() / KILN_NS_PER_S, n;

    if (atomic_exchange(&debug->second, now) != now)
        atomic_store(&debug->seen, 0);
    n = atomic_fetch_add(&debug->seen, 1);
    if (n < debug->settings.initial)
        return true;
    return debug->settings.thereafter &&
           (n - debug->settings.initial) % debug->settings.thereafter == 0;
}

static void take(struct kiln_consumer *consumer, struct kiln_delivery *delivery)
{
    struct debug *debug =
        (struct debug *)(void *)((char *)consumer - offsetof(struct debug, consumer));
    const struct kiln_batch *batch = delivery->batch;

    if (is_due(debug) && batch) {
        kiln_log(debug->log, KILN_LOG_INFO, "Profiles", "resource profiles", "%u",
                 batch->n_resources, "profiles", "%u", batch->n_profiles, "sample records", "%u",
                 batch->n_samples, NULL);
        if (debug->settings.verbosity >= NORMAL)
            say_profiles(debug, batch);
        if (debug->settings.verbosity == DETAILED)
            write_all(batch);
    } else if (!batch) {
        kiln_log(debug->log, KILN_LOG_INFO, signal_names[delivery->signal], "bytes", "%zu",
                 delivery->body.len, NULL);
    }
    kiln_delivery_end(delivery, &(struct kiln_outcome){0});
}

static void destroy(struct kiln_component *component)
{
    kiln_free(component);
}

static int make(const struct kiln_component_env *env, const void *settings,
                struct kiln_component **ret_component, struct kiln_err *err)
{
    static const struct kiln_component_ops ops = {.free = destroy};
    struct debug *debug = kiln_calloc(1, sizeof(*debug));

    if (!debug)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    debug->settings = *(const struct debug_settings *)settings;
    debug->log = env->log;
    debug->consumer.consume = take;
    debug->consumer.takes_json = true;
    debug->component = (struct kiln_component){.ops = &ops, .in = &debug->consumer};
    *ret_component = &debug->component;
    return 0;
}

static int read_verbosity(const struct kiln_node *node, enum verbosity *ret, struct kiln_err *err)
{
    const char *text = NULL;
    int r = node ? kiln_node_text(node, &text, err) : 0;

    if (r < 0 || !node)
        return r;
    for (enum verbosity i = BASIC; i < N_VERBOSITIES; i++) {
        if (strcmp(text, verbosity_names[i]) == 0) {
            *ret = i;
            return 0;
        }
    }
    return kiln_node_fail(node, KILN_E_MALFORMED, err,
                          "verbosity level \"%s\" is not supported (say basic, normal or detailed)",
                          text);
}

static int read_settings(const struct kiln_node *node, void *settings, struct kiln_err *err)
{
    static const struct kiln_field fields[] = {
        {"verbosity", KILN_FIELD_NODE, offsetof(struct debug_settings, verbosity_node)},
        {"sampling_initial", KILN_FIELD_COUNT, offsetof(struct debug_settings, initial)},
        {"sampling_thereafter", KILN_FIELD_COUNT, offsetof(struct debug_settings, thereafter)},
        {"use_internal_logger", KILN_FIELD_NODE, offsetof(struct debug_settings, unused)},
    };
    struct debug_settings *s = settings;
    int r;

    *s = (struct debug_settings){.initial = 2, .thereafter = 1};
    r = kiln_node_read(node, fields, KILN_ARRAY_LEN(fields), s, err);
    return r < 0 ? r : read_verbosity(s->verbosity_node, &s->verbosity, err);
}

const struct kiln_component_type kiln_debug_exporter_type = {
    .name = "debug",
    .kind = KILN_EXPORTER,
    .signals = KILN_TAKES_ALL,
    .stability = "stable",
    .settings_size = sizeof(struct debug_settings),
    .read = read_settings,
    .make = make,
};
