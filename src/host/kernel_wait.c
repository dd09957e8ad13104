/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hook for waits: which one this kernel can have, found by the types of its tracepoints, and
 * its coming and going.
 *
 * Attaching waits for a grace period of the kernel's, some milliseconds, before the hook is there;
 * it is gone as soon as it is detached.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "host/kernel_int.h"

enum { SETS_MAX = 16384, PARAMETERS_MAX = 8 };

/* ---- what this kernel has ---- */

static const struct btf_type *plain(const struct btf *btf, uint32_t id)
{
    const struct btf_type *type = btf__type_by_id(btf, id);

    while (type && (btf_is_mod(type) || btf_is_typedef(type)))
        type = btf__type_by_id(btf, type->type);
    return type;
}

/* The parameters of a tracepoint behind the first, which is the kernel's own; how many. */
static int parameters(const struct btf *btf, const char *tracepoint,
                      const struct btf_type *ret_types[PARAMETERS_MAX])
{
    int id = btf__find_by_name_kind(btf, tracepoint, BTF_KIND_TYPEDEF);
    const struct btf_type *type = id > 0 ? plain(btf, (uint32_t)id) : NULL;
    int n = 0;

    if (type && btf_is_ptr(type))
        type = plain(btf, type->type);
    if (!type || !btf_is_func_proto(type))
        return 0;
    for (int i = 1; i < btf_vlen(type) && n < PARAMETERS_MAX; i++)
        ret_types[n++] = plain(btf, btf_params(type)[i].type);
    return n;
}

static bool is_bool(const struct btf_type *type)
{
    return type && btf_is_int(type) && type->size == 1;
}

static bool is_task(const struct btf *btf, const struct btf_type *type)
{
    const struct btf_type *to = type && btf_is_ptr(type) ? plain(btf, type->type) : NULL;

    return to && btf_is_struct(to) &&
           strcmp(btf__name_by_offset(btf, to->name_off), "task_struct") == 0;
}

/* (bool, ...) */
static bool has_exit(const struct btf *btf)
{
    const struct btf_type *types[PARAMETERS_MAX];

    return parameters(btf, "btf_trace_sched_exit_tp", types) >= 1 && is_bool(types[0]);
}

/* (bool preempt, struct task_struct *prev, struct task_struct *next, unsigned prev_state) */
static bool has_switch(const struct btf *btf)
{
    const struct btf_type *types[PARAMETERS_MAX];

    return parameters(btf, "btf_trace_sched_switch", types) >= 4 && is_bool(types[0]) &&
           is_task(btf, types[1]) && is_task(btf, types[2]);
}

static enum kiln_wait_way find_way(enum kiln_wait_way wanted)
{
    struct btf *btf = btf__load_vmlinux_btf();
    enum kiln_wait_way way = KILN_WAIT_WAY_NONE;

    if (!btf)
        return way;
    if (wanted != KILN_WAIT_WAY_SWITCH && has_exit(btf))
        way = KILN_WAIT_WAY_EXIT;
    else if (wanted != KILN_WAIT_WAY_EXIT && has_switch(btf))
        way = KILN_WAIT_WAY_SWITCH;
    btf__free(btf);
    return way;
}

/* ---- loading ---- */

/* Two threads a set; where numbers of threads end early, no three ever meet. */
static uint32_t sets(void)
{
    uint64_t most = UINT64_MAX;
    uint32_t n = 1;
    struct kiln_buf text;

    kiln_buf_init(&text, 64);
    if (kiln_file_read("/proc/sys/kernel/pid_max", &text, NULL) < 0 ||
        kiln_str_parse_u64(kiln_str_trim(kiln_buf_str(&text)), &most) < 0)
        most = UINT64_MAX;
    kiln_buf_done(&text);
    while (n < SETS_MAX && n < most / 2)
        n *= 2;
    return n;
}

/* A program is loaded, and its map has room, only where it is the one. */
static int prepare(struct kiln_kernel *kernel, enum kiln_wait_way way, const char *name,
                   const char *map)
{
    struct kernel_wait *wait = &kernel->wait;
    struct bpf_program *program = bpf_object__find_program_by_name(kernel->object, name);
    struct bpf_map *stamps = bpf_object__find_map_by_name(kernel->object, map);
    int r = bpf_program__set_autoload(program, wait->way == way);

    if (wait->way == way)
        wait->program = program;
    return r < 0 ? r : bpf_map__set_max_entries(stamps, wait->way == way ? wait->sets : 1);
}

int kiln_kernel_wait_prepare(struct kiln_kernel *kernel, const struct kiln_kernel_opts *opts)
{
    int r;

    kernel->wait.way = opts->off_cpu ? find_way(opts->wait_way) : KILN_WAIT_WAY_NONE;
    kernel->wait.sets = sets();
    r = prepare(kernel, KILN_WAIT_WAY_EXIT, "kiln_wait", "kiln_stamps");
    return r < 0 ? r : prepare(kernel, KILN_WAIT_WAY_SWITCH, "kiln_switch", "kiln_leavings");
}

void kiln_kernel_wait_settings(struct kiln_kernel *kernel, uint32_t hz)
{
    kernel->settings.stamp_mask = kernel->wait.sets - 1;
    kernel->settings.wait_first_ns = kernel->settings.wait_period_ns = KILN_NS_PER_S / hz;
    kernel->settings.wait_rate = UINT64_MAX / kernel->settings.wait_period_ns;
}

/* ---- while it runs ---- */

int kiln_kernel_wait_period(struct kiln_kernel *kernel, uint64_t period_ns)
{
    int r;

    if (!period_ns)
        return -EINVAL;
    pthread_mutex_lock(&kernel->lock);
    kernel->settings.wait_period_ns = period_ns;
    kernel->settings.wait_rate = UINT64_MAX / period_ns;
    r = kiln_kernel_tell_settings(kernel);
    pthread_mutex_unlock(&kernel->lock);
    return r;
}

static void let_go(struct kernel_wait *wait)
{
    if (!wait->link)
        return;
    bpf_link__destroy(wait->link);
    wait->link = NULL;
    wait->there_ns += kiln_clock_mono_ns() - wait->since_ns;
}

int kiln_kernel_wait_attach(struct kiln_kernel *kernel, bool on)
{
    struct kernel_wait *wait = &kernel->wait;

    if (wait->way == KILN_WAIT_WAY_NONE || on == (wait->link != NULL))
        return 0;
    if (!on) {
        let_go(wait);
        return 0;
    }
    wait->link = bpf_program__attach(wait->program);
    wait->since_ns = kiln_clock_mono_ns();
    return wait->link ? 0 : -errno;
}

void kiln_kernel_wait_close(struct kiln_kernel *kernel)
{
    let_go(&kernel->wait);
}

void kiln_kernel_wait_stats(const struct kiln_kernel *kernel, struct kiln_wait_stats *ret_stats)
{
    const struct kernel_wait *wait = &kernel->wait;

    *ret_stats = (struct kiln_wait_stats){
        .way = wait->way,
        .attached = wait->link != NULL,
        .there_ns = wait->there_ns,
        .period_ns = kernel->settings.wait_period_ns,
    };
    if (wait->way != KILN_WAIT_WAY_NONE)
        kiln_kernel_measured(bpf_program__fd(wait->program), &ret_stats->runs, &ret_stats->run_ns);
    if (wait->link)
        ret_stats->there_ns += kiln_clock_mono_ns() - wait->since_ns;
}
