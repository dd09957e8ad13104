/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit - one record for each action that changes or takes away what others rely on, and for
 * sign-ins that failed: who did what, to what, from where, with which result.
 *
 *   time=... level=info msg=audit action="delete service" tenant=shop target=cart who=ops
 *   peer=10.0.0.7:51022 result=ok
 *
 * Actions that failed have 600 records a minute at most; the rest is one record with a count, so
 * that requests which achieve nothing do not fill a disk.  Actions that succeeded are always
 * recorded.
 *
 * A record is a line of the ordinary log at level info, and of a file where one is named: of mode
 * 0600, only appended to, never reached through a link.  Texts of clients are escaped by the log
 * (base/log.h), so that no name can look like another field or line.  A token is never in it, only
 * its name.
 *
 * Threads: safe from anywhere.
 */
#ifndef KILN_PIPELINE_AUDIT_H
#define KILN_PIPELINE_AUDIT_H

#include "base/err.h"
#include "base/log.h"
#include "base/str.h"

struct kiln_audit;

struct kiln_audit_record {
    const char *action;     /* "delete service" */
    const char *tenant;     /* "": of none, or of all */
    struct kiln_str target; /* may come from a client */
    const char *who;        /* the name of a token, "uid 0", "anonymous"; "": not known */
    const char *peer;       /* address */
    const char *result;     /* "ok", "refused", "failed" */
    uint64_t count;         /* of the same; 0: it is one */
};

/* Records go to the log, which may be NULL. */
KILN_CHECK int kiln_audit_new(struct kiln_log *log, struct kiln_audit **ret_audit);
void kiln_audit_free(struct kiln_audit *audit);

/* To this file too, from now on. */
KILN_CHECK int kiln_audit_open(struct kiln_audit *audit, const char *path, enum kiln_log_form form,
                               struct kiln_err *err);
/* The file of the same name again, which may be another one by now; the old one stays in use where
 * that fails. */
KILN_CHECK int kiln_audit_reopen(struct kiln_audit *audit, struct kiln_err *err);

/* `audit` may be NULL. */
void kiln_audit_write(struct kiln_audit *audit, const struct kiln_audit_record *record);

/* "ok", "refused" or "failed", by a status of HTTP. */
const char *kiln_audit_result(int status);

#endif /* KILN_PIPELINE_AUDIT_H */
