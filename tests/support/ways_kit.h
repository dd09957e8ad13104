/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ways_kit - one receiver or extension of the collector as its YAML says, with consumers that keep
 * what they get; or a whole graph.
 *
 *   struct ways kit;
 *   ways_start(&kit, KILN_RECEIVER, "otlp", "{protocols: {http: {endpoint: 127.0.0.1:0}}}");
 *   ways_call(&kit, "http", &call);      to the listener of that name; the answer is in kit.answer
 *   CHECK_EQ(kit.n, 1);
 *   ways_stop(&kit);                     checks that nothing is left of memory and pool
 */
#ifndef KILN_TESTS_SUPPORT_WAYS_KIT_H
#define KILN_TESTS_SUPPORT_WAYS_KIT_H

#include <pthread.h>

#include "collector/component.h"
#include "collector/graph.h"
#include "net/client.h"
#include "net/sockets.h"

enum { WAYS_MAX = 64 };

struct ways {
    struct kiln_config *config;
    void *settings;
    const struct kiln_component_type *type;
    struct kiln_component *component;
    struct kiln_graph *graph;
    struct kiln_sockets *sockets;
    struct kiln_metrics *metrics;
    struct kiln_pool pool;
    struct kiln_answer answer;   /* the last */
    struct kiln_outcome outcome; /* what every delivery gets */
    struct ways_end {
        struct kiln_consumer consumer; /* first */
        struct ways *kit;
        struct kiln_consumer *instead; /* who gets it all; NULL: the kit */
    } ends[KILN_SIGNALS];
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t more;
    uint32_t n;
    struct ways_got {
        enum kiln_signal signal;
        uint64_t items;
        size_t charged;
        struct kiln_batch *batch;
        struct kiln_buf body;
        enum kiln_compression compression;
        bool json;
        uint32_t n_headers;
        char address[64];
        char tenant[64];
    } got[WAYS_MAX];
};

/* Signals that no pipeline takes are bits of `without`. */
void ways_start(struct ways *kit, enum kiln_component_kind kind, const char *type,
                const char *yaml);
void ways_start_without(struct ways *kit, enum kiln_component_kind kind, const char *type,
                        const char *yaml, unsigned without);
/* A whole configuration. */
void ways_start_graph(struct ways *kit, const char *yaml);
void ways_stop(struct ways *kit);

/* What reading or making a component of this says: "place: sentence"; in a static buffer. */
const char *ways_refusal(enum kiln_component_kind kind, const char *type, const char *yaml);
const char *ways_graph_refusal(const char *yaml);

/* The port of the listener whose owner ends with `what`. */
uint16_t ways_port(struct ways *kit, const char *what);
void ways_call(struct ways *kit, const char *what, const struct kiln_call *call);
void ways_grpc(struct ways *kit, const char *what, const char *path, struct kiln_str message);
/* Waits until so many deliveries came. */
void ways_wait(struct ways *kit, uint32_t n);

#endif /* KILN_TESTS_SUPPORT_WAYS_KIT_H */
