/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers and texts are tables: where an option is among the options, where it goes, which variable
 * overrides it, what it is where nobody says anything.
 */
#include "inproc/options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inproc/attributes.h"
#include "inproc/environment.h"
#include "inproc/thread/thread.h"

#define NONE ((size_t)-1)
#define OPTION(field)                                                                              \
    offsetof(struct kiln_options, field), sizeof(((struct kiln_options *)0)->field)
#define SETTING(field)                                                                             \
    offsetof(struct kiln_in_settings, field), sizeof(((struct kiln_in_settings *)0)->field)

/* ---- numbers ---- */

static const struct number {
    const char *variable;
    size_t option, option_size, setting, setting_size;
    uint64_t otherwise, min, max;
} numbers[] = {
    {"KILN_CPU_HZ", OPTION(cpu_hz), SETTING(cpu_hz), 100, 1, 1000},
    {"KILN_ALLOC_BYTES", OPTION(alloc_bytes), SETTING(alloc_bytes), 512 << 10, 1,
     (uint64_t)1 << 40},
    {"KILN_ALLOC_RATE", NONE, 0, SETTING(alloc_rate), 200, 0, 1000000},
    {"KILN_LOCK_NS", OPTION(lock_rate_ns), SETTING(lock_rate_ns), 10000, 1, 3600000000000},
    {"KILN_WAIT_NS", OPTION(wait_rate_ns), SETTING(wait_rate_ns), 10000000, 1, 3600000000000},
    {"KILN_LAG_NS", OPTION(lag_ns), SETTING(lag_ns), 20000000, 1000000, 3600000000000},
    {"KILN_MAX_STACK_DEPTH", OPTION(max_stack_depth), SETTING(depth), 128, 1, KILN_IN_DEPTH_MAX},
    {"KILN_MAX_SAMPLES", OPTION(max_samples_per_export), SETTING(samples_max), 10000, 1, 1000000},
    {"KILN_EXPORT_INTERVAL_MS", OPTION(export_interval_ms), SETTING(export_interval_ms), 15000, 100,
     86400000},
    {"KILN_CPU_WINDOW_MS", OPTION(cpu_window_ms), SETTING(cpu_window_ms), 0, 0, 86400000},
    {"KILN_CPU_EVERY_MS", OPTION(cpu_every_ms), SETTING(cpu_every_ms), 0, 0, 86400000},
    {"KILN_HEAP_EVERY_MS", OPTION(heap_every_ms), SETTING(heap_every_ms), 0, 0, 86400000},
    {"KILN_CPU_BACKOFF", OPTION(cpu_backoff_percent), SETTING(cpu_backoff_percent), 0, 0, 100000},
    {"KILN_EXIT_MS", NONE, 0, SETTING(exit_ms), 500, 0, 60000},
    {"KILN_SIGNAL_MS", NONE, 0, SETTING(signal_ms), 0, 0, 60000},
    {"KILN_SEED", NONE, 0, SETTING(seed), 0, 0, UINT64_MAX},
    {"OTEL_EXPORTER_OTLP_TIMEOUT", NONE, 0, SETTING(timeout_ms), 10000, 1, 600000},
    {"OTEL_EXPORTER_OTLP_PROFILES_TIMEOUT", NONE, 0, SETTING(timeout_ms), 0, 1, 600000},
};

static uint64_t load(const void *from, size_t at, size_t size)
{
    uint32_t word = 0;
    uint64_t number = 0;

    if (size == sizeof(word)) {
        memcpy(&word, (const char *)from + at, sizeof(word));
        return word;
    }
    memcpy(&number, (const char *)from + at, sizeof(number));
    return number;
}

static void store(struct kiln_in_settings *to, const struct number *n, uint64_t value)
{
    uint32_t word = (uint32_t)value;

    if (n->setting_size == sizeof(word))
        memcpy((char *)to + n->setting, &word, sizeof(word));
    else
        memcpy((char *)to + n->setting, &value, sizeof(value));
}

/* "512", "512k", "1M", "1GiB": letters are binary. */
static bool parse_number(const char *text, uint64_t *ret)
{
    static const char letters[] = "kmg";
    char *end;
    const char *letter;
    unsigned long long value;
    unsigned shift = 0;

    errno = 0;
    value = strtoull(text, &end, 10);
    if (errno || end == text || text[0] == '-')
        return false;
    letter = *end ? strchr(letters, *end | 0x20) : NULL;
    if (letter) {
        shift = 10 * (unsigned)(letter - letters + 1);
        end++;
    }
    if ((*end && strcmp(end, "iB") != 0) || value > UINT64_MAX >> shift)
        return false;
    *ret = value << shift;
    return true;
}

static uint64_t limited(const struct number *n, uint64_t value)
{
    return value < n->min ? n->min : value > n->max ? n->max : value;
}

/* What a variable says; where that is nothing, as it was. */
static uint64_t said(const struct number *n, const char *text, uint64_t otherwise)
{
    uint64_t value;

    if (!parse_number(text, &value)) {
        kiln_in_say(true, "%s is no number: %.64s", n->variable, text);
        return otherwise;
    }
    if (value == 0 && n->min) {
        kiln_in_say(true, "%s is 0, and is left out", n->variable);
        return otherwise;
    }
    if (value != limited(n, value))
        kiln_in_say(true, "%s is %.64s, and counts as %" PRIu64, n->variable, text,
                    limited(n, value));
    return value;
}

static void fill_number(const struct number *n, const struct kiln_options *options,
                        struct kiln_in_settings *to)
{
    const char *text = kiln_in_env(n->variable);
    uint64_t value = options && n->option != NONE ? load(options, n->option, n->option_size) : 0;

    if (value == 0)
        value = n->otherwise;
    if (text)
        value = said(n, text, value);
    if (value == 0 && n->min)
        return;
    store(to, n, limited(n, value));
}

/* ---- texts ---- */

static const struct text {
    const char *variable;
    size_t option, setting, setting_size;
} texts[] = {
    {"KILN_OUT_DIR", offsetof(struct kiln_options, out_dir), SETTING(out_dir)},
    {"KILN_PPROF_LISTEN", offsetof(struct kiln_options, pprof_listen), SETTING(pprof_listen)},
    {"KILN_SOCKET", offsetof(struct kiln_options, socket), SETTING(socket)},
    {"KILN_REDACT", offsetof(struct kiln_options, redact), SETTING(redact)},
    {"OTEL_EXPORTER_OTLP_ENDPOINT", offsetof(struct kiln_options, endpoint), SETTING(endpoint)},
    {"OTEL_EXPORTER_OTLP_PROTOCOL", offsetof(struct kiln_options, protocol), SETTING(protocol)},
    {"OTEL_EXPORTER_OTLP_PROFILES_PROTOCOL", NONE, SETTING(protocol)},
    {"OTEL_EXPORTER_OTLP_HEADERS", offsetof(struct kiln_options, headers), SETTING(headers)},
    {"OTEL_EXPORTER_OTLP_PROFILES_HEADERS", NONE, SETTING(headers)},
    {"OTEL_EXPORTER_OTLP_COMPRESSION", NONE, SETTING(compression)},
    {"OTEL_EXPORTER_OTLP_PROFILES_COMPRESSION", NONE, SETTING(compression)},
    {"OTEL_EXPORTER_OTLP_CERTIFICATE", NONE, SETTING(certificate)},
    {"OTEL_EXPORTER_OTLP_PROFILES_CERTIFICATE", NONE, SETTING(certificate)},
};

static void put_text(struct kiln_in_settings *to, const struct text *t, const char *text)
{
    char *at = (char *)to + t->setting;

    if (strlen(text) >= t->setting_size) {
        kiln_in_say(true, "%s is longer than %zu bytes and is left out", t->variable,
                    t->setting_size - 1);
        /* Rules of which nobody knows what they say: these are none, and then nothing leaves. */
        text = t->setting == offsetof(struct kiln_in_settings, redact) ? "path:" : at;
    }
    memmove(at, text, strlen(text) + 1);
}

static void fill_text(const struct text *t, const struct kiln_options *options,
                      struct kiln_in_settings *to)
{
    const char *text = kiln_in_env(t->variable);

    if (!text && options && t->option != NONE)
        text = *(const char *const *)((const char *)options + t->option);
    if (text)
        put_text(to, t, text);
}

/* The program may go elsewhere before the first file is written. */
static void anchor(char folder[KILN_IN_TEXT_MAX])
{
    char here[KILN_IN_TEXT_MAX];
    size_t n, length = strlen(folder);

    if (folder[0] == '/' || length == 0 || !getcwd(here, sizeof(here)))
        return;
    n = strlen(here);
    if (n + 1 + length >= KILN_IN_TEXT_MAX)
        return;
    memmove(folder + n + 1, folder, length + 1);
    memcpy(folder, here, n);
    folder[n] = '/';
}

/* The endpoint of all signals gets a path; that of profiles is taken as it is. */
static void fill_endpoint(struct kiln_in_settings *to)
{
    static const struct text own = {"OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", NONE,
                                    SETTING(endpoint)};

    to->endpoint_is_base = !kiln_in_env(own.variable);
    fill_text(&own, NULL, to);
}

/* ---- profiles ---- */

static const struct {
    const char *word;
    uint32_t bits;
} words[] = {
    {"cpu", KILN_PROFILE_CPU},
    {"alloc", KILN_PROFILE_ALLOC},
    {"heap", KILN_PROFILE_HEAP},
    {"lock", KILN_PROFILE_LOCK},
    {"wall", KILN_PROFILE_WALL},
    {"threads", KILN_PROFILE_THREADS},
    {"loop", KILN_PROFILE_LOOP},
    {"mmap", KILN_PROFILE_MMAP},
    {"default", KILN_PROFILE_DEFAULT},
    {"all", KILN_PROFILE_DEFAULT | KILN_PROFILE_MMAP},
    {"none", 0},
};

static uint32_t parse_word(const char *word, size_t n)
{
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strlen(words[i].word) == n && strncmp(words[i].word, word, n) == 0)
            return words[i].bits;
    }
    kiln_in_say(true,
                "KILN_PROFILES has a word that is none: %.*s (say cpu, alloc, heap, lock, wall, "
                "threads, loop, mmap, all or none)",
                (int)n, word);
    return 0;
}

static uint32_t parse_profiles(const char *text)
{
    uint32_t bits = 0;

    while (*text) {
        size_t n = strcspn(text, ", ");

        if (n)
            bits |= parse_word(text, n);
        text += n + (text[n] != '\0');
    }
    return bits;
}

static void fill_profiles(const struct kiln_options *options, struct kiln_in_settings *to)
{
    const char *text = kiln_in_env("KILN_PROFILES");
    uint32_t bits = options ? options->profiles : 0;

    to->profiles = text ? parse_profiles(text) : bits ? bits : KILN_PROFILE_DEFAULT;
    to->profiles &= KILN_PROFILE_DEFAULT | KILN_PROFILE_MMAP;
}

void kiln_in_options_fill(const struct kiln_options *options, struct kiln_in_settings *ret_settings)
{
    struct kiln_in_settings *to = ret_settings;
    bool send = true;

    memset(to, 0, sizeof(*to));
    kiln_in_env_flag("KILN_LOG", &to->log);
    kiln_in_env_flag("KILN_SEND", &send);
    to->stays = !send;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        fill_number(&numbers[i], options, to);
    if (!to->cpu_window_ms != !to->cpu_every_ms)
        kiln_in_say(true, "CPU time is sampled always: cpu_window_ms and cpu_every_ms go together");
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        fill_text(&texts[i], options, to);
    anchor(to->out_dir);
    fill_endpoint(to);
    fill_profiles(options, to);
    kiln_in_attributes_fill(options, to);
}
