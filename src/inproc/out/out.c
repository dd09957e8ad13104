/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread has a state of its own in memory, so that one that does not end in time (a look-up of
 * a name may take minutes) can be left behind: it frees its state when it comes to its end, and
 * another may have begun meanwhile.
 */
#include "inproc/out/out.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "inproc/keep/keep.h"
#include "inproc/keep/self.h"
#include "inproc/out/files.h"
#include "inproc/out/names.h"
#include "inproc/out/prepare.h"
#include "inproc/out/send.h"
#include "inproc/out/tls.h"
#include "inproc/out/wire.h"
#include "inproc/thread/helper.h"
#include "inproc/thread/line.h"
#include "inproc/thread/thread.h"

#define SOCKET      "/run/kiln/kiln.sock"
#define END_NS      KILN_NS_PER_S
#define END_AWAY_NS (KILN_NS_PER_S / 5)
#define INTERVAL_MS 15000u

struct out {
    bool has_sender, has_files;
    struct kiln_in_sender sender;
    struct kiln_in_files files;
    uint64_t next_export_ns, next_levels_ns;
    bool said_files;

    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    bool stop, over, orphan;
    uint32_t users;                   /* who wait in it, beside the thread */
    bool away;                        /* as the sender is */
    uint64_t flushes_wanted, flushes; /* counted */
    int flushed;                      /* how the last one went */
    _Atomic uint64_t end_ns;          /* when all has to be over; 0: not soon */
    struct kiln_in_out_counts counts; /* of the sender's, for others to read */
    pthread_t thread;
};

/* Written by start and stop, and in a forked child; `gate` is for whoever else looks. */
static struct out *running;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

/* What runs, locked and not to be freed until it is let go; NULL: nothing. */
static struct out *hold(void)
{
    struct out *out;

    pthread_mutex_lock(&gate);
    out = running;
    if (out) {
        pthread_mutex_lock(&out->lock);
        out->users++;
    }
    pthread_mutex_unlock(&gate);
    return out;
}

static void let_go(struct out *out)
{
    out->users--;
    pthread_cond_broadcast(&out->done);
    pthread_mutex_unlock(&out->lock);
}

static void set_running(struct out *out)
{
    pthread_mutex_lock(&gate);
    running = out;
    pthread_mutex_unlock(&gate);
}

/* ---- a window ---- */

static bool levels_are_due(struct out *out, uint64_t now, bool asked)
{
    if (!asked && now < out->next_levels_ns)
        return false;
    out->next_levels_ns = now + kiln_in_settings.heap_every_ms * KILN_NS_PER_MS;
    return true;
}

/* The window is let go of where nobody else needs it: memory of both at once is the most we use. */
static int write_files(struct out *out, struct kiln_batch **window, struct kiln_err *why)
{
    const struct kiln_sidecar_loss losses[] = {
#define X(name, word) {word, kiln_in_lost_total(KILN_IN_LOST_##name)},
        KILN_IN_LOSS_MAP(X)
#undef X
            {"requests", out->sender.queue.dropped},
        {"files", out->files.lost},
    };
    struct kiln_batch *ready = NULL;
    struct kiln_err err = {0};
    int r = kiln_in_prepare(*window, KILN_IN_NAMED, &ready, why);

    if (r < 0)
        return r;
    if (!out->has_sender) {
        kiln_batch_unref(*window);
        *window = NULL;
    }
    r = kiln_in_files_write(&out->files, ready, losses, KILN_ARRAY_LEN(losses), &err);
    if (r < 0 && !out->said_files)
        kiln_in_say(true, "profiles cannot be written to %s: %s", out->files.folder, err.text);
    out->said_files = r < 0;
    kiln_batch_unref(ready);
    return 0;
}

/* Whether the receiver is a Kiln on this host that finds names of our files itself. */
static bool receiver_names(const struct out *out)
{
    struct kiln_str server = kiln_str_of(out->sender.target.server);
    struct kiln_in_self self;

    return kiln_str_starts(server, KILN_STR("unix:")) &&
           kiln_in_self_ask(server.ptr + strlen("unix:"), &self) == 0 && self.names;
}

static int queue_up(struct out *out, struct kiln_batch *window, struct kiln_err *err)
{
    bool gzip = out->sender.target.compression == KILN_GZIP;
    struct kiln_batch *ready = NULL;
    int r =
        kiln_in_prepare(window, receiver_names(out) ? KILN_IN_BARE : KILN_IN_NAMED, &ready, err);

    if (r == 0)
        r = kiln_in_queue_put(&out->sender.queue, ready, KILN_IN_REQUEST_BYTES, gzip, err);
    kiln_batch_unref(ready);
    return r;
}

/* What was sampled since the last time, on its way. */
static void export(struct out *out, uint64_t now, bool asked)
{
    struct kiln_batch *window = NULL;
    struct kiln_err err = {0};
    int r = kiln_in_keep_window(levels_are_due(out, now, asked), &window, &err);

    if (r == 0 && window->n_samples) {
        if (out->has_files)
            r = write_files(out, &window, &err);
        if (r == 0 && out->has_sender)
            r = queue_up(out, window, &err);
    }
    if (r < 0)
        kiln_in_say(false, "a window of profiles is lost: %s", err.text);
    kiln_batch_unref(window);
}

/* ---- the thread ---- */

/* When it has to do something again, if nobody asks before. */
static uint64_t due(const struct out *out)
{
    uint64_t at = out->next_export_ns;

    if (out->has_sender && out->sender.queue.first && out->sender.next_ns < at)
        at = out->sender.next_ns;
    return at;
}

static void wait_until_due(struct out *out)
{
    struct timespec at = kiln_timespec_of(due(out));
    int r = 0;

    while (!out->stop && out->flushes_wanted == out->flushes && r == 0)
        r = pthread_cond_timedwait(&out->wake, &out->lock, &at);
}

static void turn(struct out *out, bool asked, bool last)
{
    uint64_t now = kiln_clock_mono_ns();

    if (asked || now >= out->next_export_ns) {
        out->next_export_ns = now + kiln_in_settings.export_interval_ms * KILN_NS_PER_MS;
        export(out, now, asked);
    }
    if (out->has_sender)
        kiln_in_sender_run(&out->sender, last || asked);
}

/* When nobody waits in it any more. */
static void free_out(struct out *out)
{
    pthread_mutex_lock(&out->lock);
    while (out->users)
        pthread_cond_wait(&out->done, &out->lock);
    pthread_mutex_unlock(&out->lock);
    if (out->has_sender)
        kiln_in_sender_done(&out->sender);
    pthread_cond_destroy(&out->wake);
    pthread_cond_destroy(&out->done);
    pthread_mutex_destroy(&out->lock);
    kiln_free(out);
}

static void *run(void *arg)
{
    struct out *out = arg;
    bool last = false, orphan;

    pthread_mutex_lock(&out->lock);
    while (!last) {
        uint64_t flushes;

        wait_until_due(out);
        last = out->stop;
        if (out->orphan)
            break;
        flushes = out->flushes_wanted;
        pthread_mutex_unlock(&out->lock);
        turn(out, last || flushes != out->flushes, last);
        pthread_mutex_lock(&out->lock);
        out->flushed = out->has_sender ? out->sender.last_error : 0;
        out->away = out->sender.away;
        out->counts = out->sender.counts;
        out->counts.dropped = out->sender.queue.dropped;
        out->flushes = flushes;
        pthread_cond_broadcast(&out->done);
    }
    /* The descriptor is this thread's (inproc/thread/helper.h). */
    kiln_in_caller_done(&out->sender.caller);
    out->over = true;
    orphan = out->orphan;
    pthread_cond_broadcast(&out->done);
    pthread_mutex_unlock(&out->lock);
    if (orphan)
        free_out(out);
    return NULL;
}

/* ---- starting ---- */

/* Where profiles go: an address for OTLP, or NULL. */
static const char *find_address(char *text, size_t size)
{
    const struct kiln_in_settings *s = &kiln_in_settings;
    const char *socket = s->socket[0] ? s->socket : SOCKET;

    if (s->endpoint[0])
        return "";
    if (strcmp(socket, "off") == 0)
        return NULL;
    if (!s->socket[0] && access(SOCKET, W_OK) < 0)
        return NULL;
    snprintf(text, size, "unix:%.*s", KILN_IN_TEXT_MAX, socket);
    return text;
}

static int open_sender(struct out *out, struct kiln_err *err)
{
    char text[KILN_IN_TEXT_MAX + 8];
    const char *address = find_address(text, sizeof(text));
    int r;

    if (!address)
        return 0;
    r = kiln_in_sender_init(&out->sender, address[0] ? address : NULL, &out->end_ns, err);
    if (r < 0) {
        kiln_in_sender_done(&out->sender);
        return r;
    }
    out->has_sender = true;
    kiln_in_say(false, "profiles go to %s (%s)", out->sender.target.server,
                out->sender.target.protocol == KILN_OTLP_GRPC ? "grpc" : "http/protobuf");
    return 0;
}

static int make(struct out **ret_out)
{
    struct out *out = kiln_calloc(1, sizeof(*out));
    pthread_condattr_t attr;

    if (!out)
        return -ENOMEM;
    pthread_mutex_init(&out->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&out->wake, &attr);
    pthread_cond_init(&out->done, &attr);
    pthread_condattr_destroy(&attr);
    *ret_out = out;
    return 0;
}

static int begin(struct out *out, struct kiln_err *err)
{
    bool stays = kiln_in_settings.stays;
    int r = stays ? 0 : open_sender(out, err);

    if (r < 0)
        kiln_in_say(true, "profiles are not sent: %s%s%s", err->where, err->where[0] ? ": " : "",
                    err->text);
    if (!stays && kiln_in_settings.out_dir[0]) {
        out->has_files = true;
        out->files.folder = kiln_in_settings.out_dir;
        kiln_in_say(false, "profiles go into files in %s", out->files.folder);
    }
    if (!out->has_sender && !out->has_files)
        return r;
    if (!kiln_in_settings.export_interval_ms)
        kiln_in_settings.export_interval_ms = INTERVAL_MS;
    out->next_export_ns =
        kiln_clock_mono_ns() + kiln_in_settings.export_interval_ms * KILN_NS_PER_MS;
    set_running(out);
    r = kiln_in_helper_start("kiln-out", KILN_IN_HELPER_OWN_FILES, run, out, &out->thread);
    if (r < 0)
        set_running(NULL);
    return r;
}

int kiln_in_out_start(void)
{
    const struct kiln_in_settings *s = &kiln_in_settings;
    struct kiln_err err = {0};
    struct out *out;
    int r = kiln_in_prepare_begin(s->attributes, s->n_attributes, s->redact, &err);

    if (r < 0) {
        kiln_in_say(true, "no profile leaves this process: %s: %s", err.where, err.text);
        return r;
    }
    r = make(&out);
    if (r < 0)
        return r;
    r = begin(out, &err);
    if (!running)
        free_out(out);
    return r;
}

/* ---- ending ---- */

void kiln_in_out_stop(void)
{
    struct out *out = running;
    struct timespec until;
    bool over;

    if (!out)
        return;
    set_running(NULL);
    pthread_mutex_lock(&out->lock);
    out->stop = true;
    atomic_store(&out->end_ns, kiln_clock_mono_ns() + (out->away ? END_AWAY_NS : END_NS));
    until = kiln_timespec_of(atomic_load(&out->end_ns) + END_AWAY_NS);
    pthread_cond_signal(&out->wake);
    while (!out->over && pthread_cond_timedwait(&out->done, &out->lock, &until) == 0)
        ;
    over = out->over;
    out->orphan = !over;
    if (!over)
        pthread_detach(out->thread);
    pthread_mutex_unlock(&out->lock);
    if (!over)
        return;
    pthread_join(out->thread, NULL);
    free_out(out);
    kiln_in_prepare_end();
}

void kiln_in_out_forked(void)
{
    gate = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    running = NULL;
    kiln_in_names_forked();
    kiln_in_tls_forked();
}

int kiln_in_out_flush(uint32_t timeout_ms)
{
    struct timespec until = kiln_timespec_of(kiln_clock_mono_ns() + timeout_ms * KILN_NS_PER_MS);
    struct out *out = hold();
    uint64_t mine;
    int r = 0;

    if (!out)
        return 0;
    mine = ++out->flushes_wanted;
    pthread_cond_signal(&out->wake);
    while (out->flushes < mine && !out->over && r == 0)
        r = pthread_cond_timedwait(&out->done, &out->lock, &until);
    r = out->flushes < mine ? -ETIMEDOUT : out->flushed;
    let_go(out);
    return r;
}

void kiln_in_out_counts(struct kiln_in_out_counts *ret_counts)
{
    struct out *out = hold();

    *ret_counts = (struct kiln_in_out_counts){0};
    if (!out)
        return;
    *ret_counts = out->counts;
    let_go(out);
}
