/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Boosts and pauses on the kernel of this machine: programs that burn a known time are sampled at
 * different rates, and what their samples stand for is that time, whatever the rate was.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "host_keeper.h"
#include "test.h"

enum { BASE_HZ = 199, BOOST_HZ = 997 };

/* Of an estimate: as many are further away as one in a million. */
#define SIGMAS 4.9

/* ---- programs ---- */

/* The same name in another run of this test, at the same time, is another service. */
static void name_service(char *name, size_t size, const char *service)
{
    snprintf(name, size, "%s-%d", service, (int)getpid());
}

/* Burns so many seconds of CPU time as a service of that name. */
static pid_t begin(const char *service, const char *seconds)
{
    char path[4096], name[64], variable[96];
    pid_t pid;

    name_service(name, sizeof(name), service);
    pid = fork();
    CHECK(pid >= 0);
    if (pid > 0)
        return pid;
    snprintf(path, sizeof(path), "%s/programs/chain",
             getenv("KILN_BUILD_DIR") ? getenv("KILN_BUILD_DIR") : ".");
    snprintf(variable, sizeof(variable), "OTEL_SERVICE_NAME=%s", name);
    execle(path, path, seconds, (char *)NULL, (char *const[]){variable, NULL});
    _exit(127);
}

static void end(pid_t pid)
{
    int status = -1;

    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
}

static double cpu_seconds(pid_t pid)
{
    struct timespec t;
    clockid_t clock;

    CHECK_OK(clock_getcpuclockid(pid, &clock));
    CHECK_OK(clock_gettime(clock, &t));
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void wait_until_burnt(pid_t pid, double seconds)
{
    for (double end = cpu_seconds(pid) + seconds; cpu_seconds(pid) < end;)
        usleep(10000);
}

/* Burns no more, but is still there to be asked who it is; what it has burnt. */
static double halt(pid_t pid)
{
    int status = 0;

    CHECK_OK(kill(pid, SIGSTOP));
    CHECK_EQ(waitpid(pid, &status, WUNTRACED), pid);
    CHECK(WIFSTOPPED(status));
    return cpu_seconds(pid);
}

static void remove_it(pid_t pid)
{
    CHECK_OK(kill(pid, SIGKILL));
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
}

/* ---- orders ---- */

static struct kiln_order order(enum kiln_order_kind kind, const char *service, double seconds)
{
    struct kiln_order made = {.kind = kind,
                              .target = service ? KILN_TARGET_SERVICE : KILN_TARGET_ALL,
                              .hz = kind == KILN_ORDER_BOOST ? BOOST_HZ : 0,
                              .created_ns = kiln_clock_unix_ns()};

    if (service)
        name_service(made.name, sizeof(made.name), service);
    made.expires_ns = made.created_ns + (uint64_t)(seconds * 1e9);
    return made;
}

static void wait_for_clock(struct kiln_host *host, uint32_t hz)
{
    struct kiln_host_status status;

    do {
        usleep(10000);
        kiln_host_status(host, &status);
    } while (status.clock_hz != hz);
}

/* What is begun before the clocks run, or before orders are heard, is sampled by other rules. */
static void wait_for_orders(struct kiln_host *host, uint32_t n)
{
    struct kiln_host_status status;

    do {
        usleep(10000);
        kiln_host_status(host, &status);
    } while (status.orders != n || status.clock_hz != BASE_HZ);
}

/* Both processes were met, and are treated as ordered. */
static void wait_for_effect(struct kiln_host *host)
{
    struct kiln_host_status status;

    do {
        usleep(10000);
        kiln_host_status(host, &status);
    } while (status.clock_hz != BOOST_HZ || status.boosted != 1 || status.paused != 1);
}

/* A busy machine may hardly let the program run before it is over: then for longer. */
static void boost_for_a_while(struct kiln_host *host)
{
    bool seen = false;

    for (double seconds = 2; !seen; seconds *= 3) {
        const struct kiln_order one = order(KILN_ORDER_BOOST, "boosted", seconds);
        struct kiln_host_status status;

        CHECK_OK(kiln_host_set_orders(host, &one, 1));
        do {
            usleep(10000);
            kiln_host_status(host, &status);
            seen |= status.clock_hz == BOOST_HZ;
        } while (kiln_clock_unix_ns() < one.expires_ns);
        wait_for_clock(host, BASE_HZ);
    }
}

/* ---- what was found ---- */

struct found {
    double seconds, variance; /* of CPU time */
    int64_t base, boosted;    /* samples at each rate */
    int64_t other;            /* and at others */
};

static void look_at(const struct kiln_batch *batch, const struct kiln_profile *profile,
                    struct found *found)
{
    double period_s = (double)profile->period / 1e9;

    for (uint32_t i = 0; i < profile->n_samples; i++) {
        int64_t n = kiln_sample_total(batch, &batch->samples[profile->first_sample + i]);

        found->seconds += (double)n * period_s;
        found->variance += (double)n * period_s * period_s;
        found->base += profile->period == KILN_NS_PER_S / BASE_HZ ? n : 0;
        found->boosted += profile->period == KILN_NS_PER_S / BOOST_HZ ? n : 0;
        found->other += profile->period != KILN_NS_PER_S / BASE_HZ &&
                                profile->period != KILN_NS_PER_S / BOOST_HZ
                            ? n
                            : 0;
    }
}

static struct found look_for(const char *service)
{
    struct found found = {0};
    char name[64];

    name_service(name, sizeof(name), service);
    for (uint32_t i = 0; i < kiln_kept.n; i++) {
        const struct kiln_batch *batch = kiln_kept.batches[i];

        for (uint32_t r = 0; r < batch->n_resources; r++) {
            const struct kiln_resource *resource = &batch->resources[r];
            const struct kiln_scope *scope = &batch->scopes[resource->first_scope];

            if (!kiln_str_eq(kiln_set_text(batch, resource->attrs, KILN_STR("service.name")),
                             kiln_str_of(name)))
                continue;
            for (uint32_t p = 0; p < scope->n_profiles; p++) {
                const struct kiln_profile *profile = &batch->profiles[scope->first_profile + p];

                if (kiln_str_eq(kiln_batch_str(batch, profile->sample_type.type),
                                KILN_STR("samples")))
                    look_at(batch, profile, &found);
            }
        }
    }
    print_message("%s: %.3f s, %ld samples at %d Hz, %ld at %d Hz\n", service, found.seconds,
                  (long)found.base, BASE_HZ, (long)found.boosted, BOOST_HZ);
    return found;
}

static void check_time(const struct found *found, double seconds)
{
    CHECK_EQ(found->other, 0);
    CHECK(fabs(found->seconds - seconds) < SIGMAS * sqrt(found->variance));
}

/* As many samples at the higher rate as so many seconds have at least. */
static void check_boost(const struct found *found, double seconds)
{
    double most = (double)found->boosted + SIGMAS * sqrt((double)found->boosted);

    CHECK(most > seconds * BOOST_HZ);
}

/* ---- tests ---- */

/*
 * What three programs burnt, and what was found of it.  Where the reader was not given the
 * processor in time, samples are lost, and it is known how many: that says nothing about shares.
 */
struct trial {
    struct kiln_host_status status;
    double seconds[3];
    struct found found[3];
};

static void stop(struct kiln_host *host, struct kiln_host_status *ret_status)
{
    kiln_host_finish(host);
    kiln_host_status(host, ret_status);
    kiln_host_stop(host);
}

static void try_three(struct trial *trial)
{
    const struct kiln_order orders[] = {order(KILN_ORDER_BOOST, "boosted", 3600),
                                        order(KILN_ORDER_PAUSE, "paused", 3600)};
    static const char *const names[] = {"boosted", "usual", "paused"};
    struct kiln_host *host = kiln_kept_start((struct kiln_host_opts){.hz = BASE_HZ});
    pid_t pids[3];

    CHECK_OK(kiln_host_set_orders(host, orders, 2));
    wait_for_orders(host, 2);
    for (int i = 0; i < 3; i++)
        pids[i] = begin(names[i], "600");
    wait_for_effect(host);
    for (int i = 0; i < 3; i++)
        wait_until_burnt(pids[i], 1.0);
    for (int i = 0; i < 3; i++)
        trial->seconds[i] = halt(pids[i]);
    stop(host, &trial->status);
    for (int i = 0; i < 3; i++) {
        trial->found[i] = look_for(names[i]);
        remove_it(pids[i]);
    }
    kiln_kept_forget();
}

TEST(rates, a_boosted_service_a_usual_one_and_a_paused_one_have_their_true_shares)
{
    struct trial trial;
    const struct found *boosted = &trial.found[0], *usual = &trial.found[1],
                       *paused = &trial.found[2];

    do
        try_three(&trial);
    while (trial.status.ends.lost);
    check_time(boosted, trial.seconds[0]);
    check_time(usual, trial.seconds[1]);
    check_boost(boosted, 1.0);
    CHECK_EQ(usual->boosted, 0);
    CHECK(usual->base > 0);
    CHECK_EQ(paused->base + paused->boosted + paused->other, 0);
    CHECK(trial.status.paused_samples > 0);
    CHECK_EQ(trial.status.orders, 2);
}

static void try_one(struct trial *trial)
{
    struct kiln_host *host = kiln_kept_start((struct kiln_host_opts){.hz = BASE_HZ});
    pid_t pid;

    wait_for_orders(host, 0);
    pid = begin("boosted", "600");
    boost_for_a_while(host);
    wait_until_burnt(pid, 0.5);
    trial->seconds[0] = halt(pid);
    stop(host, &trial->status);
    trial->found[0] = look_for("boosted");
    remove_it(pid);
    kiln_kept_forget();
}

TEST(rates, a_boost_ends_by_itself_and_the_weights_follow)
{
    struct trial trial;

    do
        try_one(&trial);
    while (trial.status.ends.lost);
    CHECK(trial.found[0].base > 0 && trial.found[0].boosted > 0);
    check_time(&trial.found[0], trial.seconds[0]);
}

TEST(rates, while_everything_is_paused_nothing_comes_and_then_it_does_again)
{
    const struct kiln_order all = order(KILN_ORDER_PAUSE, NULL, 3600);
    struct kiln_host *host = kiln_kept_start((struct kiln_host_opts){.hz = BASE_HZ});
    struct kiln_host_status before, after;
    pid_t pid;

    CHECK_OK(kiln_host_set_orders(host, &all, 1));
    do { /* the clock stands at first, too, before the order is heard */
        usleep(10000);
        kiln_host_status(host, &before);
    } while (!before.all_paused || before.clock_hz);
    pid = begin("usual", "0.5");
    end(pid);
    kiln_host_status(host, &after);
    CHECK_EQ(after.samples, before.samples);
    CHECK_OK(kiln_host_set_orders(host, NULL, 0));
    wait_for_clock(host, BASE_HZ);
    pid = begin("usual", "0.5");
    end(pid);
    kiln_host_stop(host);
    CHECK(look_for("usual").base > 20);
    kiln_kept_forget();
}

TEST(rates, a_service_that_was_paused_comes_back)
{
    const struct kiln_order orders[] = {order(KILN_ORDER_PAUSE, "shop", 3600)};
    struct kiln_host *host = kiln_kept_start((struct kiln_host_opts){.hz = BASE_HZ});
    struct kiln_host_status status;
    pid_t pid = begin("shop", "600");

    CHECK_OK(kiln_host_set_orders(host, orders, 1));
    do {
        usleep(10000);
        kiln_host_status(host, &status);
    } while (status.paused != 1 || status.kernel.counts[KILN_COUNT_PAUSED] < 5);
    CHECK_OK(kiln_host_set_orders(host, NULL, 0));
    do {
        usleep(10000);
        kiln_host_status(host, &status);
    } while (status.orders);
    kiln_kept_forget();
    wait_until_burnt(pid, 0.3);
    kiln_host_stop(host);
    remove_it(pid);
    CHECK(look_for("shop").base > 10);
    kiln_kept_forget();
}
