/* SPDX-License-Identifier: Apache-2.0 */
/*
 * admin - what `kiln store` asks of a running server, over HTTP:
 *
 *   GET    /api/v1/store/stats            what is in the store, by service and type (JSON)
 *   POST   /api/v1/store/check            reads every byte; what is damaged (JSON)
 *   POST   /api/v1/store/compact          merges until nothing is left to merge (JSON)
 *   POST   /api/v1/store/backup?dir=DIR   DIR is a directory of the server's machine
 *   GET    /api/v1/store/export?service=  a selection (store/choose.h) as OTLP protobuf
 *   DELETE /api/v1/services/NAME          really deletes
 *
 * All of them need admin access.  stats, export and delete are of the tenant of the request; root
 * and the server's user, on the Unix socket, see and export all tenants.  check, compact and backup
 * are of the whole store: a token of one tenant is refused.
 *
 * A backup goes to any directory where root or the server's user asks on the Unix socket.  Anybody
 * else names a directory in the one of the settings, by one name.
 *
 * They may take long, and run in the lane for that, a few at once.
 *
 * Threads: as net/server.h.  The server must be stopped before the engine is closed.
 */
#ifndef KILN_STORE_ADMIN_H
#define KILN_STORE_ADMIN_H

#include "base/log.h"
#include "net/server.h"
#include "store/engine.h"
#include "store/io.h"

struct kiln_gate; /* pipeline/gate.h */

struct kiln_store_admin_opts {
    struct kiln_engine *engine; /* the embedded one: store/store.h */
    struct kiln_io *io;         /* its directory, for the check */
    struct kiln_gate *gate;     /* knows who asks */
    const char *backup_dir;     /* where clients may have backups made; NULL: nowhere */
    size_t export_bytes;        /* the most memory an export takes; 0: 256 MiB */
    struct kiln_pool *pool;     /* and as much for its answer; NULL: not charged */
    struct kiln_log *log;
};

KILN_CHECK int kiln_store_admin_add(struct kiln_router *router,
                                    const struct kiln_store_admin_opts *opts);

#endif /* KILN_STORE_ADMIN_H */
