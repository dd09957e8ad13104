/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel, tried out: its types are read, our programs are loaded, a clock is started on every
 * processor, and this very process keeps one busy until a sample of it comes back through the ring.
 * Each hook of the scheduler gets a program of two instructions.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "host/kernel_int.h"
#include "host/sideband.h"
#include "host/survey.h"

#define SAMPLE_WITHIN_NS (3 * KILN_NS_PER_S)

enum { TABLE_BYTES = 1 << 20, HZ = 499, SPIN = 100000 };

/* ---- types ---- */

static struct btf *look_at_types(struct kiln_survey *survey)
{
    struct kiln_finding *f = kiln_survey_add(survey, "kernel", "btf", KILN_FINDING_OK);
    struct btf *btf = btf__load_vmlinux_btf();

    if (btf) {
        kiln_finding_say(f, "the kernel describes %u types of its own", btf__type_cnt(btf));
        return btf;
    }
    kiln_finding_say(f, "/sys/kernel/btf/vmlinux: %s", kiln_err_text(-errno));
    kiln_finding_lacks(f, KILN_FINDING_MISSING, "no program can be fitted to this kernel",
                       "a kernel with CONFIG_DEBUG_INFO_BTF=y (Debian 12, Ubuntu 24.04, Fedora, "
                       "RHEL 10 have it); in a container: -v /sys/kernel:/sys/kernel:ro");
    return NULL;
}

/* ---- programs, clocks, samples ---- */

/* A sentence "what failed (what to do)" in its two parts. */
static void put_failure(struct kiln_finding *f, const struct kiln_err *err, const char *without)
{
    const char *at = strrchr(err->text, '('), *advice = at ? at + 1 : "";
    char text[sizeof(err->text)];

    kiln_finding_say(f, "%.*s", (int)(at ? at - err->text : INT_MAX), err->text);
    snprintf(text, sizeof(text), "%.*s", (int)strcspn(advice, ")"), advice);
    kiln_finding_lacks(f, KILN_FINDING_MISSING, without, text);
}

static struct kiln_kernel *look_at_programs(struct kiln_survey *survey)
{
    struct kiln_finding *f = kiln_survey_add(survey, "kernel", "programs", KILN_FINDING_OK);
    struct kiln_kernel_opts opts = {.hz = HZ, .table_bytes = TABLE_BYTES, .paused = true};
    struct kiln_kernel *kernel = NULL;
    struct kiln_kernel_stats stats;
    struct kiln_err err = {0};

    if (kiln_kernel_open(&opts, &kernel, &err) < 0) {
        put_failure(f, &err, "nothing can be profiled");
        return NULL;
    }
    kiln_kernel_stats(kernel, &stats);
    kiln_finding_say(f, "loaded: %u instructions verified", stats.verified);
    return kernel;
}

static int count_event(void *context, uint32_t cpu, int fd)
{
    (void)context;
    (void)cpu;
    (void)fd;
    return 0;
}

static void look_at_clocks(struct kiln_survey *survey)
{
    struct kiln_finding *f = kiln_survey_add(survey, "kernel", "clocks", KILN_FINDING_OK);
    struct kiln_percpu clocks = {
        .attr = {.type = PERF_TYPE_SOFTWARE,
                 .config = PERF_COUNT_SW_CPU_CLOCK,
                 .sample_period = KILN_NS_PER_S,
                 .disabled = 1},
        .attach = count_event,
    };
    int r = kiln_percpu_open(&clocks);
    uint32_t n = r < 0 ? 0 : kiln_percpu_count(&clocks);
    struct kiln_err err = {0};

    kiln_percpu_close(&clocks);
    if (n) {
        kiln_finding_say(f, "one on each of %u processors", n);
        return;
    }
    (void)kiln_kernel_explain(r < 0 ? r : -ENODEV, KILN_STEP_EVENT, &err);
    put_failure(f, &err, "nothing can be sampled");
}

struct wanted {
    uint32_t pid, seen, others;
};

static void see(void *context, const struct kiln_record *record)
{
    struct wanted *wanted = context;

    if (record->pid == wanted->pid)
        wanted->seen++;
    else
        wanted->others++;
}

static void keep_busy(void)
{
    volatile uint32_t n = 0;

    while (n < SPIN)
        n++;
}

static void look_at_samples(struct kiln_survey *survey, struct kiln_kernel *kernel)
{
    struct kiln_finding *f = kiln_survey_add(survey, "kernel", "samples", KILN_FINDING_OK);
    struct wanted wanted = {.pid = (uint32_t)getpid()};
    uint64_t began = kiln_clock_mono_ns(), until = began + SAMPLE_WITHIN_NS;
    int r = kernel ? kiln_kernel_set_rate(kernel, HZ) : -ENODEV;

    if (!kernel) {
        f->state = KILN_FINDING_UNKNOWN;
        kiln_finding_say(f, "there are no programs that could take them");
        return;
    }
    while (r >= 0 && !wanted.seen && kiln_clock_mono_ns() < until) {
        keep_busy();
        r = kiln_kernel_drain(kernel, see, &wanted);
    }
    if (wanted.seen) {
        kiln_finding_say(f, "this very process was sampled within %llu ms, and the ring told",
                         (unsigned long long)((kiln_clock_mono_ns() - began) / KILN_NS_PER_MS) + 1);
        return;
    }
    kiln_finding_say(f, "no sample of this process came back; %u of others did", wanted.others);
    kiln_finding_lacks(f, KILN_FINDING_MISSING, "nothing is seen, though programs and clocks run",
                       "please report it, with the release of the kernel");
}

static void look_at_events(struct kiln_survey *survey)
{
    struct kiln_finding *f = kiln_survey_add(survey, "kernel", "events", KILN_FINDING_OK);
    struct kiln_sideband *sideband = NULL;
    struct kiln_err err = {0};
    int r = kiln_sideband_open(0, &sideband, &err);

    kiln_sideband_close(sideband);
    if (r == 0) {
        kiln_finding_say(f, "starts, mappings and ends of processes are told");
        return;
    }
    put_failure(f, &err, "processes are not noticed in time");
}

/* ---- hooks of the scheduler ---- */

/* How many arguments the tracepoint has, beside what it always has; negative: there is none. */
static int arguments_of(const struct btf *btf, const char *name, int *ret_id)
{
    char type_name[64];
    const struct btf_type *type;
    int id;

    snprintf(type_name, sizeof(type_name), "btf_trace_%s", name);
    id = btf__find_by_name_kind(btf, type_name, BTF_KIND_TYPEDEF);
    if (id < 0)
        return id;
    *ret_id = id;
    type = btf__type_by_id(btf, btf__type_by_id(btf, (uint32_t)id)->type);
    if (type && btf_is_ptr(type))
        type = btf__type_by_id(btf, type->type);
    return type && btf_is_func_proto(type) ? btf_vlen(type) - 1 : -EINVAL;
}

/* Attaches a program that does nothing, for a moment. */
static int try_hook(int type_id)
{
    const struct bpf_insn nothing[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
        {.code = BPF_JMP | BPF_EXIT},
    };
    struct bpf_prog_load_opts opts = {.sz = sizeof(opts),
                                      .expected_attach_type = BPF_TRACE_RAW_TP,
                                      .attach_btf_id = (uint32_t)type_id};
    int program = bpf_prog_load(BPF_PROG_TYPE_TRACING, "kilntry", "GPL", nothing,
                                KILN_ARRAY_LEN(nothing), &opts);
    int link = program < 0 ? program : bpf_raw_tracepoint_open(NULL, program);

    if (program >= 0)
        close(program);
    if (link >= 0)
        close(link);
    return link < 0 ? link : 0;
}

static void look_at_hook(struct kiln_survey *survey, const struct btf *btf, const char *name,
                         const char *without)
{
    struct kiln_finding *f = kiln_survey_add(survey, "kernel", name, KILN_FINDING_OK);
    struct kiln_restraints restraints;
    int id = 0, n, r;

    if (!btf) {
        f->state = KILN_FINDING_UNKNOWN;
        kiln_finding_say(f, "the kernel does not describe its types");
        return;
    }
    n = arguments_of(btf, name, &id);
    r = n < 0 ? n : try_hook(id);
    if (r == 0) {
        kiln_finding_say(f, "a program was attached, with %d argument%s", n, n == 1 ? "" : "s");
        return;
    }
    kiln_finding_say(f, n < 0 ? "this kernel has no such tracepoint" : "a program was refused: %s",
                     kiln_err_text(r));
    kiln_restraints_read(&restraints);
    kiln_finding_lacks(f, KILN_FINDING_LESS, without,
                       n < 0 ? "a younger kernel"
                             : kiln_refusal_of(&restraints, KILN_STEP_LOAD, r)->advice);
}

void kiln_survey_kernel(struct kiln_survey *survey)
{
    struct kiln_kernel *kernel;
    struct btf *btf;

    kiln_kernel_quiet();
    btf = look_at_types(survey);
    kernel = look_at_programs(survey);
    look_at_clocks(survey);
    look_at_samples(survey, kernel);
    kiln_kernel_close(kernel);
    look_at_events(survey);
    look_at_hook(survey, btf, "sched_switch", "time spent waiting (off-CPU, wall) is not seen");
    look_at_hook(survey, btf, "sched_exit_tp",
                 "stacks of waits are taken before it is known how long they last: more of them "
                 "are taken, or fewer are seen");
    btf__free(btf);
}
