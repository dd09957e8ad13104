/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table: a chained hash by pid, in which the process that has a pid now comes before those that
 * had it; and two rings in order of use, of the living and of those that are gone.
 */
#include "host/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "host/aside.h"
#include "host/identity_int.h"
#include "host/mounts.h"

enum {
    PROCESSES_MAX = 65536,
    BUCKETS_MIN = 1024,
    PROVE_EACH_SWEEP = 512,
    ROOM_EACH_TIME = 256, /* processes looked at for mappings to drop */
};
#define READ_AGAIN_NS  (1 * KILN_NS_PER_S)
#define MEMORY_DEFAULT (UINT64_C(32) << 20)

/* ---- the table ---- */

static struct kiln_proc **bucket(struct kiln_processes *all, uint32_t pid)
{
    return &all->buckets[kiln_hash_mix(0, pid) & (all->n_buckets - 1)];
}

/* Four times as many buckets, each chain in its order. */
static void widen(struct kiln_processes *all)
{
    uint32_t n = all->n_buckets;
    struct kiln_proc **old = all->buckets, **wide = kiln_calloc((size_t)n * 4, sizeof(*wide));

    if (!wide)
        return;
    all->buckets = wide;
    all->n_buckets = n * 4;
    for (uint32_t i = 0; i < n; i++) {
        for (struct kiln_proc *p = old[i], *next; p; p = next) {
            struct kiln_proc **to = bucket(all, p->pub.pid);

            next = p->next;
            while (*to)
                to = &(*to)->next;
            p->next = NULL;
            *to = p;
        }
    }
    kiln_free(old);
}

struct kiln_proc *kiln_proc_find(struct kiln_processes *all, uint32_t pid)
{
    struct kiln_proc *p = *bucket(all, pid);

    while (p && p->pub.pid != pid)
        p = p->next;
    return p;
}

void kiln_proc_void(struct kiln_processes *all, struct kiln_proc *p)
{
    if (all->on_void && (p->pub.installed_version || p->pub.spans.is_placed))
        all->on_void(all->void_context, &p->pub);
}

void kiln_proc_sync(struct kiln_proc *p)
{
    p->pub.maps = p->set ? p->set->maps : NULL;
    p->pub.n_maps = p->set ? p->set->n : 0;
    p->pub.version = p->set ? p->set->version : 0;
}

void kiln_proc_forget_maps(struct kiln_processes *all, struct kiln_proc *p)
{
    kiln_proc_void(all, p);
    kiln_map_set_unref(&all->shelf, p->set);
    p->set = NULL;
    p->unread = true;
    kiln_proc_sync(p);
}

void kiln_proc_renew(struct kiln_processes *all, struct kiln_proc *p)
{
    kiln_proc_forget_maps(all, p);
    kiln_proc_forget_identity(all, p);
    kiln_proc_forget_context(p);
    kiln_paths_unref(&all->shelf.paths, p->exe);
    p->exe = NULL;
    p->image = ++all->images;
    p->who = (struct kiln_who){0};
    p->no_files = false;
    p->patience_ns = READ_AGAIN_NS;
    p->read_ns = 0;
}

/* Forgets a process. */
static void forget(struct kiln_processes *all, struct kiln_proc *p)
{
    struct kiln_proc **at = bucket(all, p->pub.pid);

    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    kiln_link_drop(&p->use);
    all->n--;
    if (all->opened == p)
        kiln_proc_shut(all);
    kiln_proc_void(all, p);
    kiln_map_set_unref(&all->shelf, p->set);
    kiln_proc_forget_identity(all, p);
    kiln_proc_forget_context(p);
    kiln_paths_unref(&all->shelf.paths, p->exe);
    kiln_free(p);
}

/* Where there are too many: those that are gone first, then those longest not used. */
static void limit(struct kiln_processes *all)
{
    while (all->n >= all->max) {
        struct kiln_link *ring = kiln_link_empty(&all->gone) ? &all->alive : &all->gone;

        forget(all, KILN_OF_LINK(struct kiln_proc, use, ring->prev));
        kiln_metric_add(all->metric_forgotten, 1);
    }
}

struct kiln_proc *kiln_proc_new(struct kiln_processes *all, uint32_t pid)
{
    struct kiln_proc *before, *p = kiln_calloc(1, sizeof(*p)), **at;

    if (!p)
        return NULL;
    limit(all);
    if (all->n >= all->n_buckets)
        widen(all);
    before = kiln_proc_find(all, pid);
    if (before)
        kiln_proc_gone(all, before);
    p->pub.pid = pid;
    p->threads = 1;
    p->unread = true;
    p->image = ++all->images;
    p->lost = all->lost;
    p->patience_ns = READ_AGAIN_NS;
    at = bucket(all, pid);
    p->next = *at;
    *at = p;
    kiln_link_init(&p->use);
    kiln_link_first(&all->alive, &p->use);
    all->n++;
    return p;
}

void kiln_proc_gone(struct kiln_processes *all, struct kiln_proc *p)
{
    kiln_proc_note_end(p);
    p->pub.gone = true;
    p->swept = false;
    kiln_link_first(&all->gone, &p->use);
}

void kiln_proc_back(struct kiln_processes *all, struct kiln_proc *p)
{
    p->pub.gone = false;
    kiln_link_first(&all->alive, &p->use);
}

void kiln_proc_make_room(struct kiln_processes *all, const struct kiln_proc *but)
{
    struct kiln_link *at = all->alive.prev;

    for (int i = 0; i < ROOM_EACH_TIME && at != &all->alive; i++, at = at->prev) {
        struct kiln_proc *p = KILN_OF_LINK(struct kiln_proc, use, at);

        if (p == but || !p->set)
            continue;
        kiln_proc_forget_maps(all, p);
        kiln_metric_add(all->metric_forgotten, 1);
        if (all->shelf.budget.used < all->shelf.budget.limit / 2)
            break;
    }
}

/* ---- of a sample ---- */

/* Whether the process that has the pid is the one that began then. */
static bool is_it(struct kiln_proc *p, const struct kiln_record *record)
{
    if (!p->pub.start_ns && !p->pub.gone)
        p->pub.start_ns = record->start_ns; /* nobody else had the pid meanwhile: events told */
    return p->pub.start_ns == record->start_ns || !record->start_ns;
}

static struct kiln_proc *process_of(struct kiln_processes *all, const struct kiln_record *record)
{
    struct kiln_proc *p = *bucket(all, record->pid);

    while (p && (p->pub.pid != record->pid || !is_it(p, record)))
        p = p->next;
    if (p)
        return p;
    p = kiln_proc_new(all, record->pid);
    if (p)
        p->pub.start_ns = record->start_ns;
    return p;
}

/* Another era is another program.  False: the sample is of the one before. */
static bool keep_era(struct kiln_processes *all, struct kiln_proc *p,
                     const struct kiln_record *record)
{
    if (p->pub.era != record->era) {
        if (record->time_ns < p->sample_ns)
            return false;
        if (p->pub.era && !p->exec_told)
            kiln_proc_renew(all, p); /* its event was lost, or comes late */
        p->exec_told = false;
    }
    p->pub.era = record->era;
    if (record->time_ns > p->sample_ns)
        p->sample_ns = record->time_ns;
    return true;
}

/* To be read, but not more often than once a second: it may be too large to be kept. */
static bool is_due(const struct kiln_processes *all, const struct kiln_proc *p)
{
    if (!p->unread && p->lost == all->lost)
        return false;
    return !p->read_ns || kiln_clock_mono_ns() - p->read_ns > READ_AGAIN_NS;
}

struct kiln_process *kiln_processes_of(struct kiln_processes *all, const struct kiln_record *record)
{
    struct kiln_proc *p;

    kiln_proc_shut(all);
    if (record->flags & KILN_RECORD_KERNEL_THREAD)
        return &all->kernel->pub;
    p = process_of(all, record);
    if (!p || !keep_era(all, p, record))
        return NULL;
    kiln_link_first(p->pub.gone ? &all->gone : &all->alive, &p->use);
    p->cgroup = record->cgroup;
    p->tid = record->tid;
    if (record->who.ns_pid) {
        p->who = record->who;
        p->who_cgroup = record->cgroup;
    } else if (p->who_cgroup != record->cgroup) {
        p->who.cgroups = 0; /* it was moved */
    }
    if (!p->comm[0])
        memcpy(p->comm, record->comm, sizeof(p->comm) - 1);
    if (is_due(all, p))
        kiln_proc_read_maps(all, p);
    if (p->set && kiln_map_set_settle(&all->shelf, p->set) < 0)
        kiln_proc_forget_maps(all, p);
    kiln_proc_sync(p);
    return &p->pub;
}

/* ---- mappings ---- */

struct kiln_map *kiln_process_map_known(struct kiln_process *process, uint64_t address)
{
    struct kiln_proc *p = kiln_proc_of(process);

    kiln_proc_sync(p);
    return kiln_map_set_find(p->set, address);
}

/* Reads the mappings again, less and less often where that does not help. */
static struct kiln_map *find_again(struct kiln_processes *all, struct kiln_proc *p,
                                   uint64_t address)
{
    struct kiln_map *map;

    if (p->no_files || p->pub.gone || kiln_clock_mono_ns() - p->read_ns < p->patience_ns)
        return NULL;
    kiln_proc_read_maps(all, p);
    map = kiln_map_set_find(p->set, address);
    p->patience_ns = map ? READ_AGAIN_NS : p->patience_ns * 2;
    return map;
}

struct kiln_map *kiln_process_map(struct kiln_processes *all, struct kiln_process *process,
                                  uint64_t address)
{
    struct kiln_proc *p = kiln_proc_of(process);
    struct kiln_map *map;

    if (p == all->kernel)
        return NULL;
    if (p->set && kiln_map_set_settle(&all->shelf, p->set) < 0)
        kiln_proc_forget_maps(all, p);
    map = kiln_map_set_find(p->set, address);
    if (!map)
        map = find_again(all, p, address);
    if (map) {
        kiln_proc_open_map(all, p, map);
        map = kiln_map_set_find(p->set, address);
    }
    kiln_proc_sync(p);
    return map;
}

/* ---- start, sweep, end ---- */

int kiln_processes_scan(struct kiln_processes *all)
{
    int fd = openat(all->proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    int r = 0;

    if (!dir) {
        r = -errno;
        if (fd >= 0)
            close(fd);
        return r;
    }
    while (r == 0 && all->n < all->max && (entry = readdir(dir))) {
        uint64_t pid;

        if (entry->d_name[0] < '1' || entry->d_name[0] > '9' ||
            kiln_str_parse_u64(kiln_str_of(entry->d_name), &pid) < 0 || pid > INT32_MAX)
            continue;
        if (!kiln_proc_find(all, (uint32_t)pid) && !kiln_proc_new(all, (uint32_t)pid))
            r = -ENOMEM;
    }
    closedir(dir);
    return r;
}

/* After events were lost, some of those that are taken for alive may be gone. */
static void prove(struct kiln_processes *all)
{
    struct kiln_link *at = all->alive.prev, *prev;

    for (int i = 0; i < PROVE_EACH_SWEEP && all->unproven && at != &all->alive; i++, at = prev) {
        struct kiln_proc *p = KILN_OF_LINK(struct kiln_proc, use, at);
        struct kiln_procfs_stat stat;

        prev = at->prev;
        all->unproven--;
        if (kiln_proc_stat(all, p->pub.pid, &stat) < 0)
            kiln_proc_gone(all, p);
        else
            kiln_link_first(&all->alive, &p->use);
    }
}

/* Its last samples may come a little behind the event of its end: with the sweep after next. */
static void sweep_gone(struct kiln_processes *all)
{
    for (struct kiln_link *at = all->gone.prev, *prev; at != &all->gone; at = prev) {
        struct kiln_proc *p = KILN_OF_LINK(struct kiln_proc, use, at);

        prev = at->prev;
        if (p->swept)
            forget(all, p);
        else
            p->swept = true;
    }
}

void kiln_processes_sweep(struct kiln_processes *all)
{
    kiln_proc_shut(all);
    sweep_gone(all);
    prove(all);
    kiln_objects_sweep(all->objects);
    kiln_metric_set(all->metric_known, all->n);
}

void kiln_processes_on_void(struct kiln_processes *all,
                            void (*on_void)(void *context, struct kiln_process *process),
                            void *context)
{
    all->on_void = on_void;
    all->void_context = context;
}

void kiln_processes_on_object(struct kiln_processes *all,
                              void (*on_gone)(void *context, struct kiln_object *object),
                              void *context)
{
    kiln_objects_on_gone(all->objects, on_gone, context);
}

static int copy_env_name(struct kiln_processes *all, const char *name)
{
    size_t size = strlen(name) + 1;
    char *copy = kiln_malloc(size);

    if (!copy)
        return -ENOMEM;
    memcpy(copy, name, size);
    all->env_names[all->n_env_names++] = copy;
    return 0;
}

/* Those that are allowed, then those that rules name. */
static const char *env_name(const struct kiln_processes_opts *opts, uint32_t i)
{
    uint32_t n = opts->env_names ? opts->n_env_names : 0;

    while (!opts->env_names && kiln_env_usual(n))
        n++;
    if (i < n)
        return opts->env_names ? opts->env_names[i] : kiln_env_usual(i);
    return opts->rules ? kiln_identity_rules_env(opts->rules, i - n) : NULL;
}

static int copy_env_names(struct kiln_processes *all, const struct kiln_processes_opts *opts)
{
    uint32_t n = 0;
    int r = 0;

    while (env_name(opts, n))
        n++;
    all->env_names = kiln_calloc(n ? n : 1, sizeof(*all->env_names));
    if (!all->env_names)
        return -ENOMEM;
    while (r == 0 && all->n_env_names < n)
        r = copy_env_name(all, env_name(opts, all->n_env_names));
    all->n_env_shown = opts->env_names ? opts->n_env_names : 0;
    return r;
}

static int set_up(struct kiln_processes *all, const struct kiln_processes_opts *opts)
{
    uint64_t memory = opts->memory_bytes ? opts->memory_bytes : MEMORY_DEFAULT;
    int r = kiln_objects_new(opts->objects_max, memory / 8 * 3, opts->metrics, &all->objects);

    all->shelf.paths.bytes_max = memory / 16;
    all->identity_bytes_max = memory / 16;
    all->shelf.budget.limit = memory / 2;
    all->rules = opts->rules;
    all->own_users = kiln_space_of(AT_FDCWD, "/proc/self/ns/user");
    all->own_mounts = kiln_space_of(AT_FDCWD, "/proc/self/ns/mnt");
    if (r == 0)
        r = kiln_mounts_new(&all->mounts);
    if (r == 0)
        r = kiln_aside_new(opts->metrics, &all->aside);
    if (r == 0)
        r = copy_env_names(all, opts);
    if (r == 0)
        r = kiln_containers_new(&all->containers);
    if (r == 0)
        r = kiln_places_new(&all->places);
    if (r == 0)
        r = kiln_identity_kernel(&all->kernel_identity);
    if (r < 0)
        return r;
    all->n_buckets = BUCKETS_MIN;
    all->buckets = kiln_calloc(all->n_buckets, sizeof(struct kiln_proc *));
    all->kernel = kiln_calloc(1, sizeof(*all->kernel));
    all->environ_text = kiln_malloc(KILN_ENVIRON_MAX);
    if (!all->buckets || !all->kernel || !all->environ_text)
        return -ENOMEM;
    all->kernel->pub.identity = kiln_identity_ref(all->kernel_identity);
    all->proc = open(opts->proc ? opts->proc : "/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return all->proc < 0 ? -errno : 0;
}

static void name_metrics(struct kiln_processes *all, struct kiln_metrics *metrics)
{
    all->metric_known = kiln_metric_gauge(metrics, "kiln_host_known_processes",
                                          "Processes of the host that are known.");
    all->metric_reads =
        kiln_metric_counter(metrics, "kiln_host_process_reads_total",
                            "Times that the mappings of a process were read from /proc.");
    all->metric_forgotten =
        kiln_metric_counter(metrics, "kiln_host_processes_forgotten_total",
                            "Processes whose mappings were dropped because there were too many.");
    all->metric_unopened = kiln_metric_counter(metrics, "kiln_host_objects_unopened_total",
                                               "Mapped files that could not be opened.");
}

int kiln_processes_new(const struct kiln_processes_opts *opts,
                       struct kiln_processes **ret_processes)
{
    struct kiln_processes *all = kiln_calloc(1, sizeof(*all));
    int r;

    if (!all)
        return -ENOMEM;
    all->proc = -1;
    all->max = opts->processes_max ? opts->processes_max : PROCESSES_MAX;
    kiln_link_init(&all->alive);
    kiln_link_init(&all->gone);
    name_metrics(all, opts->metrics);
    r = set_up(all, opts);
    if (r < 0) {
        kiln_processes_free(all);
        return r;
    }
    *ret_processes = all;
    return 0;
}

uint64_t kiln_processes_bytes(const struct kiln_processes *processes)
{
    return processes->shelf.budget.used + processes->shelf.paths.bytes + processes->identity_bytes +
           kiln_objects_bytes(processes->objects);
}

void kiln_processes_free(struct kiln_processes *all)
{
    if (!all)
        return;
    while (!kiln_link_empty(&all->gone))
        forget(all, KILN_OF_LINK(struct kiln_proc, use, all->gone.next));
    while (!kiln_link_empty(&all->alive))
        forget(all, KILN_OF_LINK(struct kiln_proc, use, all->alive.next));
    kiln_proc_shut(all);
    kiln_free(all->environ_text);
    kiln_objects_free(all->objects);
    kiln_mounts_free(all->mounts);
    kiln_aside_free(all->aside);
    if (all->kernel)
        kiln_identity_unref(all->kernel->pub.identity);
    kiln_identity_unref(all->kernel_identity);
    kiln_paths_forget(&all->shelf.paths);
    for (uint32_t i = 0; i < all->n_env_names; i++)
        kiln_free(all->env_names[i]);
    kiln_free(all->env_names);
    kiln_containers_free(all->containers);
    kiln_places_free(all->places);
    kiln_free(all->kernel);
    kiln_free(all->buckets);
    if (all->proc >= 0)
        close(all->proc);
    kiln_free(all);
}
