/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole profiler on the kernel of this machine: what burns is found by name in what it
 * publishes, and what it publishes keeps the rules.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "codec/otlp.h"
#include "codec/otlp_check.h"
#include "host_keeper.h"
#include "test.h"

/* ---- what is published ---- */

static void check_rules(void)
{
    struct kiln_check_opts strict = {
        .dupes = true, .orphans = true, .sample_shapes = true, .strict = true};

    for (uint32_t i = 0; i < kiln_kept.n; i++) {
        struct kiln_check *check;
        struct kiln_buf bytes;

        kiln_buf_init(&bytes, 64 << 20);
        CHECK_OK(kiln_otlp_encode(kiln_kept.batches[i], NULL, &bytes, NULL));
        CHECK_OK(kiln_otlp_check(kiln_buf_str(&bytes), &strict, &check, NULL));
        for (uint32_t k = 0; k < check->n_findings; k++)
            print_error("%s: %s\n", check->findings[k].where, check->findings[k].text);
        CHECK_EQ(check->n_errors + check->n_warnings, 0);
        kiln_check_free(check);
        kiln_buf_done(&bytes);
    }
}

/* ---- looking ---- */

/* A stack as text, root first: "_start;main;f". */
static const char *stack_text(const struct kiln_batch *batch, uint32_t stack)
{
    static char text[65536];
    struct kiln_range range = batch->dict.stacks[stack];
    size_t len = 0;

    text[0] = 0;
    for (uint32_t i = range.n; i > 0 && len < sizeof(text) - 4096; i--) {
        const struct kiln_location *l =
            &batch->dict.locations[batch->dict.frames[range.first + i - 1]];
        struct kiln_str name = KILN_STR("?");

        if (l->n)
            name = kiln_batch_str(batch,
                                  batch->dict.functions[batch->dict.lines[l->first].function].name);
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%.*s", len ? ";" : "",
                                KILN_STR_ARG(name));
    }
    return text;
}

struct found {
    int64_t all, with; /* samples of the service; those whose stack has the text */
    int64_t incomplete;
};

/* Counts samples of one profile. */
static void look_at(const struct kiln_batch *batch, const struct kiln_profile *profile,
                    const char *text, struct found *found)
{
    for (uint32_t i = 0; i < profile->n_samples; i++) {
        const struct kiln_sample *sample = &batch->samples[profile->first_sample + i];
        const char *stack = stack_text(batch, sample->stack);
        int64_t n = kiln_sample_total(batch, sample);

        found->all += n;
        found->with += strstr(stack, text) ? n : 0;
        found->incomplete += strncmp(stack, "[incomplete", 11) == 0 ? n : 0;
    }
}

/* What all batches say of the processes with this attribute. */
static struct found look_for(const char *key, const char *value, const char *text)
{
    struct found found = {0};

    for (uint32_t i = 0; i < kiln_kept.n; i++) {
        const struct kiln_batch *batch = kiln_kept.batches[i];

        for (uint32_t r = 0; r < batch->n_resources; r++) {
            const struct kiln_resource *resource = &batch->resources[r];
            const struct kiln_scope *scope = &batch->scopes[resource->first_scope];

            if (kiln_str_eq(kiln_set_text(batch, resource->attrs, kiln_str_of(key)),
                            kiln_str_of(value)))
                look_at(batch, &batch->profiles[scope->first_profile], text, &found);
        }
    }
    return found;
}

/* ---- burning ---- */

static uint64_t cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * KILN_NS_PER_S + (uint64_t)t.tv_nsec;
}

__attribute__((noinline)) static void burn_known_leaf(void)
{
    for (volatile uint32_t i = 0; i < 100000; i++)
        continue;
}

__attribute__((noinline)) static void burn_known_outer(uint64_t ms)
{
    for (uint64_t end = cpu_ns() + ms * KILN_NS_PER_MS; cpu_ns() < end;)
        burn_known_leaf();
    __asm__ volatile("" ::: "memory");
}

/* A function made at run time: counts its argument down, with a frame pointer. */
static void (*make_code(void))(uint64_t turns)
{
    static const unsigned char code[] = {
        0x55,             /* push %rbp */
        0x48, 0x89, 0xe5, /* mov %rsp, %rbp */
        0x48, 0xff, 0xcf, /* dec %rdi */
        0x75, 0xfb,       /* jnz back by five */
        0x5d,             /* pop %rbp */
        0xc3,             /* ret */
    };
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(page != MAP_FAILED);
    memcpy(page, code, sizeof(code));
    CHECK_OK(mprotect(page, 4096, PROT_READ | PROT_EXEC));
    return (void (*)(uint64_t))(uintptr_t)page;
}

__attribute__((noinline)) static void burn_made_code(void (*code)(uint64_t), uint64_t ms)
{
    for (uint64_t end = cpu_ns() + ms * KILN_NS_PER_MS; cpu_ns() < end;)
        code(100000);
    __asm__ volatile("" ::: "memory");
}

static void run(const char *program, const char *first, const char *second)
{
    char path[4096];
    int status = -1;
    pid_t pid;

    snprintf(path, sizeof(path), "%s/programs/%s",
             getenv("KILN_BUILD_DIR") ? getenv("KILN_BUILD_DIR") : ".", program);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        execl(path, path, first, second, (char *)NULL);
        _exit(127);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
}

/* ---- tests ---- */

TEST(host, a_function_that_burns_is_found_by_name_with_its_whole_stack)
{
    struct kiln_host *host = kiln_kept_start((struct kiln_host_opts){0});
    struct kiln_host_status status;
    struct found found, ours; /* all of this process, which has the profiler's threads too */

    burn_known_outer(800);
    kiln_host_finish(host);
    kiln_host_status(host, &status);
    kiln_host_stop(host);
    ours = look_for("service.name", "host_host", "main;");
    CHECK(ours.with > 50);
    found = look_for("service.name", "host_host", "burn_known_outer;burn_known_leaf");
    CHECK(found.with > 50);
    CHECK(found.with * 10 > ours.with * 7);
    CHECK(found.incomplete * 20 < found.all);
    CHECK(status.samples >= (uint64_t)found.all);
    CHECK_EQ(status.batches, kiln_kept.n);
    CHECK_EQ(status.batches_failed, 0);
    CHECK(status.names_asked > status.names_missing);
    check_rules();
    kiln_kept_forget();
}

TEST(host, a_process_that_lives_for_a_moment_is_there_with_its_name)
{
    struct kiln_host *host = kiln_kept_start((struct kiln_host_opts){0});
    struct found found;

    for (int i = 0; i < 5; i++)
        run("spawn", "--short", "100");
    kiln_host_stop(host);
    found = look_for("service.name", "spawn", "short_life;burn_briefly");
    CHECK(found.all > 20);
    CHECK(found.with * 10 > found.all * 7);
    check_rules();
    kiln_kept_forget();
}

TEST(host, code_made_at_run_time_has_the_name_of_the_perf_map_and_else_none)
{
    void (*code)(uint64_t) = make_code();
    struct kiln_host *host = kiln_kept_start((struct kiln_host_opts){0});
    char path[64];
    FILE *map;

    burn_made_code(code, 500);
    kiln_host_stop(host);
    CHECK(look_for("service.name", "host_host", "main;").with > 0);
    CHECK(look_for("service.name", "host_host", "burn_made_code;[jit]").with > 30);

    snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
    map = fopen(path, "w");
    CHECK(map != NULL);
    fprintf(map, "%llx 1000 made_at_run_time\n", (unsigned long long)(uintptr_t)code);
    fclose(map);
    host = kiln_kept_start((struct kiln_host_opts){0});
    burn_made_code(code, 600);
    kiln_host_stop(host);
    unlink(path);
    CHECK(look_for("service.name", "host_host", "burn_made_code;made_at_run_time").with > 30);
    check_rules();
    for (uint32_t i = 0; i < kiln_kept.n; i++)
        for (uint32_t l = 0; l < kiln_kept.batches[i]->dict.n_locations; l++)
            CHECK_NE(kiln_kept.batches[i]->dict.locations[l].address >> 12, (uintptr_t)code >> 12);
    munmap((void *)(uintptr_t)code, 4096);
    kiln_kept_forget();
}

TEST(host, while_the_rate_is_zero_nothing_is_sampled)
{
    struct kiln_host *host = kiln_kept_start((struct kiln_host_opts){.paused = true});
    struct kiln_host_status status;

    burn_known_outer(300);
    kiln_host_status(host, &status);
    CHECK_EQ(status.samples, 0);
    CHECK_EQ(kiln_host_set_rate(host, 100000), -ERANGE);
    CHECK_OK(kiln_host_set_rate(host, 499));
    burn_known_outer(500);
    kiln_host_stop(host);
    CHECK(look_for("service.name", "host_host", "burn_known_outer").with > 50);
    for (uint32_t i = 0; i < kiln_kept.n; i++)
        CHECK_EQ(kiln_kept.batches[i]->profiles[0].period, KILN_NS_PER_S / 499);
    kiln_kept_forget();
}

TEST(host, in_windows_it_rests_between_them)
{
    struct kiln_host *host =
        kiln_kept_start((struct kiln_host_opts){.every_ns = KILN_NS_PER_S,
                                                .window_ns = 200 * KILN_NS_PER_MS,
                                                .window_every_ns = 3600 * KILN_NS_PER_S,
                                                .hz = 499});
    struct kiln_host_status status;

    burn_known_outer(700);
    kiln_host_finish(host);
    kiln_host_status(host, &status);
    kiln_host_stop(host);
    CHECK(status.samples > 0);
    CHECK_EQ(status.hz, 0);
    CHECK(kiln_kept.n > 0);
    kiln_kept_forget();
}

TEST(host, a_consumer_that_refuses_is_counted)
{
    struct kiln_host *host = kiln_kept_start((struct kiln_host_opts){0});
    struct kiln_host_status status;

    kiln_kept.code = -ENOSPC;
    burn_known_outer(500);
    kiln_host_finish(host);
    kiln_host_status(host, &status);
    kiln_host_stop(host);
    CHECK(status.batches_failed > 0);
    kiln_kept_forget();
}

/* ---- waits ---- */

__attribute__((noinline)) static uint64_t sleep_known(uint32_t times)
{
    uint64_t began = kiln_clock_mono_ns();

    for (uint32_t i = 0; i < times; i++)
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    return kiln_clock_mono_ns() - began;
}

static void check_waits(enum kiln_wait_way way)
{
    uint32_t own = (uint32_t)getpid();
    struct kiln_host_filter filter = {.pids = &own, .n_pids = 1};
    struct kiln_host *host =
        kiln_kept_start((struct kiln_host_opts){.off_cpu = true,
                                                .waits_only = true,
                                                .wait_way = way,
                                                .filter = &filter,
                                                .every_ns = 10 * KILN_NS_PER_S});
    struct kiln_host_status status;
    double slept, found;

    sleep_known(1);
    slept = (double)sleep_known(25);
    kiln_host_finish(host);
    kiln_host_status(host, &status);
    kiln_host_stop(host);
    found = (double)look_for("service.name", "host_host", "sleep_known").with;
    if (status.kernel.wait.way == way)
        CHECK(found > 0.8 * slept && found < 1.3 * slept);
    check_rules();
    kiln_kept_forget();
}

TEST(host, waits_are_found_by_the_thread_that_runs_again)
{
    check_waits(KILN_WAIT_WAY_EXIT);
}

TEST(host, waits_are_found_by_the_thread_that_leaves)
{
    check_waits(KILN_WAIT_WAY_SWITCH);
}

/* ---- a load that switches all the time ---- */

/* Hands a byte to and fro until the other end is gone. */
static void *echo(void *context)
{
    int *ends = context;
    char byte;

    while (read(ends[0], &byte, 1) == 1 && write(ends[1], &byte, 1) == 1)
        continue;
    return NULL;
}

/* What the profiler said last of the hook, and how often it said something new. */
struct told {
    struct kiln_wait_stats hook;
    uint64_t cpu_ns;          /* that it had used: always more */
    uint64_t since_ns, at_ns; /* it looked between these */
    uint64_t asked_ns;        /* when it had not said anything newer yet */
    uint32_t times;
};

static void listen(struct kiln_host *host, struct told *told)
{
    uint64_t now = kiln_clock_mono_ns();
    struct kiln_host_status status;

    kiln_host_status(host, &status);
    if (status.cpu_ns == told->cpu_ns) {
        told->asked_ns = now;
        return;
    }
    *told = (struct told){.hook = status.kernel.wait,
                          .cpu_ns = status.cpu_ns,
                          .since_ns = told->asked_ns,
                          .asked_ns = now,
                          .at_ns = kiln_clock_mono_ns(),
                          .times = told->times + 1};
}

/* Plays with the echo until the profiler has looked so often at what that costs. */
static void play(struct kiln_host *host, uint32_t times, struct told *told)
{
    int to[2], back[2];
    pthread_t thread;
    char byte = 'x';

    CHECK_OK(pipe(to) | pipe(back));
    CHECK_OK(pthread_create(&thread, NULL, echo, (int[]){to[0], back[1]}));
    for (uint32_t until = told->times + times; told->times < until; listen(host, told))
        CHECK(write(to[1], &byte, 1) == 1 && read(back[0], &byte, 1) == 1);
    close(to[1]);
    pthread_join(thread, NULL);
    close(to[0]);
    close(back[0]);
    close(back[1]);
}

/*
 * Switches that would cost some percent of a processor: the hook is there for a part of the time,
 * once the profiler has looked at them for a second.  It does that when it is given the processor:
 * time is counted from one of its looks to another, and this thread may hear of the first of them
 * late.  Without a budget it takes several times as
 * much.
 */
TEST(host, waits_stay_within_their_budget_whatever_the_load_does)
{
    enum { UNTIL_FITTED = 4, LONGER = 3 }; /* looks: at the start, then one a second */
    const double budget = 0.01;
    struct kiln_host *host = kiln_kept_start((struct kiln_host_opts){
        .off_cpu = true, .waits_only = true, .measure = true, .cpu_budget = budget});
    struct told first = {0}, last;

    play(host, UNTIL_FITTED, &first);
    last = first;
    play(host, LONGER, &last);
    kiln_host_stop(host);
    CHECK(first.hook.there_ns > 0);
    CHECK((double)(last.hook.run_ns - first.hook.run_ns) <
          budget * (double)(last.at_ns - first.since_ns));
    kiln_kept_forget();
}
