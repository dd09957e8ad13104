/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/keep/pace.h"

#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "inproc/clock.h"
#include "inproc/keep/self.h"
#include "inproc/keep/stretch.h"
#include "inproc/sample/cpu.h"
#include "inproc/sample/files.h"
#include "inproc/sample/wait.h"
#include "inproc/start.h"
#include "inproc/thread/thread.h"

#define NS_PER_MS     UINT64_C(1000000)
#define NS_PER_S      UINT64_C(1000000000)

#define SERVER_SOCKET "/run/kiln/kiln.sock"
#define AGENT_SOCKET  "/run/kiln-agent/agent.sock"

#define SLACK_NS      (200 * NS_PER_MS) /* the keeper's turns are no shorter than half of it */

enum { LOOK_S = 2, ASK_S = 60, WORK_S = 1, LESS_PERCENT = 10 };

static struct {
    uint64_t began_ns, asked_ns, worked_ns; /* 0: not yet */
    struct kiln_in_backoff backoff;
    struct kiln_in_self self;
} state;
static _Atomic bool runs;                                /* false: the state is not the keeper's */
static _Atomic int cpu_wanted, waits_wanted;             /* by how many */
static _Atomic uint32_t followed;                        /* KILN_PROFILE_* that run */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of those below */
static struct kiln_in_stretch cpu_stretch, waits_stretch;

/* ---- parts ---- */

bool kiln_in_pace_window_is_open(uint32_t window_ms, uint32_t every_ms, uint64_t since_start_ns)
{
    if (window_ms == 0 || every_ms == 0)
        return true;
    return since_start_ns / NS_PER_MS % every_ms < window_ms;
}

bool kiln_in_backoff_look(struct kiln_in_backoff *backoff, uint32_t percent, uint32_t processors,
                          uint64_t now_ns, uint64_t cpu_ns)
{
    double used;

    if (percent == 0)
        return false;
    if (backoff->at_ns == 0) {
        backoff->at_ns = now_ns;
        backoff->cpu_ns = cpu_ns;
    }
    if (now_ns - backoff->at_ns < LOOK_S * NS_PER_S)
        return backoff->is_off;
    used = 100.0 * (double)(cpu_ns - backoff->cpu_ns) / (double)(now_ns - backoff->at_ns) /
           (processors ? processors : 1);
    if (used >= percent)
        backoff->is_off = true;
    else if (used < percent * (100.0 - LESS_PERCENT) / 100)
        backoff->is_off = false;
    backoff->at_ns = now_ns;
    backoff->cpu_ns = cpu_ns;
    return backoff->is_off;
}

static uint32_t processors(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof(set), &set) == 0 ? (uint32_t)CPU_COUNT(&set) : 1;
}

/* ---- who else samples ---- */

static const char *socket_of_server(void)
{
    return kiln_in_settings.socket[0] ? kiln_in_settings.socket : SERVER_SOCKET;
}

static void ask(void)
{
    struct kiln_in_self server, agent, before = state.self;

    if (kiln_in_self_ask(socket_of_server(), &server) < 0)
        server = (struct kiln_in_self){0};
    if (kiln_in_self_ask(AGENT_SOCKET, &agent) < 0)
        agent = (struct kiln_in_self){0};
    state.self = (struct kiln_in_self){.cpu = server.cpu || agent.cpu,
                                       .off_cpu = server.off_cpu || agent.off_cpu};
    if (state.self.cpu != before.cpu)
        kiln_in_say(false, "CPU time is %s",
                    state.self.cpu ? "left to the profiler of this host" : "sampled here");
    if (state.self.off_cpu != before.off_cpu)
        kiln_in_say(false, "waits are %s",
                    state.self.off_cpu ? "left to the profiler of this host" : "sampled here");
}

/* ---- turns ---- */

void kiln_in_pace_want(uint32_t profiles, int change)
{
    if (profiles & KILN_PROFILE_CPU)
        atomic_fetch_add(&cpu_wanted, change);
    if (profiles & KILN_PROFILE_WALL)
        atomic_fetch_add(&waits_wanted, change);
}

void kiln_in_pace_forked(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    cpu_stretch = waits_stretch = (struct kiln_in_stretch){0};
    atomic_store(&cpu_wanted, 0);
    atomic_store(&waits_wanted, 0);
}

bool kiln_in_pace_follows(uint32_t profiles)
{
    return (atomic_load(&followed) & profiles) == profiles;
}

/* ---- for how long ---- */

static void note(bool cpu, bool waits)
{
    uint64_t now_ns = kiln_in_now_ns();

    pthread_mutex_lock(&lock);
    kiln_in_stretch_note(&cpu_stretch, cpu, now_ns);
    kiln_in_stretch_note(&waits_stretch, waits, now_ns);
    pthread_mutex_unlock(&lock);
}

void kiln_in_pace_narrow(uint32_t profile, uint64_t *since_ns, uint64_t *until_ns)
{
    uint64_t ago_ns, ns, now_ns = kiln_in_now_ns(), all_ns = *until_ns - *since_ns;

    pthread_mutex_lock(&lock);
    ns = kiln_in_stretch_take(profile == KILN_PROFILE_CPU ? &cpu_stretch : &waits_stretch, now_ns,
                              &ago_ns);
    pthread_mutex_unlock(&lock);
    if (ns == 0 || *until_ns < *since_ns || ns + SLACK_NS > all_ns)
        return;
    if (ago_ns < all_ns)
        *since_ns = *until_ns - ago_ns;
    *until_ns = *since_ns + ns;
}

static void follow(bool cpu, bool waits, bool loops)
{
    note(cpu, waits);
    atomic_store(&kiln_in_measures, (waits ? KILN_IN_WAITS : 0) | (loops ? KILN_IN_LOOPS : 0));
    kiln_in_cpu_set(cpu, loops);
    atomic_store(&followed, (cpu ? KILN_PROFILE_CPU : 0) | (waits ? KILN_PROFILE_WALL : 0));
}

static void decide(uint64_t now_ns, bool on)
{
    const struct kiln_in_settings *set = &kiln_in_settings;
    bool rests = kiln_in_backoff_look(&state.backoff, set->cpu_backoff_percent, processors(),
                                      now_ns, kiln_in_clock_ns(CLOCK_PROCESS_CPUTIME_ID));
    bool waits = !rests && kiln_in_wants(KILN_PROFILE_WALL) && !state.self.off_cpu;
    bool cpu =
        !rests && kiln_in_wants(KILN_PROFILE_CPU) && !state.self.cpu &&
        kiln_in_pace_window_is_open(set->cpu_window_ms, set->cpu_every_ms, now_ns - state.began_ns);

    if (on)
        follow(cpu || atomic_load(&cpu_wanted) > 0, waits || atomic_load(&waits_wanted) > 0,
               kiln_in_wants(KILN_PROFILE_LOOP));
    else
        follow(false, false, false);
}

void kiln_in_pace_turn(uint64_t now_ns)
{
    if (!atomic_load(&runs))
        return;
    if (state.asked_ns == 0 || now_ns - state.asked_ns >= ASK_S * NS_PER_S) {
        state.asked_ns = now_ns;
        ask();
    }
    decide(now_ns, kiln_in_is_on());
    if (now_ns - state.worked_ns >= WORK_S * NS_PER_S) {
        state.worked_ns = now_ns;
        kiln_in_files_age();
        kiln_in_cpu_work();
    }
}

/* Where somebody may be there to be asked, the keeper asks first. */
int kiln_in_cpu_start(void)
{
    /* Where it fails, waits are left.  Who asks at /debug/pprof has it sampled meanwhile. */
    if (kiln_in_wants(KILN_PROFILE_CPU | KILN_PROFILE_LOOP) || kiln_in_settings.pprof_listen[0])
        kiln_in_cpu_open();
    memset(&state, 0, sizeof(state));
    state.began_ns = kiln_in_now_ns();
    if (access(socket_of_server(), F_OK) != 0 && access(AGENT_SOCKET, F_OK) != 0)
        decide(state.began_ns, true);
    atomic_store(&runs, true);
    return 0;
}

void kiln_in_cpu_stop(void)
{
    atomic_store(&runs, false);
    follow(false, false, false);
    kiln_in_cpu_close();
}
