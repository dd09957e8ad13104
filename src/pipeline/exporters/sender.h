/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sender - whoever gives a request to a receiver, once; queueing and trying again is the queue's
 * business (queue.h).
 *
 * Threads: pack and send from anywhere.  A send ends on any thread, perhaps before send() returns.
 */
#ifndef KILN_PIPELINE_EXPORTERS_SENDER_H
#define KILN_PIPELINE_EXPORTERS_SENDER_H

#include "codec/otlp_answer.h"
#include "net/client.h"
#include "pipeline/credential.h"
#include "pipeline/exporters/encode.h"
#include "pipeline/exporters/otlp_target.h"

/* How one try went. */
enum kiln_export_fate { KILN_EXPORT_SENT, KILN_EXPORT_AGAIN, KILN_EXPORT_UNWANTED };

struct kiln_export_verdict {
    enum kiln_export_fate fate;
    bool answered;                    /* by the receiver, or by nobody within the time */
    uint64_t retry_after_ns;          /* AGAIN: no sooner; 0: not said */
    struct kiln_export_result result; /* SENT: what was left out */
    char reason[320];                 /* else: why */
};

/* What a client for a target is made of; the target outlives it. */
struct kiln_client_opts kiln_otlp_client_opts(const struct kiln_otlp_target *target,
                                              size_t answer_max);
/* A request to it; what it is made of outlives it. */
struct kiln_call kiln_otlp_request(const struct kiln_otlp_target *target,
                                   const struct kiln_spooled *head, struct kiln_str body);
/* One call, that waits for its answer; as kiln_client_call(). */
KILN_CHECK int kiln_otlp_call(const struct kiln_otlp_target *target, struct kiln_client *client,
                              const struct kiln_spooled *head, struct kiln_str body,
                              struct kiln_answer *answer, struct kiln_err *err);
/* What a call's code and answer mean by the rules of OTLP. */
void kiln_export_judge(enum kiln_otlp_protocol protocol, int code, const struct kiln_answer *answer,
                       const struct kiln_err *err, struct kiln_export_verdict *ret_verdict);

/* One try. */
struct kiln_send {
    struct kiln_send *next; /* the sender's */
    const struct kiln_export_item *item;
    void (*ended)(struct kiln_send *send, const struct kiln_export_verdict *verdict);
};

struct kiln_sender;

struct kiln_sender_ops {
    /* Whether a sealed delivery is packed as it is; NULL: none is. */
    bool (*passes)(const struct kiln_sender *sender, const struct kiln_delivery *delivery);
    /* Requests of a delivery; as kiln_export_pack(). */
    int (*pack)(struct kiln_sender *sender, const struct kiln_delivery *delivery,
                struct kiln_export_item **ret_items, struct kiln_err *err);
    void (*send)(struct kiln_sender *sender, struct kiln_send *send);
    /* All that is under way, and all that will be sent from now on, ends soon: AGAIN. */
    void (*cancel)(struct kiln_sender *sender);
    void (*free)(struct kiln_sender *sender); /* nothing is under way */
};

struct kiln_sender {
    const struct kiln_sender_ops *ops;
    bool light;      /* sealed deliveries, plain and short, pass as they are */
    bool takes_json; /* of signals that are not profiles */
};

/* ---- OTLP ---- */

struct kiln_otlp_sender_opts {
    struct kiln_otlp_target_opts target; /* all is stated: no variable of the environment counts */
    int level;                           /* of compression; 0: a sensible one */
    size_t request_max;                  /* before compression */
    uint32_t consumers;                  /* how many requests at once */
    const char *server_name;             /* what the certificate is to say; outlives the sender */
    bool system_ca;                      /* the system's authorities are good beside ca_file */
    enum kiln_tls_version min_version, max_version;
    struct kiln_credential credential;
    /* Of HTTP (net/client.h), and of gRPC (net/h2client.h); texts outlive the sender. */
    const char *proxy, *authority;
    bool cookies, connects_anew, pings_idle;
    uint32_t ping_after_ms, ping_timeout_ms;
};
/* Pyroscope's push API, of profiles; the path is the method's. */
KILN_CHECK int kiln_push_sender_new(const struct kiln_otlp_sender_opts *opts,
                                    struct kiln_sender **ret_sender, struct kiln_err *err);
KILN_CHECK int kiln_otlp_sender_new(const struct kiln_otlp_sender_opts *opts,
                                    struct kiln_sender **ret_sender, struct kiln_err *err);

#endif /* KILN_PIPELINE_EXPORTERS_SENDER_H */
