/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two threads, with a kernel, processes and names that this file plays: what is gathered, cut,
 * dropped and told.  tests/host/host_test.c has the real ones.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "drawn.h"
#include "host/contexts.h"
#include "host/host.h"
#include "host/process.h"
#include "host/rewind.h"
#include "host/tables.h"
#include "symbol/resolver.h"
#include "test.h"

/* ---- a kernel: `left` more records, one a drain, while its clock runs ---- */

static int kernel_refuses;
static int kernel_fd = -1; /* wakes the reader each time: it does not rest */
static _Atomic uint32_t clock_hz;
static _Atomic uint32_t left;
static bool wait_hook;       /* it can have one */
static _Atomic bool hook_on; /* it is there */
static uint64_t waits_since; /* when those that come began; 0: just now */
static enum kiln_wait_way way = KILN_WAIT_WAY_EXIT;

int kiln_kernel_open(const struct kiln_kernel_opts *opts, struct kiln_kernel **ret_kernel,
                     struct kiln_err *err)
{
    CHECK(opts->paused);
    if (kernel_refuses)
        return kiln_err_set(err, kernel_refuses, NULL, "needs CAP_BPF");
    kernel_fd = eventfd(0, EFD_CLOEXEC);
    wait_hook = opts->off_cpu;
    *ret_kernel = (void *)&kernel_fd;
    return 0;
}

void kiln_kernel_close(struct kiln_kernel *kernel)
{
    if (kernel)
        close(kernel_fd);
}

int kiln_kernel_set_rate(struct kiln_kernel *kernel, uint32_t hz)
{
    (void)kernel;
    atomic_store(&clock_hz, hz);
    return 0;
}

int kiln_kernel_wait_attach(struct kiln_kernel *kernel, bool on)
{
    (void)kernel;
    atomic_store(&hook_on, on);
    return 0;
}

int kiln_kernel_wait_period(struct kiln_kernel *kernel, uint64_t period_ns)
{
    (void)kernel;
    CHECK(period_ns > 0);
    return 0;
}

void kiln_kernel_wait_stats(const struct kiln_kernel *kernel, struct kiln_wait_stats *ret_stats)
{
    (void)kernel;
    *ret_stats = (struct kiln_wait_stats){.way = wait_hook ? way : KILN_WAIT_WAY_NONE};
}

/* A pipe was waited for, 30 ms of which a quarter in the queue of a processor. */
static void make_wait(struct kiln_record *record)
{
    record->kind = KILN_KIND_WAIT;
    record->hz = 0;
    record->wait_ns = 40000000;
    record->runnable_ns = 10000000;
    record->began_ns = waits_since ? waits_since : record->time_ns;
    record->syscall = SYS_read + 1;
    record->wait_file = S_IFIFO >> 12;
}

int kiln_kernel_set_rates(struct kiln_kernel *kernel, uint32_t hz, uint32_t fastest_hz)
{
    (void)hz;
    return kiln_kernel_set_rate(kernel, fastest_hz);
}

int kiln_kernel_put_rate(struct kiln_kernel *kernel, uint32_t pid, uint32_t hz)
{
    (void)kernel, (void)pid, (void)hz;
    return 0;
}

void kiln_kernel_drop_rate(struct kiln_kernel *kernel, uint32_t pid)
{
    (void)kernel, (void)pid;
}

/* Once as it leaves, and once as it comes back, with a chance of a quarter. */
static void visit_twice(struct kiln_record *record, void *context,
                        void (*visit)(void *context, const struct kiln_record *record))
{
    uint64_t wait_ns = record->wait_ns, runnable_ns = record->runnable_ns;

    record->flags = KILN_RECORD_BEGINS;
    record->chance = UINT32_MAX / 4;
    record->wait_ns = record->runnable_ns = 0;
    visit(context, record);
    record->flags = KILN_RECORD_ENDS;
    record->size = sizeof(*record);
    record->n_kernel = record->n_user = 0;
    record->wait_ns = record->between_ns = wait_ns;
    record->runnable_ns = runnable_ns;
    visit(context, record);
}

int kiln_kernel_fd(const struct kiln_kernel *kernel)
{
    (void)kernel;
    return kernel_fd;
}

int kiln_kernel_drain(struct kiln_kernel *kernel,
                      void (*visit)(void *context, const struct kiln_record *record), void *context)
{
    static _Alignas(8) unsigned char room[sizeof(struct kiln_record) + 32];
    struct kiln_record *record = (struct kiln_record *)room;

    (void)kernel;
    CHECK_OK(eventfd_write(kernel_fd, 1));
    if (!atomic_load(&clock_hz) || !atomic_load(&left))
        return 0;
    atomic_fetch_sub(&left, 1);
    *record = (struct kiln_record){.size = sizeof(room),
                                   .n_kernel = 2,
                                   .n_user = 2,
                                   .pid = 7,
                                   .tid = 8,
                                   .time_ns = kiln_clock_mono_ns(),
                                   .weight = 1,
                                   .hz = atomic_load(&clock_hz),
                                   .comm = "worker"};
    memcpy(record->frames, (uint64_t[]){0xff10, 0xff21, 0x1010, 0x1020}, 32);
    if (atomic_load(&hook_on))
        make_wait(record);
    if (atomic_load(&hook_on) && way == KILN_WAIT_WAY_SWITCH)
        visit_twice(record, context, visit);
    else
        visit(context, record);
    return 1;
}

int kiln_kernel_put_context(struct kiln_kernel *kernel, uint32_t pid,
                            const struct kiln_context_place *place)
{
    (void)kernel, (void)pid, (void)place;
    return 0;
}

void kiln_kernel_drop_context(struct kiln_kernel *kernel, uint32_t pid, uint64_t era)
{
    (void)kernel, (void)pid, (void)era;
}

void kiln_contexts_follow(struct kiln_contexts *contexts, struct kiln_process *process,
                          uint64_t now_ns)
{
    (void)contexts, (void)process, (void)now_ns;
}

void kiln_contexts_drop(struct kiln_contexts *contexts, struct kiln_process *process)
{
    (void)contexts, (void)process;
}

struct kiln_table_memory *kiln_kernel_tables(struct kiln_kernel *kernel)
{
    (void)kernel;
    return NULL;
}

void kiln_kernel_stats(struct kiln_kernel *kernel, struct kiln_kernel_stats *ret_stats)
{
    (void)kernel;
    *ret_stats = (struct kiln_kernel_stats){
        .counts = {[KILN_COUNT_LOST] = 3, [KILN_COUNT_NS] = 7200 * KILN_NS_PER_S},
        .map_bytes = 30000000,
        .mapped_bytes = 10};
}

int kiln_kernel_measure(struct kiln_kernel *kernel)
{
    (void)kernel;
    return 0;
}

int kiln_sideband_open(uint32_t pages, struct kiln_sideband **ret_sideband, struct kiln_err *err)
{
    (void)pages, (void)err;
    *ret_sideband = NULL;
    return 0;
}

void kiln_sideband_close(struct kiln_sideband *sideband)
{
    (void)sideband;
}

void kiln_sideband_pause(struct kiln_sideband *sideband, bool pauses)
{
    (void)sideband, (void)pauses;
}

int kiln_sideband_fd(const struct kiln_sideband *sideband)
{
    (void)sideband;
    return -1;
}

int kiln_sideband_look(struct kiln_sideband *sideband)
{
    (void)sideband;
    return 0;
}

uint32_t kiln_sideband_drain(struct kiln_sideband *sideband, uint64_t before_ns,
                             void (*visit)(void *context, const struct kiln_event *event),
                             void *context)
{
    (void)sideband, (void)before_ns, (void)visit, (void)context;
    return 0;
}

/* ---- one process, with one file at 0x1000 ---- */

static struct kiln_object file = {
    .refs = 1, .id = 1, .path = "/bin/app", .file_hash = "00", .fd = -1};
static struct kiln_identity app = {
    .refs = 1, .pid = 7, .name = "app", .path = "/bin/app", .command = "app", .owner = ""};
static struct kiln_process process = {.pid = 7, .identity = &app};
static struct kiln_map map = {.start = 0x1000, .end = 0x2000, .bias = 0x1000, .object = &file};
static bool process_is_lost;

struct kiln_object *kiln_object_ref(struct kiln_object *object)
{
    atomic_fetch_add(&object->refs, 1);
    return object;
}

void kiln_object_unref(struct kiln_object *object)
{
    if (object)
        atomic_fetch_sub(&object->refs, 1);
}

int kiln_object_dup(struct kiln_object *object, int *ret_fd)
{
    (void)object, (void)ret_fd;
    return -ENOENT;
}

void kiln_object_shut(const struct kiln_object *object, int fd)
{
    (void)object;
    close(fd);
}

struct kiln_identity *kiln_identity_ref(struct kiln_identity *identity)
{
    atomic_fetch_add(&identity->refs, 1);
    return identity;
}

void kiln_identity_unref(struct kiln_identity *identity)
{
    if (identity)
        atomic_fetch_sub(&identity->refs, 1);
}

int kiln_processes_new(const struct kiln_processes_opts *opts,
                       struct kiln_processes **ret_processes)
{
    (void)opts;
    *ret_processes = (void *)&process;
    return 0;
}

void kiln_processes_free(struct kiln_processes *processes)
{
    (void)processes;
}

int kiln_processes_scan(struct kiln_processes *processes)
{
    (void)processes;
    return 0;
}

void kiln_processes_apply(struct kiln_processes *processes, const struct kiln_event *event)
{
    (void)processes, (void)event;
}

struct kiln_process *kiln_processes_of(struct kiln_processes *processes,
                                       const struct kiln_record *record)
{
    (void)processes;
    CHECK_EQ(record->pid, 7);
    return process_is_lost ? NULL : &process;
}

void kiln_processes_sweep(struct kiln_processes *processes)
{
    (void)processes;
}

void kiln_processes_on_void(struct kiln_processes *processes,
                            void (*on_void)(void *context, struct kiln_process *process),
                            void *context)
{
    (void)processes, (void)on_void, (void)context;
}

void kiln_processes_on_object(struct kiln_processes *processes,
                              void (*on_gone)(void *context, struct kiln_object *object),
                              void *context)
{
    (void)processes, (void)on_gone, (void)context;
}

uint64_t kiln_processes_bytes(const struct kiln_processes *processes)
{
    (void)processes;
    return 1000000;
}

struct kiln_map *kiln_process_map(struct kiln_processes *processes, struct kiln_process *of,
                                  uint64_t address)
{
    (void)processes, (void)of;
    return address >= map.start && address < map.end ? &map : NULL;
}

struct kiln_identity *kiln_process_identity(struct kiln_processes *processes,
                                            struct kiln_process *of)
{
    (void)processes;
    return of->identity;
}

struct kiln_object *kiln_process_jitdump(struct kiln_processes *processes, struct kiln_process *of)
{
    (void)processes, (void)of;
    return NULL;
}

int kiln_process_open_perf_map(const struct kiln_identity *identity, int *ret_fd)
{
    (void)identity, (void)ret_fd;
    return -ENOENT;
}

/* ---- tables, walks and names ---- */

int kiln_tables_new(struct kiln_table_memory *memory, struct kiln_metrics *metrics,
                    struct kiln_tables **ret_tables)
{
    (void)memory, (void)metrics;
    *ret_tables = NULL;
    return 0;
}

void kiln_tables_free(struct kiln_tables *tables)
{
    (void)tables;
}

void kiln_tables_drop_process(struct kiln_tables *tables, struct kiln_process *of)
{
    (void)tables, (void)of;
}

void kiln_tables_drop_object(struct kiln_tables *tables, struct kiln_object *object)
{
    (void)tables, (void)object;
}

void kiln_tables_stats(const struct kiln_tables *tables, struct kiln_tables_stats *ret_stats)
{
    (void)tables;
    *ret_stats = (struct kiln_tables_stats){.bytes = 100, .used_bytes = 40};
}

void kiln_rewind(struct kiln_tables *tables, struct kiln_processes *processes,
                 struct kiln_process *of, const struct kiln_record *record,
                 struct kiln_walked *ret_walked)
{
    (void)tables, (void)processes, (void)of;
    ret_walked->n = record->n_user;
    ret_walked->end = record->end;
    memcpy(ret_walked->frames, record->frames + record->n_kernel, record->n_user * 8);
}

static bool names_refuse;

int kiln_resolver_new(const struct kiln_resolver_opts *opts, struct kiln_resolver **ret_resolver,
                      struct kiln_err *err)
{
    (void)opts;
    if (names_refuse)
        return kiln_err_set(err, -ENOENT, NULL, "there is no program");
    *ret_resolver = (void *)&names_refuse;
    return 0;
}

void kiln_resolver_free(struct kiln_resolver *resolver)
{
    (void)resolver;
}

void kiln_resolver_cost(const struct kiln_resolver *resolver, struct kiln_resolver_cost *ret_cost)
{
    (void)resolver;
    *ret_cost = (struct kiln_resolver_cost){
        .cpu_ns = 3600 * KILN_NS_PER_S, .child_bytes = 19000000, .kept_bytes = 1000000};
}

/* Every address is called by its number. */
int kiln_resolver_ask(struct kiln_resolver *resolver, const struct kiln_source *source,
                      const uint64_t *addresses, uint32_t n, struct kiln_name *names)
{
    static struct kiln_name_frame frames[64];
    static char texts[64][24];

    (void)resolver, (void)source;
    CHECK(n <= 64);
    for (uint32_t i = 0; i < n; i++) {
        snprintf(texts[i], sizeof(texts[i]), "at_%llx", (unsigned long long)addresses[i]);
        frames[i] = (struct kiln_name_frame){.function = kiln_str_of(texts[i])};
        names[i] = (struct kiln_name){.frames = frames + i, .n = 1};
    }
    return 0;
}

/* ---- a consumer that may hold what it gets ---- */

struct holder {
    struct kiln_consumer consumer;
    pthread_mutex_t lock;
    pthread_cond_t came;
    struct kiln_delivery *held[64];
    struct kiln_batch *kept[64]; /* the first ones; of the others: */
    int64_t total_of_others;
    uint32_t n_held, n_kept, n_came;
    bool hold;
};

static struct holder holder = {.lock = PTHREAD_MUTEX_INITIALIZER, .came = PTHREAD_COND_INITIALIZER};

static int64_t total_of(const struct kiln_batch *batch)
{
    int64_t total = 0;

    for (uint32_t i = 0; i < batch->n_samples; i++)
        total += kiln_sample_total(batch, &batch->samples[i]);
    return total;
}

static void consume(struct kiln_consumer *consumer, struct kiln_delivery *delivery)
{
    struct holder *h = (struct holder *)consumer;
    bool hold;

    pthread_mutex_lock(&h->lock);
    hold = h->hold;
    h->n_came++;
    if (h->n_kept < 64)
        h->kept[h->n_kept++] = kiln_batch_ref(delivery->batch);
    else
        h->total_of_others += total_of(delivery->batch);
    if (hold)
        h->held[h->n_held++] = delivery;
    pthread_cond_broadcast(&h->came);
    pthread_mutex_unlock(&h->lock);
    if (!hold)
        kiln_delivery_end(delivery, &(struct kiln_outcome){0});
}

static void wait_for_batches(uint32_t n)
{
    pthread_mutex_lock(&holder.lock);
    while (holder.n_came < n)
        pthread_cond_wait(&holder.came, &holder.lock);
    pthread_mutex_unlock(&holder.lock);
}

static void wait_for_samples_left(uint32_t n)
{
    while (atomic_load(&left) > n)
        sched_yield();
}

static void let_go(void)
{
    struct kiln_delivery *held[64];
    uint32_t n;

    pthread_mutex_lock(&holder.lock);
    holder.hold = false;
    n = holder.n_held;
    memcpy(held, holder.held, sizeof(held));
    holder.n_held = 0;
    pthread_mutex_unlock(&holder.lock);
    while (n)
        kiln_delivery_end(held[--n], &(struct kiln_outcome){0});
}

static int64_t forget(void)
{
    int64_t total = holder.total_of_others;

    while (holder.n_kept) {
        struct kiln_batch *batch = holder.kept[--holder.n_kept];

        total += total_of(batch);
        kiln_batch_unref(batch);
    }
    holder.n_came = 0;
    holder.total_of_others = 0;
    return total;
}

static struct kiln_host *start(struct kiln_host_opts opts)
{
    struct kiln_host *host;

    holder.consumer.consume = consume;
    opts.consumer = &holder.consumer;
    CHECK_OK(kiln_host_start(&opts, &host, NULL));
    return host;
}

static const char *drawn(struct kiln_batch *batch)
{
    struct kiln_view *view = kiln_test_view(kiln_batch_ref(batch), NULL);
    const char *text = kiln_test_view_text(view);

    kiln_view_free(view);
    return text;
}

/* ---- tests ---- */

TEST(host, samples_become_named_stacks_and_callers_in_the_kernel_are_moved_into_their_call)
{
    struct kiln_host *host;
    struct kiln_host_status status;

    atomic_store(&left, 4);
    host = start((struct kiln_host_opts){.hz = 100, .every_ns = KILN_NS_PER_MS});
    wait_for_batches(1);
    kiln_host_finish(host);
    kiln_host_status(host, &status);
    kiln_host_stop(host);
    CHECK(strncmp(drawn(holder.kept[0]), "at_20;at_10;at_ff20;at_ff10 ", 28) == 0);
    CHECK_EQ(status.ends.by_end[KILN_END_COMPLETE] + atomic_load(&left), 4);
    CHECK_EQ(status.ends.lost, 3);
    CHECK_EQ(status.unwind_used_bytes, 40);
    CHECK(status.cpu_ns > 10800 * KILN_NS_PER_S); /* names, the kernel, the threads themselves */
    CHECK(status.cpu_ns < 10860 * KILN_NS_PER_S);
    CHECK(status.memory_bytes >= 51000000); /* the child, what it found, maps, tables */
    CHECK_EQ((uint64_t)forget(), status.samples);
    CHECK_EQ(file.refs, 1);
    CHECK_EQ(app.refs, 1);
}

TEST(host, tells_the_cost_of_its_whole_process_where_it_is_alone)
{
    enum { BALLAST = 64 << 20 };
    struct kiln_host_status status;
    struct kiln_host *host;
    char *ballast = kiln_malloc(BALLAST);
    uint64_t began_ns;
    struct timespec t;

    CHECK(ballast);
    memset(ballast, 1, BALLAST);
    CHECK_OK(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t));
    began_ns = kiln_timespec_ns(t);
    atomic_store(&left, 4);
    host = start((struct kiln_host_opts){.hz = 100, .every_ns = KILN_NS_PER_MS, .alone = true});
    wait_for_batches(1);
    kiln_host_finish(host);
    kiln_host_status(host, &status);
    kiln_host_stop(host);
    CHECK(status.cpu_ns >= 10800 * KILN_NS_PER_S + began_ns);
    CHECK(status.memory_bytes >= 49000000 + BALLAST);
    kiln_free(ballast);
    forget();
}

TEST(host, a_wait_is_its_blocked_part_with_a_reason_and_its_runnable_part)
{
    struct kiln_host *host;
    struct kiln_batch *batch;

    atomic_store(&left, 1);
    host = start((struct kiln_host_opts){
        .hz = 100, .every_ns = KILN_NS_PER_MS, .off_cpu = true, .cpu_budget = 0.01});
    wait_for_batches(1);
    kiln_host_stop(host);
    batch = holder.kept[0];
    CHECK_EQ(batch->n_samples, 2);
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t set = batch->samples[i].attrs;
        struct kiln_str how = kiln_set_text(batch, set, KILN_STR("thread.state"));
        struct kiln_str reason = kiln_set_text(batch, set, KILN_STR("wait.reason"));
        bool runnable = kiln_str_eq(how, KILN_STR("runnable"));

        CHECK(runnable || kiln_str_eq(how, KILN_STR("blocked")));
        CHECK(kiln_str_eq(reason, runnable ? KILN_STR("") : KILN_STR("pipe")));
        CHECK_EQ(kiln_sample_total(batch, &batch->samples[i]), runnable ? 10000000 : 30000000);
    }
    CHECK(!atomic_load(&hook_on));
    forget();
}

TEST(host, a_wait_in_two_records_has_the_stack_of_the_first_and_the_time_of_the_second)
{
    struct kiln_host *host;

    atomic_store(&left, 1);
    way = KILN_WAIT_WAY_SWITCH;
    host = start((struct kiln_host_opts){.hz = 100, .every_ns = KILN_NS_PER_MS, .off_cpu = true});
    wait_for_batches(1);
    kiln_host_stop(host);
    way = KILN_WAIT_WAY_EXIT;
    CHECK_EQ(holder.kept[0]->n_samples, 2);
    CHECK(strncmp(drawn(holder.kept[0]), "at_20;at_10;at_ff20;at_ff10 160000000", 37) == 0);
    CHECK_EQ(forget(), 160000000);
    CHECK_EQ(file.refs, 1);
    CHECK_EQ(app.refs, 1);
}

TEST(host, a_wait_that_began_before_anybody_looked_is_not_counted)
{
    struct kiln_host *host;

    atomic_store(&left, 1);
    waits_since = 1;
    host = start((struct kiln_host_opts){.hz = 100, .every_ns = KILN_NS_PER_MS, .off_cpu = true});
    wait_for_samples_left(0);
    kiln_host_stop(host);
    waits_since = 0;
    CHECK_EQ(holder.n_kept, 0);
    forget();
}

TEST(host, a_change_of_rate_begins_another_batch)
{
    struct kiln_host *host;
    bool slow = false, fast = false;

    atomic_store(&left, 1000000);
    host = start((struct kiln_host_opts){.hz = 100, .every_ns = 3600 * KILN_NS_PER_S});
    wait_for_samples_left(999990);
    CHECK_OK(kiln_host_set_rate(host, 200));
    wait_for_batches(1);
    wait_for_samples_left(
        atomic_load(&left) -
        10); /* the clock stood still when the batch was cut: these are new ones */
    kiln_host_stop(host);
    atomic_store(&left, 0);
    for (uint32_t i = 0; i < holder.n_kept; i++) {
        slow |= holder.kept[i]->profiles[0].period == 10000000;
        fast |= holder.kept[i]->profiles[0].period == 5000000;
    }
    CHECK_EQ(holder.n_kept, 2);
    CHECK(slow && fast);
    forget();
}

TEST(host, what_fills_its_memory_does_not_wait_for_its_time)
{
    struct kiln_host *host;
    struct kiln_host_status status;

    atomic_store(&left, 1000000);
    host = start((struct kiln_host_opts){
        .hz = 100, .every_ns = 3600 * KILN_NS_PER_S, .memory_bytes = 24000});
    /* Of the 4,000 bytes for a batch, the first entries of each table take more than half; by time
     * there would be one, and the next in an hour.  On a busy machine there are more than are kept.
     */
    wait_for_batches(100);
    atomic_store(&left, 0);
    kiln_host_finish(host);
    kiln_host_status(host, &status);
    kiln_host_stop(host);
    CHECK_EQ((uint64_t)forget() + status.dropped, status.samples);
}

TEST(host, a_consumer_that_is_stuck_costs_the_oldest_and_nothing_else)
{
    struct kiln_host *host;
    struct kiln_host_status status = {0};
    uint64_t got;

    holder.hold = true;
    atomic_store(&left, 1000000);
    host = start((struct kiln_host_opts){.hz = 100, .every_ns = 1});
    wait_for_batches(3);
    while (status.ends.lost <= 3 + 10)
        kiln_host_status(host, &status);
    CHECK_EQ(holder.n_kept, 3); /* no more than three are on their way */
    atomic_store(&left, 0);
    let_go();
    kiln_host_finish(host);
    kiln_host_status(host, &status);
    kiln_host_stop(host);
    got = (uint64_t)forget();
    CHECK_EQ(got + status.ends.lost - 3, status.samples);
    CHECK_EQ(status.dropped, status.ends.lost - 3);
    CHECK_EQ(app.refs, 1);
}

TEST(host, without_names_it_goes_on)
{
    struct kiln_host *host;

    names_refuse = true;
    atomic_store(&left, 1);
    host = start((struct kiln_host_opts){.hz = 100});
    wait_for_samples_left(0);
    kiln_host_stop(host);
    names_refuse = false;
    CHECK(strncmp(drawn(holder.kept[0]), "app+0x20;app+0x10;[kernel] ", 27) == 0);
    CHECK_EQ(forget(), 1);
}

TEST(host, a_sample_whose_process_left_no_trace_is_lost_and_counted)
{
    struct kiln_host_status status;
    struct kiln_host *host;

    process_is_lost = true;
    atomic_store(&left, 5);
    host = start((struct kiln_host_opts){.hz = 100});
    wait_for_samples_left(0);
    kiln_host_finish(host);
    kiln_host_status(host, &status);
    kiln_host_stop(host);
    process_is_lost = false;
    CHECK_EQ(status.ends.lost, 3 + 5);
    CHECK_EQ(holder.n_kept, 0);
}

TEST(host, where_the_kernel_refuses_it_says_so_and_leaves_nothing)
{
    struct kiln_host_opts opts = {.consumer = &holder.consumer};
    int64_t before = kiln_mem_live();
    struct kiln_err err = {0};
    struct kiln_host *host;

    kernel_refuses = -EPERM;
    CHECK_EQ(kiln_host_start(&opts, &host, &err), -EPERM);
    CHECK_TEXT(err.text, "needs CAP_BPF");
    CHECK_EQ(kiln_mem_live(), before);
    kernel_refuses = 0;
}
