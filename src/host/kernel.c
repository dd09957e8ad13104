/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads the program that the build embedded (host/bpf/sample.bpf.c), gives its maps their sizes,
 * and attaches it to a software clock on every processor.
 *
 * A clock's period is in nanoseconds: perf turns the frequency of a software clock into one once
 * and forgets it.  The memory of the tables is a BPF array that is mapped into this process; an
 * eighth of what was granted is left for the directory, which grows as it is filled.
 */
#include "host/kernel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "host/kernel_int.h"
#include "host/procfs.h"

extern const char kiln_asset_sample_bpf_o[];
extern const size_t kiln_asset_sample_bpf_o_len;

enum {
    RAW_PER_S = 500,
    TABLE_BYTES_MIN = 1 << 20,
    DIRECTORY_ENTRY_BYTES = 96, /* with what the kernel adds */
    RECORD_BYTES = 1024,        /* of one that is not raw */
    RAW_BYTES = 16384,          /* of most that are */
    RING_BYTES_MIN = 1 << 20,
    RING_BYTES_MAX = 64 << 20,
};
#define DIRECTORY_LOOK_NS (10 * KILN_NS_PER_S)
static const uint64_t table_bytes_max = UINT64_C(32) << 30;

/* ---- tables ---- */

static int put_entry(struct kiln_table_memory *memory, const struct kiln_dir_key *key,
                     const struct kiln_dir_entry *entry)
{
    const struct kiln_kernel *kernel = (const struct kiln_kernel *)memory;
    struct kiln_dir_entry checked = *entry;
    checked.check = kiln_dir_check(key);
    return bpf_map_update_elem(kernel->directory_fd, key, &checked, BPF_ANY) ? -errno : 0;
}

static int drop_entry(struct kiln_table_memory *memory, const struct kiln_dir_key *key)
{
    const struct kiln_kernel *kernel = (const struct kiln_kernel *)memory;
    return bpf_map_delete_elem(kernel->directory_fd, key) ? -errno : 0;
}

struct kiln_table_memory *kiln_kernel_tables(struct kiln_kernel *kernel)
{
    return &kernel->tables;
}

int kiln_kernel_put_context(struct kiln_kernel *kernel, uint32_t pid,
                            const struct kiln_context_place *place)
{
    return bpf_map_update_elem(kernel->contexts_fd, &pid, place, BPF_ANY) ? -errno : 0;
}

void kiln_kernel_drop_context(struct kiln_kernel *kernel, uint32_t pid, uint64_t era)
{
    struct kiln_context_place place;
    if (bpf_map_lookup_elem(kernel->contexts_fd, &pid, &place) == 0 && place.era == era)
        bpf_map_delete_elem(kernel->contexts_fd, &pid);
}

static int map_tables(struct kiln_kernel *kernel)
{
    size_t bytes = (size_t)kernel->tables.n_words * 8;
    int fd = bpf_object__find_map_fd_by_name(kernel->object, "kiln_words");
    void *words = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (words == MAP_FAILED)
        return -errno;
    kernel->tables.words = words;
    return 0;
}

/* ---- loading ---- */

static int set_size(struct kiln_kernel *kernel, const char *map, uint32_t entries)
{
    struct bpf_map *found = bpf_object__find_map_by_name(kernel->object, map);
    return found ? bpf_map__set_max_entries(found, entries) : -ENOENT;
}

/* Room for half a second of everything, should all of it be raw as far as that is allowed. */
static uint32_t ring_size(const struct kiln_kernel_opts *opts)
{
    long cpus = sysconf(_SC_NPROCESSORS_CONF);
    uint32_t raw_per_s = opts->raw_per_s ? opts->raw_per_s : RAW_PER_S;
    uint64_t raw = opts->hz < raw_per_s ? opts->hz : raw_per_s;
    uint64_t bytes =
        (opts->hz * RECORD_BYTES + raw * RAW_BYTES) / 2 * (uint64_t)(cpus > 0 ? cpus : 1);
    uint64_t size = opts->ring_bytes ? (uint64_t)sysconf(_SC_PAGESIZE) : RING_BYTES_MIN;
    uint64_t most = opts->ring_max && opts->ring_max < RING_BYTES_MAX ? opts->ring_max
                                                                      : (uint64_t)RING_BYTES_MAX;
    if (opts->ring_bytes)
        bytes = opts->ring_bytes;
    while (size < bytes && size * 2 <= most)
        size *= 2;
    return (uint32_t)size;
}

static int set_sizes(struct kiln_kernel *kernel, const struct kiln_kernel_opts *opts)
{
    uint64_t bytes = opts->table_bytes < TABLE_BYTES_MIN   ? TABLE_BYTES_MIN
                     : opts->table_bytes > table_bytes_max ? table_bytes_max
                                                           : opts->table_bytes;
    kernel->tables.n_words = (uint32_t)((bytes - bytes / 8) / 8);
    kernel->tables.n_entries = (uint32_t)(bytes / 8 / DIRECTORY_ENTRY_BYTES);
    kernel->ring_bytes = ring_size(opts);
    int cpus = libbpf_num_possible_cpus();
    int rc = set_size(kernel, "kiln_words", kernel->tables.n_words);
    if (rc == 0)
        rc = set_size(kernel, "kiln_directory", kernel->tables.n_entries);
    if (rc == 0 && !opts->filter)
        rc = set_size(kernel, "kiln_filters", 1);
    if (rc == 0)
        rc = set_size(kernel, "kiln_scratch", (cpus > 0 ? (uint32_t)cpus : 1) * KILN_KINDS);
    return rc ? rc : set_size(kernel, "kiln_ring", kernel->ring_bytes);
}

static int show(void *context, void *data, size_t size)
{
    struct kiln_kernel *kernel = context;
    const struct kiln_record *record = data;
    uint64_t need = sizeof(*record);
    if (size < sizeof(*record) || record->size > size)
        return 0;
    need += 8 * ((uint64_t)record->n_kernel + record->n_user);
    if (record->flags & KILN_RECORD_RAW)
        need += sizeof(struct kiln_registers) + record->slice;
    if (need == record->size && record->end < KILN_ENDS)
        kernel->visit(kernel->context, record);
    return 0;
}

/* What the kernel says that a map takes. */
static uint64_t map_bytes(int fd)
{
    uint64_t bytes;
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
    return kiln_procfs_number(path, "memlock", 10, &bytes) < 0 ? 0 : bytes;
}

static int find_maps(struct kiln_kernel *kernel)
{
    const struct bpf_map *map;
    const struct bpf_program *program =
        bpf_object__find_program_by_name(kernel->object, "kiln_sample");
    kernel->program_fd = bpf_program__fd(program);
    kernel->ring_fd = bpf_object__find_map_fd_by_name(kernel->object, "kiln_ring");
    kernel->directory_fd = bpf_object__find_map_fd_by_name(kernel->object, "kiln_directory");
    kernel->settings_fd = bpf_object__find_map_fd_by_name(kernel->object, "kiln_settings");
    kernel->filters_fd = bpf_object__find_map_fd_by_name(kernel->object, "kiln_filters");
    kernel->counts_fd = bpf_object__find_map_fd_by_name(kernel->object, "kiln_counts");
    kernel->contexts_fd = bpf_object__find_map_fd_by_name(kernel->object, "kiln_contexts");
    kernel->rates_fd = bpf_object__find_map_fd_by_name(kernel->object, "kiln_rates");
    bpf_object__for_each_map(map, kernel->object)
    {
        if (bpf_map__fd(map) != kernel->directory_fd)
            kernel->fixed_bytes += map_bytes(bpf_map__fd(map));
    }
    kernel->ring = ring_buffer__new(kernel->ring_fd, show, kernel, NULL);
    kernel->mapped_bytes =
        map_bytes(kernel->ring_fd) + (uint64_t)kernel->tables.n_words * sizeof(uint64_t);
    return kernel->ring ? map_tables(kernel) : -errno;
}

static int load(struct kiln_kernel *kernel, const struct kiln_kernel_opts *opts,
                struct kiln_err *err)
{
    struct bpf_object_open_opts open_opts = {.sz = sizeof(open_opts), .object_name = "kiln"};
    int rc = kiln_kernel_probe(err);
    if (rc < 0)
        return rc;
    kernel->object =
        bpf_object__open_mem(kiln_asset_sample_bpf_o, kiln_asset_sample_bpf_o_len, &open_opts);
    if (!kernel->object)
        return kiln_kernel_explain(-errno, KILN_STEP_LOAD, err);
    rc = set_sizes(kernel, opts);
    if (rc == 0)
        rc = kiln_kernel_wait_prepare(kernel, opts);
    if (rc == 0)
        rc = bpf_object__load(kernel->object);
    if (rc == 0)
        rc = find_maps(kernel);
    return rc < 0 ? kiln_kernel_explain(rc, KILN_STEP_LOAD, err) : 0;
}

/* ---- settings ---- */

int kiln_kernel_tell_settings(const struct kiln_kernel *kernel)
{
    uint32_t zero = 0;
    return bpf_map_update_elem(kernel->settings_fd, &zero, &kernel->settings, BPF_ANY) ? -errno : 0;
}

static int set_up(struct kiln_kernel *kernel, const struct kiln_kernel_opts *opts,
                  struct kiln_err *err)
{
    struct stat namespace;
    if (stat("/proc/self/ns/pid", &namespace) != 0)
        return kiln_err_set(err, -errno, "/proc/self/ns/pid", "/proc cannot be read");
    kernel->settings = (struct kiln_settings){
        .pid_namespace = (uint32_t) namespace.st_ino,
        .raw_per_s = opts->raw_per_s ? opts->raw_per_s : RAW_PER_S,
        .wake_bytes = kernel->ring_bytes / 4,
        .hz = opts->hz,
        .clock_hz = opts->hz,
    };
    kiln_kernel_wait_settings(kernel, opts->hz ? opts->hz : 1);
    int rc = kiln_kernel_set_filter(kernel, opts->filter, err);
    if (rc < 0)
        return rc;
    rc = kiln_kernel_tell_settings(kernel);
    return rc < 0 ? kiln_kernel_explain(rc, KILN_STEP_LOAD, err) : 0;
}

/* ---- clocks ---- */

static int attach_clock(void *context, uint32_t cpu, int fd)
{
    const struct kiln_kernel *kernel = context;
    (void)cpu;
    if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, kernel->program_fd) != 0)
        return -errno;
    return kernel->hz && ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) != 0 ? -errno : 0;
}

static int start_clocks(struct kiln_kernel *kernel, const struct kiln_kernel_opts *opts,
                        struct kiln_err *err)
{
    if (opts->hz < 1 || opts->hz > KILN_HOST_HZ_MAX)
        return kiln_err_set(err, -EINVAL, NULL, "a processor can be sampled 1 to %d times a second",
                            KILN_HOST_HZ_MAX);
    kernel->hz = opts->paused ? 0 : opts->hz;
    kernel->clocks = (struct kiln_percpu){
        .attr = {.type = PERF_TYPE_SOFTWARE,
                 .config = PERF_COUNT_SW_CPU_CLOCK,
                 .sample_period = KILN_NS_PER_S / opts->hz,
                 .disabled = 1,
                 .exclude_idle = 1},
        .attach = attach_clock,
        .context = kernel,
    };
    int rc = kiln_percpu_open(&kernel->clocks);
    atomic_store(&kernel->processors, kiln_percpu_count(&kernel->clocks));
    if (rc == 0 && atomic_load(&kernel->processors) == 0)
        rc = -ENODEV;
    return rc < 0 ? kiln_kernel_explain(rc, KILN_STEP_EVENT, err) : 0;
}

static int set_clock(int fd, uint64_t period_ns)
{
    if (period_ns == 0)
        return ioctl(fd, PERF_EVENT_IOC_DISABLE, 0) ? -errno : 0;
    if (ioctl(fd, PERF_EVENT_IOC_PERIOD, &period_ns) != 0)
        return -errno;
    return ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) ? -errno : 0;
}

static int set_clocks(struct kiln_kernel *kernel, uint64_t period_ns)
{
    int rc = 0;
    for (uint32_t cpu = 0; cpu < kernel->clocks.n; cpu++) {
        int failed =
            kernel->clocks.fds[cpu] >= 0 ? set_clock(kernel->clocks.fds[cpu], period_ns) : 0;
        rc = rc ? rc : failed;
    }
    return rc;
}

/* The clocks stand while the settings change, so that each record says the rate it was taken at. */
int kiln_kernel_set_rates(struct kiln_kernel *kernel, uint32_t hz, uint32_t clock_hz)
{
    if (hz > clock_hz || clock_hz > KILN_HOST_HZ_MAX)
        return -EINVAL;
    pthread_mutex_lock(&kernel->lock);
    int rc = set_clocks(kernel, 0);
    kernel->hz = clock_hz;
    if (rc == 0 && clock_hz) {
        kernel->clocks.attr.sample_period = KILN_NS_PER_S / clock_hz;
        kernel->settings.hz = hz;
        kernel->settings.clock_hz = clock_hz;
        rc = kiln_kernel_tell_settings(kernel);
        if (rc == 0)
            rc = set_clocks(kernel, kernel->clocks.attr.sample_period);
    }
    pthread_mutex_unlock(&kernel->lock);
    return rc;
}

int kiln_kernel_set_rate(struct kiln_kernel *kernel, uint32_t hz)
{
    return kiln_kernel_set_rates(kernel, hz, hz);
}

/* ---- rates of processes ---- */

/* That there are some is told before the first and after the last. */
static int count_rates(struct kiln_kernel *kernel, uint32_t n)
{
    bool changes = !kernel->n_rates != !n;
    kernel->n_rates = n;
    kernel->settings.rates = n > 0;
    return changes ? kiln_kernel_tell_settings(kernel) : 0;
}

int kiln_kernel_put_rate(struct kiln_kernel *kernel, uint32_t pid, uint32_t hz)
{
    pthread_mutex_lock(&kernel->lock);
    int rc = 0;
    if (bpf_map_update_elem(kernel->rates_fd, &pid, &hz, BPF_EXIST) != 0) {
        rc = count_rates(kernel, kernel->n_rates + 1);
        if (rc == 0 && bpf_map_update_elem(kernel->rates_fd, &pid, &hz, BPF_ANY) != 0)
            rc = -errno;
        if (rc < 0)
            (void)count_rates(kernel, kernel->n_rates - 1);
    }
    pthread_mutex_unlock(&kernel->lock);
    return rc;
}

void kiln_kernel_drop_rate(struct kiln_kernel *kernel, uint32_t pid)
{
    pthread_mutex_lock(&kernel->lock);
    if (bpf_map_delete_elem(kernel->rates_fd, &pid) == 0)
        (void)count_rates(kernel, kernel->n_rates - 1);
    pthread_mutex_unlock(&kernel->lock);
}

/* ---- open, close ---- */

int kiln_kernel_open(const struct kiln_kernel_opts *opts, struct kiln_kernel **ret_kernel,
                     struct kiln_err *err)
{
    struct kiln_kernel *kernel = kiln_calloc(1, sizeof(*kernel));
    if (!kernel)
        return -ENOMEM;
    kernel->stats_fd = -1;
    kernel->tables.put = put_entry;
    kernel->tables.drop = drop_entry;
    pthread_mutex_init(&kernel->lock, NULL);
    kiln_kernel_quiet();
    int rc = load(kernel, opts, err);
    if (rc == 0)
        rc = set_up(kernel, opts, err);
    if (rc == 0)
        rc = start_clocks(kernel, opts, err);
    if (rc < 0) {
        kiln_kernel_close(kernel);
        return rc;
    }
    *ret_kernel = kernel;
    return 0;
}

void kiln_kernel_close(struct kiln_kernel *kernel)
{
    if (!kernel)
        return;
    kiln_percpu_close(&kernel->clocks);
    kiln_kernel_wait_close(kernel);
    if (kernel->stats_fd >= 0)
        close(kernel->stats_fd);
    if (kernel->tables.words)
        munmap(kernel->tables.words, (size_t)kernel->tables.n_words * 8);
    ring_buffer__free(kernel->ring);
    bpf_object__close(kernel->object);
    pthread_mutex_destroy(&kernel->lock);
    kiln_free(kernel);
}

/* ---- records ---- */

int kiln_kernel_fd(const struct kiln_kernel *kernel)
{
    return kernel->ring_fd;
}

/* A processor that comes later is sampled from the next look on. */
static int look_for_processors(struct kiln_kernel *kernel)
{
    pthread_mutex_lock(&kernel->lock);
    int rc = kiln_percpu_rescan(&kernel->clocks);
    atomic_store(&kernel->processors, kiln_percpu_count(&kernel->clocks));
    pthread_mutex_unlock(&kernel->lock);
    return rc;
}

int kiln_kernel_drain(struct kiln_kernel *kernel,
                      void (*visit)(void *context, const struct kiln_record *record), void *context)
{
    int rc = look_for_processors(kernel);
    kernel->visit = visit;
    kernel->context = context;
    int n = ring_buffer__consume(kernel->ring);
    return rc < 0 ? rc : n;
}

/* ---- statistics ---- */

static void add_counts(const struct kiln_kernel *kernel, uint64_t counts[KILN_COUNTS])
{
    uint32_t zero = 0;
    int cpus = libbpf_num_possible_cpus();
    uint64_t(*each)[KILN_COUNTS] = kiln_calloc(cpus > 0 ? (size_t)cpus : 1, sizeof(*each));
    if (each && cpus > 0 && bpf_map_lookup_elem(kernel->counts_fd, &zero, each) == 0) {
        for (int cpu = 0; cpu < cpus; cpu++) {
            for (int i = 0; i < KILN_COUNTS; i++)
                counts[i] += each[cpu][i];
        }
    }
    kiln_free(each);
}

uint32_t kiln_kernel_measured(int program_fd, uint64_t *ret_runs, uint64_t *ret_ns)
{
    struct bpf_prog_info info = {0};
    uint32_t len = sizeof(info);
    if (bpf_obj_get_info_by_fd(program_fd, &info, &len) != 0)
        return 0;
    *ret_runs = info.run_cnt;
    *ret_ns = info.run_time_ns;
    return info.verified_insns;
}

/* Asking takes as long as all other statistics together. */
static uint64_t directory_bytes(struct kiln_kernel *kernel)
{
    uint64_t now = kiln_clock_mono_ns();
    if (now >= kernel->directory_again_ns) {
        kernel->directory_bytes = map_bytes(kernel->directory_fd);
        kernel->directory_again_ns = now + DIRECTORY_LOOK_NS;
    }
    return kernel->directory_bytes;
}

void kiln_kernel_stats(struct kiln_kernel *kernel, struct kiln_kernel_stats *ret_stats)
{
    struct kiln_kernel_stats stats = {0};
    stats.verified = kiln_kernel_measured(kernel->program_fd, &stats.runs, &stats.run_ns);
    stats.map_bytes = kernel->fixed_bytes + directory_bytes(kernel);
    stats.mapped_bytes = kernel->mapped_bytes;
    add_counts(kernel, stats.counts);
    stats.processors = atomic_load(&kernel->processors);
    kiln_kernel_wait_stats(kernel, &stats.wait);
    *ret_stats = stats;
}

int kiln_kernel_measure(struct kiln_kernel *kernel)
{
    if (kernel->stats_fd >= 0)
        return 0;
    int fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
    if (fd < 0)
        return -errno;
    kernel->stats_fd = fd;
    return 0;
}
