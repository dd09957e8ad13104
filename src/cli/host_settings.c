/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words that come as one text ("a,b") or as a list of the file are split into an arena, which the
 * plan owns.
 */
#include "cli/host_settings.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/params.h"
#include "base/quantity.h"
#include "cli/commands.h"
#include "cli/settings_int.h"

enum { WORDS_MAX = 1024 };

#define PLAN_BYTES_MAX ((size_t)1 << 20)
#define UNWIND_MIN     ((uint64_t)1 << 20)
#define CPU_BUDGET     "1%" /* of one processor */
#define PERCENT_MAX    100000.0
#define MEMORY_MIN     ((uint64_t)16 << 20)

/* ---- the file ---- */

const struct kiln_field kiln_agent_fields[KILN_AGENT_FIELDS] = {
    KILN_SETTING("enabled", TEXT, host.enabled),
    KILN_SETTING("frequency", COUNT, host.frequency),
    KILN_SETTING("off_cpu", TEXT, host.off_cpu),
    KILN_SETTING("window", EITHER, host.window),
    KILN_SETTING("report_interval", DURATION, host.report_interval_ns),
    KILN_SETTING("cpu_budget", TEXT, host.cpu_budget),
    KILN_SETTING("unwind_memory", SIZE, host.unwind_memory),
    KILN_SETTING("memory_limit", SIZE, host.memory_limit),
    KILN_SETTING("symbol_cache", TEXT, host.symbol_cache),
    KILN_SETTING("symbol_cache_size", SIZE, host.symbol_cache_size),
    KILN_SETTING("environment", EITHER, host.environment),
    KILN_SETTING("resource", EITHER, host.resource),
    KILN_SETTING("resource_per", TEXT, host.resource_per),
    KILN_SETTING("identity", NODE, host.identity),
    KILN_SETTING("listen", TEXT, agent.listen),
    KILN_SETTING("socket", TEXT, agent.socket),
    KILN_SETTING("orders", TEXT, agent.orders),
    KILN_SETTING("server", TEXT, agent.server),
    KILN_SETTING("only", MAP, host.only.map),
    KILN_SETTING("except", MAP, host.except.map),
    KILN_SETTING("export", MAP, agent.export_map),
    KILN_SETTING("spool", MAP, agent.spool_map),
};

const struct kiln_field kiln_only_fields[KILN_WHOM_FIELDS] = {
    KILN_SETTING("pid", EITHER, host.only.pids),
    KILN_SETTING("cgroup", EITHER, host.only.cgroups),
    KILN_SETTING("comm", EITHER, host.only.comms),
};

const struct kiln_field kiln_except_fields[KILN_WHOM_FIELDS] = {
    KILN_SETTING("pid", EITHER, host.except.pids),
    KILN_SETTING("cgroup", EITHER, host.except.cgroups),
    KILN_SETTING("comm", EITHER, host.except.comms),
};

struct profiling {
    const struct kiln_node *cpu, *alloc;
    const struct kiln_node *enabled, *interval;
};

#define FIELD(key, kind, member)                                                                   \
    {                                                                                              \
        (key), KILN_FIELD_##kind, offsetof(struct profiling, member)                               \
    }

static const struct kiln_field profiling_fields[] = {
    FIELD("cpu", MAP, cpu),
    FIELD("alloc", NODE, alloc),
};

static const struct kiln_field cpu_fields[] = {
    FIELD("enabled", NODE, enabled),
    FIELD("interval", NODE, interval),
};

/* 10ms: 100 Hz */
static int read_interval(struct kiln_host_settings *set, struct kiln_err *err)
{
    uint64_t ns, hz;
    int r = kiln_node_duration(set->cpu_interval, &ns, err);

    if (r < 0)
        return r;
    if (set->frequency)
        return kiln_node_fail(set->cpu_interval, KILN_E_MALFORMED, err,
                              "agent.frequency says already how often");
    hz = ns ? (KILN_NS_PER_S + ns / 2) / ns : 0;
    if (hz < 1 || hz > KILN_HOST_HZ_MAX)
        return kiln_node_fail(set->cpu_interval, KILN_E_MALFORMED, err,
                              "an interval is between 1ms and 1s");
    set->frequency = (uint32_t)hz;
    return 0;
}

int kiln_host_settings_read(struct kiln_host_settings *set, struct kiln_err *err)
{
    struct profiling p = {0};
    bool enabled;
    int r =
        kiln_node_read(set->profiling, profiling_fields, KILN_ARRAY_LEN(profiling_fields), &p, err);

    if (r == 0)
        r = kiln_node_read(p.cpu, cpu_fields, KILN_ARRAY_LEN(cpu_fields), &p, err);
    if (r < 0)
        return r;
    set->alloc = p.alloc;
    set->cpu_enabled = p.enabled;
    set->cpu_interval = p.interval;
    if (set->cpu_interval)
        r = read_interval(set, err);
    if (r == 0 && set->cpu_enabled) {
        r = kiln_node_bool(set->cpu_enabled, &enabled, err);
        if (r == 0 && !enabled && !set->enabled)
            set->enabled = "off";
    }
    return r;
}

/* ---- a plan ---- */

/* Fails where the word stands, or without a place where it is no file's. */
static int fail(const struct kiln_node *node, struct kiln_err *err, const char *what,
                struct kiln_str word)
{
    if (node)
        return kiln_node_fail(node, KILN_E_MALFORMED, err, "\"%.*s\" is %s",
                              word.len > 80 ? 80 : (int)word.len, word.ptr, what);
    return kiln_err_set(err, -EINVAL, NULL, "\"%.*s\" is %s", word.len > 80 ? 80 : (int)word.len,
                        word.ptr, what);
}

static int no_memory(struct kiln_err *err)
{
    return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
}

struct words {
    const char **items;
    const struct kiln_node **nodes; /* where each stands; NULL: nowhere */
    uint32_t n;
};

static int add_word(struct kiln_host_plan *plan, struct words *words, struct kiln_str word,
                    const struct kiln_node *node, struct kiln_err *err)
{
    char *copy;

    word = kiln_str_trim(word);
    if (!word.len)
        return 0;
    if (words->n == WORDS_MAX)
        return fail(node, err, "one too many", word);
    copy = kiln_arena_alloc(&plan->arena, word.len + 1);
    if (!copy)
        return no_memory(err);
    memcpy(copy, word.ptr, word.len);
    copy[word.len] = '\0';
    words->nodes[words->n] = node;
    words->items[words->n++] = copy;
    return 0;
}

/* Words of "a,b", or of a list. */
static int split(struct kiln_host_plan *plan, const struct kiln_either *said,
                 struct words *ret_words, struct kiln_err *err)
{
    struct kiln_str rest = kiln_str_of(said->text);
    int r = 0;

    *ret_words = (struct words){
        .items = kiln_arena_alloc(&plan->arena, WORDS_MAX * sizeof(*ret_words->items)),
        .nodes = kiln_arena_alloc(&plan->arena, WORDS_MAX * sizeof(*ret_words->nodes)),
    };
    if (!ret_words->items || !ret_words->nodes)
        return no_memory(err);
    while (r == 0 && rest.ptr)
        r = add_word(plan, ret_words, kiln_str_cut(&rest, ','), said->node, err);
    if (said->text || !said->node)
        return r;
    if (said->node->kind != KILN_NODE_LIST)
        return kiln_node_fail(said->node, KILN_E_MALFORMED, err, "this must be a list of words");
    for (const struct kiln_node *m = said->node->first; r == 0 && m; m = m->next) {
        const char *text;

        r = kiln_node_text(m, &text, err);
        if (r == 0)
            r = add_word(plan, ret_words, kiln_str_of(text), m, err);
    }
    return r;
}

static bool said(const struct kiln_either *either)
{
    return either->text || either->node;
}

static bool said_whom(const struct kiln_whom *whom)
{
    return said(&whom->pids) || said(&whom->cgroups) || said(&whom->comms);
}

static int plan_pids(struct kiln_host_plan *plan, const struct kiln_whom *whom,
                     struct kiln_err *err)
{
    struct words words;
    uint32_t *pids;
    uint64_t pid;
    int r = split(plan, &whom->pids, &words, err);

    if (r < 0)
        return r;
    pids = kiln_arena_alloc(&plan->arena, (words.n + 1) * sizeof(*pids));
    if (!pids)
        return no_memory(err);
    for (uint32_t i = 0; i < words.n; i++) {
        if (kiln_str_parse_u64(kiln_str_of(words.items[i]), &pid) < 0 || pid == 0 ||
            pid > INT32_MAX)
            return fail(words.nodes[i], err, "no process id", kiln_str_of(words.items[i]));
        pids[i] = (uint32_t)pid;
    }
    plan->filter.pids = pids;
    plan->filter.n_pids = words.n;
    return 0;
}

static int plan_filter(const struct kiln_host_settings *set, struct kiln_host_plan *plan,
                       struct kiln_err *err)
{
    const struct kiln_whom *whom = said_whom(&set->except) ? &set->except : &set->only;
    struct words cgroups, comms;
    int r;

    if (said_whom(&set->except) && said_whom(&set->only))
        return kiln_err_set(err, -EINVAL, NULL,
                            "say whom to sample, or whom to leave out, not both");
    if (!said_whom(whom))
        return 0;
    r = plan_pids(plan, whom, err);
    if (r == 0)
        r = split(plan, &whom->cgroups, &cgroups, err);
    if (r == 0)
        r = split(plan, &whom->comms, &comms, err);
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < comms.n; i++)
        if (strlen(comms.items[i]) > 15)
            return fail(comms.nodes[i], err, "no name of a thread, which has at most 15 bytes",
                        kiln_str_of(comms.items[i]));
    plan->filter.cgroups = cgroups.items;
    plan->filter.n_cgroups = cgroups.n;
    plan->filter.comms = comms.items;
    plan->filter.n_comms = comms.n;
    plan->filter.exclude = whom == &set->except;
    plan->opts.filter = &plan->filter;
    return 0;
}

struct window {
    uint64_t length_ns, every_ns;
};

static const struct kiln_field window_fields[] = {
    {"length", KILN_FIELD_DURATION, offsetof(struct window, length_ns)},
    {"every", KILN_FIELD_DURATION, offsetof(struct window, every_ns)},
};

/* "30s/10m", or {length: 30s, every: 10m} */
static int plan_window(const struct kiln_either *either, struct kiln_host_plan *plan,
                       struct kiln_err *err)
{
    struct kiln_str every = kiln_str_of(either->text), length;
    struct window window = {0};
    int r = 0;

    if (!said(either))
        return 0;
    if (!either->text)
        r = kiln_node_read(either->node, window_fields, KILN_ARRAY_LEN(window_fields), &window,
                           err);
    if (r < 0)
        return r;
    length = kiln_str_cut(&every, '/');
    if (either->text && (kiln_duration_parse(kiln_str_trim(length), &window.length_ns) < 0 ||
                         kiln_duration_parse(kiln_str_trim(every), &window.every_ns) < 0))
        window = (struct window){0};
    if (!window.length_ns || window.length_ns > window.every_ns)
        return fail(either->node, err, "no window (say 30s/10m: so long, so often)",
                    kiln_str_of(either->text ? either->text : "this"));
    plan->opts.window_ns = window.length_ns;
    plan->opts.window_every_ns = window.every_ns;
    return 0;
}

static int plan_environment(const struct kiln_either *either, struct kiln_host_plan *plan,
                            struct kiln_err *err)
{
    struct words words;
    int r = said(either) ? split(plan, either, &words, err) : 0;

    if (r < 0 || !said(either))
        return r;
    for (uint32_t i = 0; i < words.n; i++)
        if (strchr(words.items[i], '='))
            return fail(words.nodes[i], err, "no name of a variable", kiln_str_of(words.items[i]));
    if (words.n == 1 && strcmp(words.items[0], "none") == 0)
        words.n = 0;
    plan->opts.env_names = words.items;
    plan->opts.n_env_names = words.n;
    return 0;
}

/* ---- resource attributes ---- */

static int add_attribute(struct kiln_host_plan *plan, struct kiln_str *pairs, struct kiln_str name,
                         struct kiln_str value)
{
    struct kiln_buf text;
    int r;

    kiln_buf_init(&text, 1 << 16);
    r = kiln_percent_decode(value, false, &text);
    if (r == 0)
        pairs[1] = kiln_arena_copy(&plan->arena, kiln_buf_str(&text));
    pairs[0] = kiln_arena_copy(&plan->arena, name);
    kiln_buf_done(&text);
    if (r < 0)
        return r;
    plan->opts.n_resource++;
    return pairs[0].ptr && pairs[1].ptr ? 0 : -ENOMEM;
}

/* "name=value,name=value", values percent-encoded, as OTEL_RESOURCE_ATTRIBUTES has them. */
static int add_attributes(struct kiln_host_plan *plan, const struct kiln_either *either,
                          struct kiln_str *pairs, struct kiln_err *err)
{
    struct kiln_str rest = kiln_str_of(either->text);

    while (rest.ptr) {
        struct kiln_str value = kiln_str_trim(kiln_str_cut(&rest, ',')), whole = value;
        struct kiln_str name = kiln_str_trim(kiln_str_cut(&value, '='));

        if (!whole.len)
            continue;
        if (!name.len || !value.ptr || plan->opts.n_resource == WORDS_MAX ||
            add_attribute(plan, pairs + (size_t)2 * plan->opts.n_resource, name,
                          kiln_str_trim(value)) < 0)
            return fail(either->node, err, "no attribute (say name=value)", whole);
    }
    return 0;
}

static int plan_resource(const struct kiln_either *either, struct kiln_host_plan *plan,
                         struct kiln_err *err)
{
    struct kiln_str *pairs;
    int r = 0;

    if (!said(either))
        return 0;
    pairs = kiln_arena_alloc(&plan->arena, (size_t)2 * WORDS_MAX * sizeof(*pairs));
    if (!pairs)
        return no_memory(err);
    plan->opts.resource = pairs;
    if (either->text)
        return add_attributes(plan, either, pairs, err);
    if (either->node->kind != KILN_NODE_MAP)
        return kiln_node_fail(either->node, KILN_E_MALFORMED, err,
                              "this must be a map of attributes");
    for (const struct kiln_node *m = either->node->first; r == 0 && m; m = m->next) {
        const char *text;

        r = kiln_node_text(m, &text, err);
        if (r == 0 && plan->opts.n_resource == WORDS_MAX)
            r = fail(m, err, "one too many", kiln_str_of(m->key));
        if (r < 0)
            break;
        pairs[2 * plan->opts.n_resource] = kiln_str_of(m->key);
        pairs[2 * plan->opts.n_resource++ + 1] = kiln_str_of(text);
    }
    return r;
}

/* ---- names on disk ---- */

/* Where caches of this user are; KILN_STR_NONE: nobody knows. */
static struct kiln_str cache_home(const char **ret_rest)
{
    const char *service = getenv("CACHE_DIRECTORY"); /* which systemd gives */
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

    *ret_rest = "/kiln/symbols";
    if (service && *service) {
        *ret_rest = "/symbols";
        return (struct kiln_str){service, strcspn(service, ":")};
    }
    if (geteuid() == 0)
        return KILN_STR("/var/cache");
    if (cache && *cache)
        return kiln_str_of(cache);
    *ret_rest = "/.cache/kiln/symbols";
    return home && *home ? kiln_str_of(home) : KILN_STR_NONE;
}

/* A recording has no file of settings, but the variable counts there too. */
static int plan_symbol_cache(const struct kiln_host_settings *set, struct kiln_host_plan *plan,
                             struct kiln_err *err)
{
    const char *said = set->symbol_cache ? set->symbol_cache : getenv("KILN_SYMBOL_CACHE");
    const char *rest;
    struct kiln_str home;
    char *path;

    plan->opts.symbol_cache_bytes = set->symbol_cache_size;
    if (said && *said) {
        plan->opts.symbol_cache = kiln_settings_on(said) ? said : NULL;
        return 0;
    }
    home = cache_home(&rest);
    if (!home.len)
        return 0;
    path = kiln_arena_alloc(&plan->arena, home.len + strlen(rest) + 1);
    if (!path)
        return no_memory(err);
    memcpy(path, home.ptr, home.len);
    memcpy(path + home.len, rest, strlen(rest) + 1);
    plan->opts.symbol_cache = path;
    return 0;
}

/* ---- all of it ---- */

/* 1: on; 0: off; negative: neither. */
static int on_or_off(const char *word)
{
    static const char *const on[] = {"on", "true", "yes"}, *const off[] = {"off", "false", "no"};

    for (uint32_t i = 0; i < KILN_ARRAY_LEN(on); i++)
        if (strcmp(word, on[i]) == 0 || strcmp(word, off[i]) == 0)
            return strcmp(word, on[i]) == 0;
    return -EINVAL;
}

static int plan_switch(const char *word, struct kiln_host_plan *plan, struct kiln_err *err)
{
    int on = word && strcmp(word, "auto") != 0 ? on_or_off(word) : 1;

    if (on < 0)
        return kiln_err_set(err, on, NULL, "the host profiler is auto, on or off, not \"%.40s\"",
                            word);
    plan->wanted = on;
    plan->needed = on && word && strcmp(word, "auto") != 0;
    return 0;
}

static int plan_waits(const char *word, struct kiln_host_plan *plan, struct kiln_err *err)
{
    int on = word ? on_or_off(word) : 1;

    if (on < 0)
        return kiln_err_set(err, on, NULL, "off-CPU sampling is on or off, not \"%.40s\"", word);
    plan->opts.off_cpu = on;
    return 0;
}

static int plan_resource_per(const char *word, struct kiln_host_plan *plan, struct kiln_err *err)
{
    if (!word || strcmp(word, "process") == 0)
        return 0;
    if (strcmp(word, "container") != 0)
        return kiln_err_set(err, -EINVAL, NULL,
                            "a resource is a process or a container, not \"%.40s\"", word);
    plan->opts.by_container = true;
    return 0;
}

/* "1%", "0.5": percent of one processor. */
static int plan_budget(const char *word, struct kiln_host_plan *plan, struct kiln_err *err)
{
    const char *text = word ? word : CPU_BUDGET;
    char *end;
    double percent = 0;

    if (kiln_settings_on(text)) {
        percent = text[strspn(text, "0123456789.%")] ? 0 : strtod(text, &end);
        if (percent <= 0 || percent > PERCENT_MAX || strcmp(end + (*end == '%'), "") != 0)
            return kiln_err_set(err, -EINVAL, NULL,
                                "a budget of processor time is a percentage of one processor (1%%, "
                                "0.5%%) or off, not \"%.40s\"",
                                word);
    }
    plan->opts.cpu_budget = percent / 100;
    return 0;
}

static int plan_numbers(const struct kiln_host_settings *set, struct kiln_host_plan *plan,
                        struct kiln_err *err)
{
    struct kiln_host_opts *opts = &plan->opts;

    opts->hz = set->frequency;
    opts->every_ns = set->report_interval_ns;
    opts->unwind_bytes = set->unwind_memory;
    opts->memory_bytes = set->memory_limit;
    if (opts->hz > KILN_HOST_HZ_MAX)
        return kiln_err_set(err, -EINVAL, NULL, "a frequency is between 1 and %d Hz, not %u",
                            KILN_HOST_HZ_MAX, opts->hz);
    if (opts->every_ns && opts->every_ns < KILN_NS_PER_S / 10)
        return kiln_err_set(err, -EINVAL, NULL, "reports come at most every 100ms");
    if (opts->unwind_bytes && opts->unwind_bytes < UNWIND_MIN)
        return kiln_err_set(err, -EINVAL, NULL, "unwinding needs a memory of at least 1M");
    if (opts->memory_bytes && opts->memory_bytes < MEMORY_MIN)
        return kiln_err_set(err, -EINVAL, NULL, "the agent needs a memory of at least 16M");
    return 0;
}

int kiln_host_plan_make(const struct kiln_host_settings *set, struct kiln_host_plan *plan,
                        struct kiln_err *err)
{
    int r;

    *plan = (struct kiln_host_plan){.budget = {.limit = PLAN_BYTES_MAX}};
    kiln_arena_init(&plan->arena, &plan->budget);
    r = plan_switch(set->enabled, plan, err);
    if (r == 0)
        r = plan_numbers(set, plan, err);
    if (r == 0)
        r = plan_waits(set->off_cpu, plan, err);
    if (r == 0)
        r = plan_budget(set->cpu_budget, plan, err);
    if (r == 0)
        r = plan_window(&set->window, plan, err);
    if (r == 0)
        r = plan_filter(set, plan, err);
    if (r == 0)
        r = plan_environment(&set->environment, plan, err);
    if (r == 0)
        r = plan_symbol_cache(set, plan, err);
    if (r == 0)
        r = plan_resource(&set->resource, plan, err);
    if (r == 0)
        r = plan_resource_per(set->resource_per, plan, err);
    if (r == 0)
        r = kiln_identity_rules_read(set->identity, &plan->rules, err);
    plan->opts.rules = plan->rules;
    return r;
}

void kiln_host_plan_done(struct kiln_host_plan *plan)
{
    kiln_identity_rules_free(plan->rules);
    kiln_arena_done(&plan->arena);
    *plan = (struct kiln_host_plan){0};
}

/* ---- options ---- */

static const struct kiln_option host_options[] = {
    KILN_OPT("frequency", 'F', KILN_OPT_COUNT, server.host.frequency, "HZ",
             "samples a second and processor (19)"),
    KILN_OPT("off-cpu", 0, KILN_OPT_TEXT, server.host.off_cpu, "on|off",
             "where threads wait, and for what, too (on)"),
    KILN_OPT("window", 0, KILN_OPT_TEXT, server.host.window.text, "TIME/TIME",
             "sample so long, so often: 30s/10m (all the time)"),
    KILN_OPT("report-interval", 0, KILN_OPT_DURATION, server.host.report_interval_ns, "TIME",
             "hand over what was gathered this often (5s; an agent 60s, and 5s while somebody asks "
             "its server for what is new)"),
    KILN_OPT("cpu-budget", 0, KILN_OPT_TEXT, server.host.cpu_budget, "PERCENT",
             "of one processor that all of it may use, or off: beyond, it samples less (1%)"),
    KILN_OPT_UNWIND_MEMORY,
    KILN_OPT("agent-memory-limit", 0, KILN_OPT_SIZE, server.host.memory_limit, "SIZE",
             "of all else that grows with what runs on the host (96M)"),
    KILN_OPT_SYMBOL_CACHE,
    KILN_OPT_ENV_NAMES,
    KILN_OPT("resource", 0, KILN_OPT_TEXT, server.host.resource.text, "NAME=VALUE,...",
             "attributes of every profile of this host"),
    KILN_OPT("resource-per", 0, KILN_OPT_TEXT, server.host.resource_per, "process|container",
             "what a resource of OpenTelemetry is (process)"),
    KILN_OPT_END,
};
const struct kiln_option_group kiln_group_host = {"Profiling the host", host_options};

static const struct kiln_option sampling_options[] = {
    KILN_OPT("frequency", 'F', KILN_OPT_COUNT, server.host.frequency, "HZ",
             "samples a second and processor (97; 499 of a command)"),
    KILN_OPT_UNWIND_MEMORY,
    KILN_OPT_SYMBOL_CACHE,
    KILN_OPT_ENV_NAMES,
    KILN_OPT_END,
};
const struct kiln_option_group kiln_group_sampling = {"Sampling", sampling_options};

static const struct kiln_option whom_options[] = {
    KILN_OPT("pid", 'p', KILN_OPT_TEXT, server.host.only.pids.text, "PID,...",
             "only these processes and what they start"),
    KILN_OPT("cgroup", 0, KILN_OPT_TEXT, server.host.only.cgroups.text, "PATH,...",
             "only these control groups (below /sys/fs/cgroup) and those inside"),
    KILN_OPT("comm", 0, KILN_OPT_TEXT, server.host.only.comms.text, "NAME,...",
             "only threads of these names"),
    KILN_OPT("exclude-pid", 0, KILN_OPT_TEXT, server.host.except.pids.text, "PID,...",
             "not these processes, nor what they start"),
    KILN_OPT("exclude-cgroup", 0, KILN_OPT_TEXT, server.host.except.cgroups.text, "PATH,...",
             "not these control groups"),
    KILN_OPT("exclude-comm", 0, KILN_OPT_TEXT, server.host.except.comms.text, "NAME,...",
             "no threads of these names"),
    KILN_OPT_END,
};
const struct kiln_option_group kiln_group_whom = {"Whom", whom_options};
