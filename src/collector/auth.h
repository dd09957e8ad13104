/* SPDX-License-Identifier: Apache-2.0 */
/*
 * auth - what an extension that authenticates does for receivers and exporters.
 *
 * bearertokenauth and basicauth are such.  Who has `auth: {authenticator: id}` asks for it in its
 * make(), and keeps it: extensions outlive all others.
 *
 * Threads: check and header from anywhere.
 */
#ifndef KILN_COLLECTOR_AUTH_H
#define KILN_COLLECTOR_AUTH_H

#include "collector/component.h"
#include "net/server.h"
#include "pipeline/credential.h"

struct kiln_auth;

enum kiln_verdict {
    KILN_AUTH_NO,
    KILN_AUTH_YES,
    KILN_AUTH_UNSURE, /* it takes long to tell */
};

struct kiln_auth_ops {
    /*
     * Whether this request may come in; if not, *ret_why is a sentence.  Who asks has time only
     * where he is `patient`; there is an answer then.  NULL: it is no server's.
     */
    enum kiln_verdict (*check)(struct kiln_auth *auth, const struct kiln_request *request,
                               bool patient, const char **ret_why);
    const char *challenge; /* of WWW-Authenticate */
    /*
     * The header that a client sends, for every request anew: a token may have changed.  `name` and
     * `value` are initialised, and appended to.  NULL: it is no client's.
     */
    int (*header)(struct kiln_auth *auth, struct kiln_buf *name, struct kiln_buf *value,
                  struct kiln_err *err);
};

/* The head of such an extension. */
struct kiln_auth {
    struct kiln_component component; /* first */
    const struct kiln_auth_ops *ops;
};

enum kiln_auth_side { KILN_AUTH_SERVER, KILN_AUTH_CLIENT };

/*
 * The extension of this id; *ret_auth is NULL where `id` is.  Fails with a sentence where
 * service::extensions does not name it, or it is not for that side.
 */
KILN_CHECK int kiln_auth_find(const struct kiln_graph *graph, const char *id,
                              enum kiln_auth_side side, struct kiln_auth **ret_auth,
                              struct kiln_err *err);

/*
 * For kiln_router_guard(): refuses with 401 what `auth` (not NULL) does not let in; routes that
 * ask for no access are for everybody.
 */
struct kiln_guard kiln_auth_guard(struct kiln_auth *auth);
/* For who calls: what `auth` (not NULL) sends. */
struct kiln_credential kiln_auth_credential(struct kiln_auth *auth);

#endif /* KILN_COLLECTOR_AUTH_H */
