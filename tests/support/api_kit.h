/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_kit - the APIs over a store on a simulated disk, on a real port: what a client sees.
 *
 * Helpers fail the test on any error they do not return.
 */
#ifndef KILN_TESTS_API_KIT_H
#define KILN_TESTS_API_KIT_H

#include "api/api.h"
#include "base/clock.h"
#include "net.h"
#include "store_kit.h"

#define API_KIT_NOW    (UINT64_C(1772366400) * KILN_NS_PER_S) /* 2026-03-01T12:00:00Z */
#define API_KIT_MINUTE (60 * KILN_NS_PER_S)

struct api_kit {
    struct store_kit store;
    struct kiln_querier *querier;
    struct kiln_kept *kept;
    struct kiln_api api;
    struct net_fixture net;
    struct kiln_pool pool;
    const char *headers; /* of each request, every line with its end; NULL: no more than usual */
};

/* An empty store, a clock that stands at API_KIT_NOW, and the routes that `add` puts on.  The
 * tenant of a request is its X-Scope-OrgID, or anonymous.  `memory` is what all questions may use;
 * 0: 256 MiB. */
void api_kit_init(struct api_kit *kit, size_t memory,
                  int (*add)(struct kiln_api *api, struct kiln_router *router));
void api_kit_done(struct api_kit *kit);

/* A CPU profile of ten seconds at 100 Hz, a heap, and ten seconds of waits, from so long before the
 * kit's clock. */
void api_kit_put_cpu(struct api_kit *kit, const char *stacks, uint64_t ago_ns, const char *resource,
                     uint8_t id);
void api_kit_put_heap(struct api_kit *kit, const char *stacks, uint64_t ago_ns,
                      const char *resource);

void api_kit_put_off_cpu(struct api_kit *kit, const char *stacks, uint64_t ago_ns,
                         const char *resource);

/* The body of an answer, until the next call; its status and head are kept for the next two. */
const char *api_kit_get(struct api_kit *kit, const char *target);
const char *api_kit_send(struct api_kit *kit, const char *method, const char *target,
                         const char *body);
int api_kit_status(void);
/* The value of a header (its name in lower case), or "". */
const char *api_kit_header(const char *name);

/* Compares JSON, broken into lines, with tests/golden/api/NAME; KILN_UPDATE_GOLDEN=1 writes the
 * file.
 */
#define API_GOLDEN(name, text) api_kit_golden(KILN_SOURCE_DIR "/tests/golden/api/" name, text)
void api_kit_golden(const char *path, const char *text);

#endif /* KILN_TESTS_API_KIT_H */
