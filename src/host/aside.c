/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job has two owners, who asks and the thread that does it; the one who is done with it last
 * lets go of it.  Jobs that somebody waits for come first; files to close may wait.
 *
 * A file that a stuck thread reads is closed by that thread: who comes to read it late would find
 * another file under its number.
 */
#include "host/aside.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/metric.h"
#include "base/str.h"
#include "base/thread.h"

enum { THREADS_MAX = 4, CLOSES_MAX = 4096 };
#define PATIENCE_NS  (KILN_NS_PER_S / 4)
#define CREDIT_NS    KILN_NS_PER_S /* of waiting, at most */
#define CREDIT_SHARE 10u           /* of all time: a tenth */
#define WORTH_IT_NS  KILN_NS_PER_MS

enum kind { OPEN, READ, CLOSE };

struct job {
    struct job *next;
    enum kind kind;
    int fd; /* the folder to start from, or the file */
    uint64_t resolve, offset;
    size_t n;
    struct stat st;
    int64_t result;
    bool begun, done; /* by the thread */
    bool left;        /* by who asked */
    bool closes;      /* the file it reads, when it was the last to */
    char bytes[];     /* the path, or what was read */
};

struct kiln_aside {
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    struct job *first, **last; /* to be done */
    uint32_t n_waiting_closes;
    uint32_t n_threads, n_idle;
    struct job *stuck[THREADS_MAX]; /* in their threads; nobody waits for them any more */
    uint32_t n_stuck;
    uint32_t refs; /* of threads, and the owner */
    uint64_t credit_ns, credited_ns;
    uint64_t patience_ns; /* not 0: in place of these */
    uint64_t given_up;
    bool ends;
    struct kiln_metric *metric_late;
};

/* ---- a thread ---- */

static int64_t do_open(struct job *job)
{
    int fd = kiln_open_beneath(job->fd, job->bytes, job->resolve, &job->st);

    close(job->fd);
    return fd;
}

static void run_job(struct job *job)
{
    if (job->kind == OPEN) {
        job->result = do_open(job);
    } else if (job->kind == READ) {
        job->result = pread(job->fd, job->bytes, job->n, (off_t)job->offset);
        job->result = job->result < 0 ? -errno : job->result;
    } else {
        close(job->fd);
    }
}

/* What nobody waits for any more. */
static void throw_away(struct job *job)
{
    if (job->kind == OPEN && job->result >= 0)
        close((int)job->result);
    if (job->closes)
        close(job->fd);
    kiln_free(job);
}

/* It is stuck no more; while others read the same file it is theirs to close. */
static void come_free(struct kiln_aside *aside, struct job *job)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < aside->n_stuck; i++) {
        struct job *other = aside->stuck[i];

        if (other == job)
            continue;
        aside->stuck[kept++] = other;
        job->closes = job->closes && !(other->closes && other->fd == job->fd);
    }
    aside->n_stuck = kept;
}

static struct job *take_job(struct kiln_aside *aside)
{
    struct job *job;

    aside->n_idle++;
    while (!aside->first && !aside->ends)
        pthread_cond_wait(&aside->work, &aside->lock);
    aside->n_idle--;
    job = aside->first;
    if (job) {
        aside->first = job->next;
        aside->last = aside->first ? aside->last : &aside->first;
        aside->n_waiting_closes -= job->kind == CLOSE;
        job->begun = true;
    }
    return job;
}

/* Lets go of the lock, which is held. */
static void drop(struct kiln_aside *aside)
{
    bool last = --aside->refs == 0;

    pthread_mutex_unlock(&aside->lock);
    if (!last)
        return;
    pthread_cond_destroy(&aside->work);
    pthread_cond_destroy(&aside->done);
    pthread_mutex_destroy(&aside->lock);
    kiln_free(aside);
}

static void *work(void *arg)
{
    struct kiln_aside *aside = arg;
    struct job *job;

    pthread_mutex_lock(&aside->lock);
    while ((job = take_job(aside))) {
        pthread_mutex_unlock(&aside->lock);
        run_job(job);
        pthread_mutex_lock(&aside->lock);
        job->done = true;
        if (job->left) {
            come_free(aside, job);
            pthread_mutex_unlock(&aside->lock);
            throw_away(job);
            pthread_mutex_lock(&aside->lock);
        } else {
            pthread_cond_broadcast(&aside->done);
        }
    }
    drop(aside);
    return NULL;
}

/* ---- who asks ---- */

/* One more thread, where none is idle; false: there is none at all. */
static bool has_thread(struct kiln_aside *aside)
{
    pthread_t thread;

    if ((aside->n_idle && !aside->first) || aside->n_threads >= THREADS_MAX)
        return true;
    aside->refs++;
    if (kiln_thread_start("kiln-aside", work, aside, &thread) < 0) {
        aside->refs--;
        return aside->n_threads > 0;
    }
    pthread_detach(thread);
    aside->n_threads++;
    return true;
}

/* Before what nobody waits for. */
static void put_first(struct kiln_aside *aside, struct job *job)
{
    job->next = aside->first;
    aside->last = aside->first ? aside->last : &job->next;
    aside->first = job;
    pthread_cond_signal(&aside->work);
}

static void put_last(struct kiln_aside *aside, struct job *job)
{
    *aside->last = job;
    aside->last = &job->next;
    pthread_cond_signal(&aside->work);
}

/* Takes back what nobody has begun with. */
static void take_back(struct kiln_aside *aside, struct job *job)
{
    struct job **at = &aside->first;

    while (*at != job)
        at = &(*at)->next;
    *at = job->next;
    aside->last = job->next ? aside->last : at;
}

/* How long a call may be waited for now. */
static uint64_t patience(struct kiln_aside *aside, uint64_t now_ns)
{
    aside->credit_ns += (now_ns - aside->credited_ns) / CREDIT_SHARE;
    aside->credited_ns = now_ns;
    if (aside->credit_ns > CREDIT_NS)
        aside->credit_ns = CREDIT_NS;
    if (aside->patience_ns)
        return aside->patience_ns;
    return aside->credit_ns < PATIENCE_NS ? aside->credit_ns : PATIENCE_NS;
}

static void wait_for(struct kiln_aside *aside, const struct job *job, uint64_t begin_ns,
                     uint64_t patience_ns)
{
    struct timespec until = kiln_timespec_of(begin_ns + patience_ns);
    uint64_t took_ns;

    while (!job->done &&
           pthread_cond_clockwait(&aside->done, &aside->lock, CLOCK_MONOTONIC, &until) == 0)
        ;
    took_ns = kiln_clock_mono_ns() - begin_ns;
    aside->credit_ns -= took_ns < aside->credit_ns ? took_ns : aside->credit_ns;
}

static int give_up(struct kiln_aside *aside, int code)
{
    aside->given_up++;
    kiln_metric_add(aside->metric_late, 1);
    return code;
}

/* Waits for what was put.  -ETIMEDOUT: for too long. */
static int wait_done(struct kiln_aside *aside, struct job *job, uint64_t now_ns,
                     uint64_t patience_ns)
{
    wait_for(aside, job, now_ns, patience_ns);
    if (job->done)
        return 0;
    job->left = job->begun;
    if (job->begun)
        aside->stuck[aside->n_stuck++] = job;
    else
        take_back(aside, job);
    return give_up(aside, -ETIMEDOUT);
}

/* Has the job done.  0: it is, and the caller's alone; else it is nobody's that the caller knows.
 */
static int do_job(struct kiln_aside *aside, struct job *job)
{
    uint64_t now_ns = kiln_clock_mono_ns(), patience_ns;
    bool is_ours = true;
    int r;

    pthread_mutex_lock(&aside->lock);
    patience_ns = patience(aside, now_ns);
    if (patience_ns < WORTH_IT_NS || aside->n_stuck >= THREADS_MAX || !has_thread(aside)) {
        r = give_up(aside, -EBUSY);
    } else {
        put_first(aside, job);
        r = wait_done(aside, job, now_ns, patience_ns);
        is_ours = !job->left;
    }
    pthread_mutex_unlock(&aside->lock);
    if (r < 0 && is_ours) {
        if (job->kind == OPEN)
            close(job->fd);
        kiln_free(job);
    }
    return r;
}

int kiln_aside_open(struct kiln_aside *aside, int dir, const char *path, uint64_t resolve,
                    struct stat *ret_st)
{
    size_t len = strlen(path) + 1;
    struct job *job = kiln_calloc(1, sizeof(*job) + len);
    int64_t r;

    if (!job)
        return -ENOMEM;
    memcpy(job->bytes, path, len);
    job->kind = OPEN;
    job->resolve = resolve;
    job->fd = fcntl(dir, F_DUPFD_CLOEXEC, 3); /* the caller may close his meanwhile */
    if (job->fd < 0) {
        kiln_free(job);
        return -EMFILE;
    }
    r = do_job(aside, job);
    if (r < 0)
        return (int)r;
    r = job->result;
    *ret_st = job->st;
    kiln_free(job);
    return (int)r;
}

int64_t kiln_aside_read(struct kiln_aside *aside, int fd, uint64_t offset, void *to, size_t n)
{
    struct job *job = kiln_calloc(1, sizeof(*job) + n);
    int64_t r;

    if (!job)
        return -ENOMEM;
    job->kind = READ;
    job->fd = fd;
    job->offset = offset;
    job->n = n;
    r = do_job(aside, job);
    if (r < 0)
        return r;
    r = job->result;
    if (r > 0)
        memcpy(to, job->bytes, (size_t)r);
    kiln_free(job);
    return r;
}

/* Whether stuck threads read it: then they close it, too. */
static bool is_left_to_readers(struct kiln_aside *aside, int fd)
{
    bool is = false;

    for (uint32_t i = 0; i < aside->n_stuck; i++) {
        struct job *job = aside->stuck[i];

        if (job->kind == READ && job->fd == fd)
            job->closes = is = true;
    }
    return is;
}

void kiln_aside_close(struct kiln_aside *aside, int fd)
{
    struct job *job = kiln_calloc(1, sizeof(*job));

    if (!job)
        return; /* better a file too many than a thread too few */
    job->kind = CLOSE;
    job->fd = fd;
    job->left = true;
    pthread_mutex_lock(&aside->lock);
    if (is_left_to_readers(aside, fd) || aside->n_waiting_closes >= CLOSES_MAX ||
        !has_thread(aside)) {
        kiln_free(job);
    } else {
        aside->n_waiting_closes++;
        put_last(aside, job);
    }
    pthread_mutex_unlock(&aside->lock);
}

void kiln_aside_be_patient(struct kiln_aside *aside, uint64_t patience_ns)
{
    pthread_mutex_lock(&aside->lock);
    aside->patience_ns = patience_ns;
    pthread_mutex_unlock(&aside->lock);
}

uint64_t kiln_aside_given_up(struct kiln_aside *aside)
{
    uint64_t n;

    pthread_mutex_lock(&aside->lock);
    n = aside->given_up;
    pthread_mutex_unlock(&aside->lock);
    return n;
}

int kiln_aside_new(struct kiln_metrics *metrics, struct kiln_aside **ret_aside)
{
    struct kiln_aside *aside = kiln_calloc(1, sizeof(*aside));

    if (!aside)
        return -ENOMEM;
    pthread_mutex_init(&aside->lock, NULL);
    pthread_cond_init(&aside->work, NULL);
    pthread_cond_init(&aside->done, NULL);
    aside->last = &aside->first;
    aside->refs = 1;
    aside->credit_ns = CREDIT_NS;
    aside->credited_ns = kiln_clock_mono_ns();
    aside->metric_late = kiln_metric_counter(
        metrics, "kiln_host_files_late_total",
        "Calls on files of other machines and programs that were not waited for any longer.");
    *ret_aside = aside;
    return 0;
}

void kiln_aside_free(struct kiln_aside *aside)
{
    if (!aside)
        return;
    pthread_mutex_lock(&aside->lock);
    aside->ends = true;
    pthread_cond_broadcast(&aside->work);
    drop(aside);
}
