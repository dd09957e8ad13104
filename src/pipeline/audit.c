/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

enum { TARGET_BYTES = 1024, COUNT_BYTES = 24, FAILED_MAX = 600 };

struct kiln_audit {
    struct kiln_log *log; /* NULL: none */
    pthread_mutex_t lock; /* of the rest */
    uint64_t minute_ns;   /* monotonic: when `failed` began to count */
    uint64_t failed, suppressed;
    char path[PATH_MAX];
    enum kiln_log_form form;
    struct kiln_log *file; /* NULL: none */
    int fd;
};

int kiln_audit_new(struct kiln_log *log, struct kiln_audit **ret_audit)
{
    struct kiln_audit *audit = kiln_calloc(1, sizeof(*audit));

    if (!audit)
        return -ENOMEM;
    audit->log = log;
    audit->fd = -1;
    pthread_mutex_init(&audit->lock, NULL);
    *ret_audit = audit;
    return 0;
}

static void close_file(struct kiln_log *file, int fd)
{
    kiln_log_free(file);
    if (fd >= 0)
        close(fd);
}

/* ---- the file ---- */

/* A pipe or a device in its place is opened without waiting, and refused. */
static int open_file(const char *path)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    struct stat st;
    int r = 0;

    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) < 0)
        r = -errno;
    else if (!S_ISREG(st.st_mode))
        r = -ENOTSUP;
    else if (st.st_mode & 0077 && fchmod(fd, 0600) < 0)
        r = -errno;
    if (r == 0)
        return fd;
    close(fd);
    return r;
}

int kiln_audit_reopen(struct kiln_audit *audit, struct kiln_err *err)
{
    struct kiln_log *file = NULL, *old;
    int fd, old_fd, r;

    if (!audit->path[0])
        return 0;
    fd = open_file(audit->path);
    r = fd < 0 ? fd : kiln_log_new(fd, KILN_LOG_INFO, audit->form, &file);
    if (r < 0) {
        close_file(NULL, fd);
        return kiln_err_set(err, r, audit->path, "the audit log cannot be opened: %s",
                            r == -ELOOP     ? "it is a symbolic link"
                            : r == -ENOTSUP ? "it is not a regular file"
                                            : kiln_err_text(r));
    }
    pthread_mutex_lock(&audit->lock);
    old = audit->file;
    old_fd = audit->fd;
    audit->file = file;
    audit->fd = fd;
    pthread_mutex_unlock(&audit->lock);
    close_file(old, old_fd);
    return 0;
}

int kiln_audit_open(struct kiln_audit *audit, const char *path, enum kiln_log_form form,
                    struct kiln_err *err)
{
    if (snprintf(audit->path, sizeof(audit->path), "%s", path) >= (int)sizeof(audit->path))
        return kiln_err_set(err, -ENAMETOOLONG, NULL, "the path of the audit log is too long");
    audit->form = form == KILN_LOG_JSON ? form : KILN_LOG_LOGFMT;
    return kiln_audit_reopen(audit, err);
}

/* ---- records ---- */

/* Ends in NUL, and has none before: what comes after one in a name must not be lost. */
static void copy_target(struct kiln_str target, char out[TARGET_BYTES + 1])
{
    size_t n = target.len < TARGET_BYTES ? target.len : TARGET_BYTES;

    for (size_t i = 0; i < n; i++)
        out[i] = target.ptr[i];
    for (size_t i = 0; i < n; i++)
        if (!out[i])
            out[i] = '\x01'; /* which the log escapes */
    out[n] = '\0';
}

static void put(struct kiln_log *log, const struct kiln_audit_record *record, const char *target)
{
    char count[COUNT_BYTES];

    snprintf(count, sizeof(count), "%llu", (unsigned long long)record->count);
    kiln_log(log, KILN_LOG_INFO, "audit", "action", "%s", record->action, "tenant", "%s",
             record->tenant, "target", "%s", target, "who", "%s", record->who, "peer", "%s",
             record->peer, "result", "%s", record->result, record->count ? "count" : NULL, "%s",
             count, NULL);
}

/* With the lock. */
static void write_both(struct kiln_audit *audit, const struct kiln_audit_record *record)
{
    char target[TARGET_BYTES + 1];

    copy_target(record->target, target);
    put(audit->log, record, target);
    put(audit->file, record, target);
}

static void write_suppressed(struct kiln_audit *audit)
{
    if (audit->suppressed)
        write_both(audit, &(struct kiln_audit_record){.action = "others",
                                                      .tenant = "",
                                                      .target = KILN_STR(""),
                                                      .who = "",
                                                      .peer = "",
                                                      .result = "failed",
                                                      .count = audit->suppressed});
    audit->suppressed = 0;
}

/* Whether it is one too many in this minute.  Records with a count are few by themselves. */
static bool is_flood(struct kiln_audit *audit, const struct kiln_audit_record *record)
{
    uint64_t now_ns = kiln_clock_mono_ns();

    if (now_ns - audit->minute_ns >= 60 * KILN_NS_PER_S) {
        write_suppressed(audit);
        audit->minute_ns = now_ns;
        audit->failed = 0;
    }
    if (record->count || strcmp(record->result, "ok") == 0 || audit->failed++ < FAILED_MAX)
        return false;
    audit->suppressed++;
    return true;
}

void kiln_audit_write(struct kiln_audit *audit, const struct kiln_audit_record *record)
{
    if (!audit)
        return;
    pthread_mutex_lock(&audit->lock);
    if (!is_flood(audit, record))
        write_both(audit, record);
    pthread_mutex_unlock(&audit->lock);
}

void kiln_audit_free(struct kiln_audit *audit)
{
    if (!audit)
        return;
    write_suppressed(audit);
    close_file(audit->file, audit->fd);
    pthread_mutex_destroy(&audit->lock);
    kiln_free(audit);
}

const char *kiln_audit_result(int status)
{
    return status < 400                                      ? "ok"
           : status == 401 || status == 403 || status == 429 ? "refused"
                                                             : "failed";
}
