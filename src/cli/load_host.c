/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host profiler's batch.  Every CPU is looked at 19 times a second, a few microseconds early or
 * late; what it was doing then is a row: a process, a stack, a time.  Two fifths of the processes
 * are there all the time, the others were never seen before (compilers, scripts, cron).
 */
#include "base/clock.h"
#include "cli/load_make.h"

#define PERIOD_NS UINT64_C(52631578)
#define WINDOW_NS (5 * KILN_NS_PER_S)
#define TICKS     (WINDOW_NS / PERIOD_NS)
#define JITTER_NS 1000u

struct process {
    uint32_t service, program;
    uint64_t pid;
};

/* Which process number `k` of this batch is. */
static struct process process_of(struct kiln_load_maker *m, uint32_t host, uint32_t k)
{
    const struct kiln_load_opts *opts = &m->load->opts;
    uint32_t lasting = (opts->processes * 2 + 4) / 5, fresh = opts->processes - lasting;
    struct kiln_dice dice = kiln_dice_of(opts->seed + 1, m->number * opts->processes + k);
    struct process p;

    if (k < lasting) {
        p.service = (host * 7 + k) % opts->services;
        p.pid = 600 + k * 37;
    } else {
        p.service = kiln_dice_below(&dice, opts->services);
        p.pid = 10000 + m->number * fresh + (k - lasting);
    }
    p.program = p.service % m->load->n_programs;
    return p;
}

/* ---- rows ---- */

/* Around 0, seldom further away than two microseconds. */
static int64_t jitter(struct kiln_dice *dice)
{
    uint64_t r = kiln_dice_next(dice);
    int64_t sum = 0;

    for (uint32_t i = 0; i < 4; i++, r >>= 16)
        sum += (int64_t)((r & 0xffff) * JITTER_NS >> 16) - JITTER_NS / 2;
    return sum;
}

/* Who was seen when and where: each process at least once, the first ones most. */
static void draw_rows(struct kiln_load_maker *m, uint32_t host, uint64_t start_ns)
{
    const struct kiln_load_opts *opts = &m->load->opts;
    uint32_t n = opts->samples;
    uint32_t cpus = (uint32_t)((n + n / 5) / TICKS) + 1;
    uint32_t each = (n + cpus - 1) / cpus;
    uint64_t first_tick = start_ns / PERIOD_NS + 1;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t cpu = i % cpus;
        uint64_t tick = first_tick + (uint64_t)(i / cpus) * TICKS / each;
        uint64_t phase = (uint64_t)(host * 977 + cpu * 1913) * 9973 % (PERIOD_NS / 2);

        m->rows[i] = (struct kiln_load_row){
            .time_ns = tick * PERIOD_NS + phase + (uint64_t)jitter(&m->dice),
            .cpu = cpu,
            .process = i < opts->processes ? (i * 7 + 3) % opts->processes
                                           : kiln_dice_skewed(&m->dice, opts->processes),
        };
    }
}

/* Rows by process, in the order of time: m->order, and where each process begins. */
static void sort_rows(struct kiln_load_maker *m, uint32_t *starts)
{
    const struct kiln_load_opts *opts = &m->load->opts;
    uint32_t at = 0;

    memset(starts, 0, (opts->processes + 1) * sizeof(*starts));
    for (uint32_t i = 0; i < opts->samples; i++)
        starts[m->rows[i].process]++;
    for (uint32_t i = 0; i <= opts->processes; i++) {
        uint32_t n = starts[i];

        starts[i] = at;
        at += n;
    }
    for (uint32_t i = 0; i < opts->samples; i++)
        m->order[starts[m->rows[i].process]++] = i;
    for (uint32_t i = opts->processes; i > 0; i--)
        starts[i] = starts[i - 1];
    starts[0] = 0;
}

/* ---- profiles ---- */

static void add_resource(struct kiln_load_maker *m, const struct process *p, const char *host)
{
    const struct kiln_load_program *program = &m->load->programs[p->program];
    uint32_t attrs[5], n = 0;
    char service[64];

    kiln_load_service_name(p->service, service);
    attrs[n++] = kiln_builder_text_attr(m->b, KILN_STR("service.name"), kiln_str_of(service));
    attrs[n++] = kiln_builder_text_attr(m->b, KILN_STR("host.name"), kiln_str_of(host));
    attrs[n++] = kiln_builder_text_attr(m->b, KILN_STR("process.executable.name"), program->name);
    attrs[n++] = kiln_builder_attr(m->b, kiln_builder_string(m->b, KILN_STR("process.pid")),
                                   kiln_value_int((int64_t)p->pid), 0);
    if (program->path.len)
        attrs[n++] =
            kiln_builder_text_attr(m->b, KILN_STR("process.executable.path"), program->path);
    kiln_builder_add_resource(
        m->b, &(struct kiln_resource){.attrs = kiln_builder_set(m->b, attrs, n, NULL)});
}

static uint32_t add_profile(struct kiln_load_maker *m, enum kiln_load_type type, uint64_t time_ns)
{
    struct kiln_profile head = {.time_ns = time_ns, .duration_ns = WINDOW_NS};

    if (type == KILN_LOAD_CPU) {
        head.sample_type.type = kiln_builder_string(m->b, KILN_STR("samples"));
        head.sample_type.unit = kiln_builder_string(m->b, KILN_STR("count"));
        head.period_type.type = kiln_builder_string(m->b, KILN_STR("cpu"));
        head.period_type.unit = kiln_builder_string(m->b, KILN_STR("nanoseconds"));
        head.period = (int64_t)PERIOD_NS;
    } else {
        head.sample_type.type = kiln_builder_string(m->b, KILN_STR("off_cpu"));
        head.sample_type.unit = kiln_builder_string(m->b, KILN_STR("nanoseconds"));
    }
    kiln_load_id(m, &head);
    return kiln_builder_add_profile(m->b, &head);
}

/* thread.name, thread.id, cpu.logical_number */
static uint32_t sample_attrs(struct kiln_load_maker *m, const struct process *p, uint32_t thread,
                             uint32_t cpu)
{
    uint32_t attrs[3], n = 0;

    if (thread)
        attrs[n++] = kiln_builder_attr(m->b, kiln_builder_string(m->b, KILN_STR("thread.name")),
                                       kiln_value_string(kiln_remap_string(m->remap, thread)), 0);
    attrs[n++] = kiln_builder_attr(m->b, kiln_builder_string(m->b, KILN_STR("thread.id")),
                                   kiln_value_int((int64_t)(p->pid + thread % 5)), 0);
    attrs[n++] = kiln_builder_attr(m->b, kiln_builder_string(m->b, KILN_STR("cpu.logical_number")),
                                   kiln_value_int(cpu), 0);
    return kiln_builder_set(m->b, attrs, n, NULL);
}

/* What the process did in each of its rows. */
static void draw_samples(struct kiln_load_maker *m, const struct process *p, const uint32_t *order,
                         uint32_t n)
{
    const struct kiln_load_program *program = &m->load->programs[p->program];

    for (uint32_t i = 0; i < n; i++) {
        struct kiln_load_row *row = &m->rows[order[i]];
        const struct kiln_load_entry *entry =
            &m->load->entries[program->first + kiln_dice_below(&m->dice, program->n)];

        row->attrs = sample_attrs(m, p, entry->thread, row->cpu);
        row->stack = kiln_load_stack(m, p->service, entry->stack);
        row->link = kiln_load_span(m);
        row->value = 1000 + (int64_t)(kiln_dice_next(&m->dice) >> 38); /* ns of a wait */
    }
}

static bool same(const struct kiln_load_row *a, const struct kiln_load_row *b)
{
    return a->stack == b->stack && a->attrs == b->attrs && a->link == b->link;
}

/* Rows of the same kind, from `first` on, are one sample; they are taken out of `order`. */
static uint32_t take_sample(struct kiln_load_maker *m, uint32_t profile, uint32_t *order,
                            uint32_t n, bool waits)
{
    const struct kiln_load_row first = m->rows[order[0]];
    uint32_t taken = 0, left = 0;

    for (uint32_t i = 0; i < n; i++) {
        const struct kiln_load_row *row = &m->rows[order[i]];

        if (same(row, &first)) {
            m->times[taken] = row->time_ns;
            m->values[taken++] = row->value;
        } else {
            order[left++] = order[i];
        }
    }
    kiln_builder_add_sample(m->b, profile, first.stack, first.attrs, first.link,
                            waits ? m->values : NULL, m->times, taken);
    m->n_samples++;
    return left;
}

static void add_samples(struct kiln_load_maker *m, const struct process *p, uint32_t profile,
                        uint32_t *order, uint32_t n, bool waits)
{
    draw_samples(m, p, order, n);
    while (n)
        n = take_sample(m, profile, order, n, waits);
}

static void add_process(struct kiln_load_maker *m, const struct process *p, const char *host,
                        uint64_t time_ns, uint32_t *order, uint32_t n)
{
    uint32_t types = m->load->opts.types;

    add_resource(m, p, host);
    kiln_builder_add_scope(
        m->b, &(struct kiln_scope){.name = kiln_builder_string(m->b, KILN_STR("kiln-loadgen"))});
    if (types & 1u << KILN_LOAD_OFF_CPU) { /* a quarter of the rows was a wait before */
        uint32_t waits[64], n_waits = 0;

        for (uint32_t i = 0; i < n && n_waits < KILN_ARRAY_LEN(waits); i += 4)
            waits[n_waits++] = order[i];
        add_samples(m, p, add_profile(m, KILN_LOAD_OFF_CPU, time_ns), waits, n_waits, true);
    }
    if (types & 1u << KILN_LOAD_CPU)
        add_samples(m, p, add_profile(m, KILN_LOAD_CPU, time_ns), order, n, false);
}

void kiln_load_make_host(struct kiln_load_maker *m, struct kiln_load_request *request)
{
    const struct kiln_load_opts *opts = &m->load->opts;
    uint32_t host = (uint32_t)(m->number % opts->hosts);
    uint32_t *starts = kiln_builder_scratch(m->b, (opts->processes + 1) * sizeof(*starts));

    kiln_load_name_host(m->load, host, request);
    if (!starts)
        return;
    draw_rows(m, host, request->time_ns);
    sort_rows(m, starts);
    for (uint32_t k = 0; k < opts->processes; k++) {
        struct process p = process_of(m, host, k);

        if (k == 0)
            kiln_load_service_name(p.service, request->service);
        if (starts[k + 1] > starts[k])
            add_process(m, &p, request->host, request->time_ns, m->order + starts[k],
                        starts[k + 1] - starts[k]);
    }
}
