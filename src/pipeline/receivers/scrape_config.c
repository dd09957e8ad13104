/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the jobs and multiplies them out: each profile of each target is a task of its own, with
 * its address made once.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "core/tenant.h"
#include "pipeline/receivers/scrape_int.h"
#include "pipeline/receivers/tags.h"

enum { INTERVAL_MIN_S = 1, SECONDS_MAX = 600 };

static const struct kiln_scrape_kind usual_kinds[] = {
    {.name = "profile", .path = "/debug/pprof/profile", .enabled = true, .timed = true},
    {.name = "heap", .path = "/debug/pprof/heap", .enabled = true, .delta = true},
    {.name = "allocs", .path = "/debug/pprof/allocs", .enabled = true, .delta = true},
    {.name = "mutex",
     .path = "/debug/pprof/mutex",
     .family = "mutex",
     .enabled = true,
     .delta = true},
    {.name = "block",
     .path = "/debug/pprof/block",
     .family = "block",
     .enabled = true,
     .delta = true},
    {.name = "goroutine", .path = "/debug/pprof/goroutine", .enabled = true},
};

static int no_memory(struct kiln_err *err)
{
    return kiln_err_set(err, KILN_E_LIMIT, "scrape", "there are too many targets");
}

/* A formatted text that lives as long as the scraper; NULL without memory. */
static KILN_PRINTF(2, 3) const char *text_of(struct kiln_scraper *scraper, const char *fmt, ...)
{
    char text[4096];
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof(text))
        return NULL;
    return kiln_arena_copy(&scraper->arena, (struct kiln_str){text, (size_t)n + 1}).ptr;
}

/* ---- profiles of a job ---- */

static const struct kiln_field kind_fields[] = {
    {"enabled", KILN_FIELD_BOOL, offsetof(struct kiln_scrape_kind, enabled)},
    {"path", KILN_FIELD_TEXT, offsetof(struct kiln_scrape_kind, path)},
    {"delta", KILN_FIELD_BOOL, offsetof(struct kiln_scrape_kind, delta)},
    {"seconds", KILN_FIELD_COUNT, offsetof(struct kiln_scrape_kind, seconds)},
};

static struct kiln_scrape_kind *kind_named(struct kiln_scrape_job *job, const char *name)
{
    for (uint32_t i = 0; i < job->n_kinds; i++) {
        if (strcmp(job->kinds[i].name, name) == 0)
            return &job->kinds[i];
    }
    return NULL;
}

static int read_kind(struct kiln_scrape_job *job, const struct kiln_node *node,
                     struct kiln_err *err)
{
    struct kiln_scrape_kind *kind = kind_named(job, node->key);
    int r;

    if (!kind && job->n_kinds == KILN_SCRAPE_KINDS_MAX)
        return kiln_node_fail(node, KILN_E_LIMIT, err, "there are too many profiles");
    if (!kind) {
        kind = &job->kinds[job->n_kinds++];
        *kind = (struct kiln_scrape_kind){.name = node->key, .enabled = true};
    }
    r = kiln_node_read(node, kind_fields, KILN_ARRAY_LEN(kind_fields), kind, err);
    if (r < 0)
        return r;
    if (!kind->path)
        return kiln_node_fail(node, KILN_E_MALFORMED, err, "the profile %.60s needs a path",
                              kind->name);
    kind->timed |= kind->seconds > 0;
    if (kind->seconds > SECONDS_MAX)
        return kiln_node_fail(node, KILN_E_MALFORMED, err, "seconds is more than %d", SECONDS_MAX);
    return 0;
}

static int read_kinds(struct kiln_scrape_job *job, struct kiln_err *err)
{
    const struct kiln_scrape_kind *heap, *allocs;
    bool both;

    memcpy(job->kinds, usual_kinds, sizeof(usual_kinds));
    job->n_kinds = KILN_ARRAY_LEN(usual_kinds);
    for (const struct kiln_node *m = job->profiles ? job->profiles->first : NULL; m; m = m->next) {
        int r = read_kind(job, m, err);

        if (r < 0)
            return r;
    }
    heap = kind_named(job, "heap");
    allocs = kind_named(job, "allocs");
    both = heap->enabled && allocs->enabled && heap->delta && allocs->delta;
    for (uint32_t i = 0; i < job->n_kinds; i++) {
        struct kiln_scrape_kind *kind = &job->kinds[i];
        uint32_t interval_s = (uint32_t)(job->interval_ns / KILN_NS_PER_S);

        kind->part = !kind->delta             ? KILN_SCRAPE_ALL
                     : both && kind == heap   ? KILN_SCRAPE_LEVELS
                     : both && kind == allocs ? KILN_SCRAPE_FLOWS
                                              : KILN_SCRAPE_DELTA;
        if (kind->timed && kind->seconds == 0)
            kind->seconds = interval_s > 1 ? interval_s - 1 : 1;
    }
    return 0;
}

/* ---- addresses ---- */

static int add_param(struct kiln_buf *out, const struct kiln_node *node, struct kiln_err *err)
{
    const char *value;
    int r = kiln_node_text(node, &value, err);

    if (r < 0)
        return r;
    for (const char *c = value; *c; c++) {
        if (strchr("&=?#+% \t\r\n", *c) || (unsigned char)*c >= 0x7f)
            return kiln_node_fail(node, KILN_E_MALFORMED, err,
                                  "a parameter holds a character that has to be left out");
    }
    kiln_buf_printf(out, "%c%s=%s", out->len && memchr(out->ptr, '?', out->len) ? '&' : '?',
                    node->key, value);
    return 0;
}

static int make_path(struct kiln_scraper *scraper, struct kiln_scrape_task *task,
                     struct kiln_err *err)
{
    const struct kiln_scrape_job *job = task->job;
    struct kiln_buf path;
    int r = 0;

    kiln_buf_init(&path, 2048);
    kiln_buf_printf(&path, "%s%s", job->path_prefix ? job->path_prefix : "", task->kind->path);
    for (const struct kiln_node *m = job->params ? job->params->first : NULL; m && r == 0;
         m = m->next)
        r = add_param(&path, m, err);
    if (task->kind->timed)
        kiln_buf_printf(&path, "%cseconds=%u",
                        path.len && memchr(path.ptr, '?', path.len) ? '&' : '?',
                        task->kind->seconds);
    if (r == 0 && path.error)
        r = no_memory(err);
    if (r == 0) {
        task->path = text_of(scraper, "%.*s", (int)path.len, path.ptr);
        r = task->path ? 0 : no_memory(err);
    }
    kiln_buf_done(&path);
    return r;
}

/* The name of the file of its last reading: the same as long as the address is. */
static void name_state(struct kiln_scrape_task *task)
{
    char text[4096];
    uint8_t digest[KILN_SHA256_BYTES];
    int n = snprintf(text, sizeof(text), "%s\n%s\n%s", task->job->name, task->server, task->path);

    kiln_sha256((struct kiln_str){text, n < (int)sizeof(text) ? (size_t)n : sizeof(text) - 1},
                digest);
    for (int i = 0; i < 16; i++)
        snprintf(task->state_name + 2 * i, 3, "%02x", digest[i]);
}

static void get_metrics(struct kiln_scraper *scraper, struct kiln_scrape_task *task)
{
    struct kiln_metrics *m = scraper->opts.metrics;
    const char *job = task->job->name, *kind = task->kind->name;

    task->fetched =
        kiln_metric_get(m, KILN_COUNTER, "kiln_scrape_total", "Profiles that were fetched.",
                        KILN_LABELS("job", job, "profile", kind, "outcome", "delivered"));
    task->failed =
        kiln_metric_get(m, KILN_COUNTER, "kiln_scrape_total", "Profiles that were fetched.",
                        KILN_LABELS("job", job, "profile", kind, "outcome", "failed"));
    task->resets = kiln_metric_get(m, KILN_COUNTER, "kiln_scrape_resets_total",
                                   "Counters that began anew.", KILN_LABELS("job", job));
    task->late = kiln_metric_get(m, KILN_COUNTER, "kiln_scrape_late_total",
                                 "Intervals that passed without a fetch: too many under way.",
                                 KILN_LABELS("job", job));
    task->seconds = kiln_metric_get(m, KILN_HISTOGRAM, "kiln_scrape_duration_seconds",
                                    "How long fetches took.", KILN_LABELS("job", job));
    task->up = kiln_metric_get(m, KILN_GAUGE, "kiln_scrape_up",
                               "1 where the last fetch of a target went well.",
                               KILN_LABELS("job", job, "instance", task->target));
}

/* ---- targets ---- */

static int add_task(struct kiln_scraper *scraper, const struct kiln_scrape_task *pattern,
                    struct kiln_err *err)
{
    struct kiln_scrape_task *task;
    int r = kiln_grow(&scraper->budget, (void **)&scraper->tasks, &scraper->cap_tasks,
                      (uint64_t)scraper->n_tasks + 1, sizeof(*task), KILN_SCRAPES_MAX);

    if (r < 0)
        return no_memory(err);
    task = &scraper->tasks[scraper->n_tasks];
    *task = *pattern;
    r = make_path(scraper, task, err);
    if (r < 0)
        return r;
    name_state(task);
    get_metrics(scraper, task);
    scraper->n_tasks++;
    return 0;
}

static int add_target(struct kiln_scraper *scraper, const struct kiln_scrape_job *job,
                      const struct kiln_node *node, const struct kiln_node *labels,
                      struct kiln_err *err)
{
    struct kiln_scrape_task task = {.job = job, .labels = labels};
    int r = kiln_node_text(node, &task.target, err);
    bool local = r == 0 && strncmp(task.target, "unix:/", 6) == 0;

    if (r < 0)
        return r;
    if (!*task.target || strpbrk(task.target, local ? "?# \t\r\n@" : "/?# \t\r\n@"))
        return kiln_node_fail(node, KILN_E_MALFORMED, err, "a target is HOST:PORT or unix:/PATH");
    task.server = local ? task.target : text_of(scraper, "%s://%s", job->scheme, task.target);
    if (!task.server)
        return no_memory(err);
    for (uint32_t i = 0; i < job->n_kinds; i++) {
        task.kind = &job->kinds[i];
        if (!task.kind->enabled)
            continue;
        r = add_task(scraper, &task, err);
        if (r < 0)
            return r;
    }
    return 0;
}

struct group {
    const struct kiln_node *targets, *labels;
};

static const struct kiln_field group_fields[] = {
    {"targets", KILN_FIELD_LIST, offsetof(struct group, targets)},
    {"labels", KILN_FIELD_MAP, offsetof(struct group, labels)},
};

/* Labels are texts that a profile could carry. */
static int check_labels(const struct kiln_node *labels, struct kiln_err *err)
{
    for (const struct kiln_node *m = labels ? labels->first : NULL; m; m = m->next) {
        struct kiln_tags tags = {0};
        struct kiln_err why = {0};
        const char *value;
        int r = kiln_node_text(m, &value, err);

        if (r < 0)
            return r;
        if (kiln_tags_add(&tags, kiln_str_of(m->key), kiln_str_of(value), &why) < 0)
            return kiln_node_fail(m, KILN_E_MALFORMED, err, "%s", why.text);
    }
    if (labels && labels->n + 2 > KILN_TAGS_MAX)
        return kiln_node_fail(labels, KILN_E_LIMIT, err, "there are too many labels");
    return 0;
}

static int add_group(struct kiln_scraper *scraper, const struct kiln_scrape_job *job,
                     const struct kiln_node *node, struct kiln_err *err)
{
    struct group group = {0};
    int r = kiln_node_read(node, group_fields, KILN_ARRAY_LEN(group_fields), &group, err);

    if (r == 0 && !group.targets)
        r = kiln_node_fail(node, KILN_E_MALFORMED, err, "this has no targets");
    if (r == 0)
        r = check_labels(group.labels, err);
    for (const struct kiln_node *m = group.targets ? group.targets->first : NULL; m && r == 0;
         m = m->next)
        r = add_target(scraper, job, m, group.labels, err);
    return r;
}

/* ---- jobs ---- */

#define FIELD(key, kind, member)                                                                   \
    {                                                                                              \
        (key), KILN_FIELD_##kind, offsetof(struct kiln_scrape_job, member)                         \
    }

static const struct kiln_field job_fields[] = {
    FIELD("job_name", TEXT, name),
    FIELD("scrape_interval", DURATION, interval_ns),
    FIELD("scrape_timeout", DURATION, timeout_ns),
    FIELD("tenant", TEXT, tenant),
    FIELD("scheme", TEXT, scheme),
    FIELD("path_prefix", TEXT, path_prefix),
    FIELD("params", MAP, params),
    FIELD("basic_auth", MAP, basic_auth),
    FIELD("bearer_token", TEXT, bearer_token),
    FIELD("bearer_token_file", TEXT, bearer_token_file),
    FIELD("tls_config", MAP, tls_config),
    FIELD("static_configs", LIST, static_configs),
    FIELD("profiles", MAP, profiles),
};

static const struct kiln_field auth_fields[] = {
    FIELD("username", TEXT, username),
    FIELD("password", TEXT, password),
    FIELD("password_file", TEXT, password_file),
};

static const struct kiln_field tls_fields[] = {
    FIELD("ca_file", TEXT, ca_file),
    FIELD("cert_file", TEXT, cert_file),
    FIELD("key_file", TEXT, key_file),
    FIELD("insecure_skip_verify", BOOL, insecure),
};

static int check_job(const struct kiln_scrape_job *job, const struct kiln_node *node,
                     struct kiln_err *err)
{
    if (!job->name)
        return kiln_node_fail(node, KILN_E_MALFORMED, err, "this job has no job_name");
    if (!job->static_configs)
        return kiln_node_fail(node, KILN_E_MALFORMED, err, "job %.60s has no static_configs",
                              job->name);
    if (!kiln_tenant_valid(kiln_str_of(job->tenant)))
        return kiln_node_fail(node, KILN_E_MALFORMED, err, "job %.60s: this is no name of a tenant",
                              job->name);
    if (strcmp(job->scheme, "http") != 0 && strcmp(job->scheme, "https") != 0)
        return kiln_node_fail(node, KILN_E_MALFORMED, err, "job %.60s: scheme is http or https",
                              job->name);
    if (job->interval_ns < INTERVAL_MIN_S * KILN_NS_PER_S)
        return kiln_node_fail(node, KILN_E_MALFORMED, err,
                              "job %.60s: scrape_interval is below a second", job->name);
    if (job->basic_auth && (job->bearer_token || job->bearer_token_file))
        return kiln_node_fail(node, KILN_E_MALFORMED, err,
                              "job %.60s: basic_auth and a bearer token exclude each other",
                              job->name);
    return 0;
}

static int read_job(struct kiln_scraper *scraper, const struct kiln_node *node,
                    struct kiln_err *err)
{
    struct kiln_scrape_job *job = kiln_arena_alloc(&scraper->arena, sizeof(*job));
    int r;

    if (!job)
        return no_memory(err);
    *job = (struct kiln_scrape_job){.tenant = "anonymous",
                                    .scheme = "http",
                                    .interval_ns = 15 * KILN_NS_PER_S,
                                    .timeout_ns = 10 * KILN_NS_PER_S};
    r = kiln_node_read(node, job_fields, KILN_ARRAY_LEN(job_fields), job, err);
    if (r == 0)
        r = kiln_node_read(job->basic_auth, auth_fields, KILN_ARRAY_LEN(auth_fields), job, err);
    if (r == 0)
        r = kiln_node_read(job->tls_config, tls_fields, KILN_ARRAY_LEN(tls_fields), job, err);
    if (r == 0)
        r = check_job(job, node, err);
    if (r == 0)
        r = read_kinds(job, err);
    for (const struct kiln_node *m = r == 0 ? job->static_configs->first : NULL; m && r == 0;
         m = m->next)
        r = add_group(scraper, job, m, err);
    return r;
}

int kiln_scrape_read(struct kiln_scraper *scraper, struct kiln_err *err)
{
    const struct kiln_node *jobs = scraper->opts.jobs;

    if (jobs->kind != KILN_NODE_LIST)
        return kiln_node_fail(jobs, KILN_E_MALFORMED, err, "scrape is a list of jobs");
    for (const struct kiln_node *m = jobs->first; m; m = m->next) {
        int r = read_job(scraper, m, err);

        if (r < 0)
            return r;
    }
    return 0;
}
