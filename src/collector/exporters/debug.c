/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debug: says what comes by.
 *
 *   basic      how much, a line of the log for each delivery
 *   normal     and a line for each profile
 *   detailed   and everything, as OTLP JSON, a line for each delivery on standard output
 *
 * With use_internal_logger: false all of it goes to output_paths instead: stdout, stderr, or files
 * that it is appended to.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "codec/otlp_json.h"
#include "collector/exporters/sending.h"
#include "collector/registry.h"
#include "collector/settings.h"

#define TEXT_MAX ((size_t)256 << 20)

enum { OUTPUTS_MAX = 8 };

enum verbosity { BASIC, NORMAL, DETAILED, N_VERBOSITIES };
static const char *const verbosity_names[N_VERBOSITIES] = {"basic", "normal", "detailed"};

struct debug_settings {
    const struct kiln_node *verbosity_node, *output_paths;
    struct kiln_sending_settings sending; /* checked; nothing has to wait */
    enum verbosity verbosity;
    bool internal;
    uint32_t initial, thereafter; /* of each second: the first so many, then every n-th */
};

struct debug {
    struct kiln_component component; /* first */
    struct kiln_consumer consumer;
    struct debug_settings settings;
    struct output {
        struct kiln_log *log; /* its own, but for the collector's */
        int fd;               /* of everything */
    } outputs[OUTPUTS_MAX];
    uint32_t n_outputs;
    struct kiln_metric *sent;
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

static void say_profiles(struct kiln_log *log, const struct kiln_batch *batch)
{
    for (uint32_t i = 0; i < batch->n_profiles; i++) {
        const struct kiln_profile *profile = &batch->profiles[i];
        char type[128], unit[128];

        kiln_log(log, KILN_LOG_INFO, "Profile", "type", "%s",
                 text_of(batch, profile->sample_type.type, type, sizeof(type)), "unit", "%s",
                 text_of(batch, profile->sample_type.unit, unit, sizeof(unit)), "sample records",
                 "%u", profile->n_samples, "duration_s", "%.3f",
                 (double)profile->duration_ns / KILN_NS_PER_S, NULL);
    }
}

static void write_all(int fd, const struct kiln_batch *batch)
{
    struct kiln_buf text;

    kiln_buf_init(&text, TEXT_MAX);
    if (kiln_otlp_json_encode(batch, &text, NULL) == 0)
        (void)!kiln_fd_write(fd, kiln_buf_str(&text));
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

static void say(const struct output *output, enum verbosity verbosity,
                const struct kiln_delivery *delivery)
{
    const struct kiln_batch *batch = delivery->batch;

    if (!batch) {
        kiln_log(output->log, KILN_LOG_INFO, signal_names[delivery->signal], "bytes", "%zu",
                 delivery->body.len, NULL);
        return;
    }
    kiln_log(output->log, KILN_LOG_INFO, "Profiles", "resource profiles", "%u", batch->n_resources,
             "profiles", "%u", batch->n_profiles, "sample records", "%u", batch->n_samples, NULL);
    if (verbosity >= NORMAL)
        say_profiles(output->log, batch);
    if (verbosity == DETAILED)
        write_all(output->fd, batch);
}

static void take(struct kiln_consumer *consumer, struct kiln_delivery *delivery)
{
    struct debug *debug =
        (struct debug *)(void *)((char *)consumer - offsetof(struct debug, consumer));
    bool due = is_due(debug) || !delivery->batch;

    for (uint32_t i = 0; due && i < debug->n_outputs; i++)
        say(&debug->outputs[i], debug->settings.verbosity, delivery);
    kiln_metric_add(debug->sent, (int64_t)kiln_delivery_items(delivery));
    kiln_delivery_end(delivery, &(struct kiln_outcome){0});
}

/* ---- where to ---- */

static int open_output(struct kiln_str path, int *ret_fd, struct kiln_err *err)
{
    char name[4096];
    int fd = kiln_str_eq(path, KILN_STR("stdout"))   ? STDOUT_FILENO
             : kiln_str_eq(path, KILN_STR("stderr")) ? STDERR_FILENO
                                                     : -1;

    snprintf(name, sizeof(name), "%.*s", (int)path.len, path.ptr);
    if (fd < 0)
        fd = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0)
        return kiln_err_set(err, -errno, name, "cannot be written: %s", kiln_err_text(-errno));
    *ret_fd = fd;
    return 0;
}

/* What does not come from use_internal_logger is ours. */
static int start(struct kiln_component *component, struct kiln_err *err)
{
    struct debug *debug = (struct debug *)component;
    struct kiln_str path = KILN_STR("stdout");
    struct kiln_texts at = {.node = debug->settings.output_paths};
    bool more = at.node ? kiln_texts_next(&at, &path) : !debug->settings.internal;
    int r = 0;

    for (; r == 0 && more; more = at.node && kiln_texts_next(&at, &path)) {
        struct output *output = &debug->outputs[debug->n_outputs];

        r = open_output(path, &output->fd, err);
        if (r < 0)
            break;
        debug->n_outputs++;
        r = kiln_log_new(output->fd, KILN_LOG_INFO, KILN_LOG_LOGFMT, &output->log);
        if (r < 0)
            r = kiln_err_set(err, r, NULL, "%s", kiln_err_text(r));
    }
    return r;
}

static void destroy(struct kiln_component *component)
{
    struct debug *debug = (struct debug *)component;

    for (uint32_t i = 0; !debug->settings.internal && i < debug->n_outputs; i++) {
        kiln_log_free(debug->outputs[i].log);
        if (debug->outputs[i].fd > STDERR_FILENO)
            close(debug->outputs[i].fd);
    }
    kiln_free(debug);
}

static int make(const struct kiln_component_env *env, const void *settings,
                struct kiln_component **ret_component, struct kiln_err *err)
{
    static const struct kiln_component_ops ops = {.start = start, .free = destroy};
    struct debug *debug = kiln_calloc(1, sizeof(*debug));

    if (!debug)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    debug->settings = *(const struct debug_settings *)settings;
    if (debug->settings.internal)
        debug->outputs[debug->n_outputs++] = (struct output){env->log, STDOUT_FILENO};
    debug->sent = kiln_exporter_sent(env->metrics, env->signal, env->id);
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

static int check_outputs(const struct debug_settings *s, struct kiln_err *err)
{
    const struct kiln_node *paths = s->output_paths;

    if (paths && s->internal)
        return kiln_node_fail(paths, KILN_E_MALFORMED, err,
                              "output_paths is not supported when use_internal_logger is true");
    if (paths && (paths->n == 0 || paths->n > OUTPUTS_MAX))
        return kiln_node_fail(paths, KILN_E_MALFORMED, err, "output_paths has one to %d paths",
                              OUTPUTS_MAX);
    return kiln_settings_texts(paths, err);
}

static int read_settings(const struct kiln_node *node, void *settings, struct kiln_err *err)
{
    static const struct kiln_field fields[] = {
        {"verbosity", KILN_FIELD_NODE, offsetof(struct debug_settings, verbosity_node)},
        {"sampling_initial", KILN_FIELD_COUNT, offsetof(struct debug_settings, initial)},
        {"sampling_thereafter", KILN_FIELD_COUNT, offsetof(struct debug_settings, thereafter)},
        {"use_internal_logger", KILN_FIELD_BOOL, offsetof(struct debug_settings, internal)},
        {"output_paths", KILN_FIELD_LIST, offsetof(struct debug_settings, output_paths)},
        {"sending_queue", KILN_FIELD_MAP, offsetof(struct debug_settings, sending.queue_node)},
    };
    struct debug_settings *s = settings;
    int r;

    *s = (struct debug_settings){.initial = 2, .thereafter = 1, .internal = true};
    r = kiln_node_read(node, fields, KILN_ARRAY_LEN(fields), s, err);
    if (r == 0)
        r = kiln_sending_read(&s->sending, err);
    if (r == 0)
        r = check_outputs(s, err);
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
