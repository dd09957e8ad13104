/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client - HTTP and unary gRPC calls, on libcurl.
 *
 * A client keeps its connections.  Retrying and queueing are the caller's business; the client
 * says whether the answer allows it (retryable, retry_after).  Addresses are http://, https:// or
 * unix:/path (HTTP over a Unix socket).
 *
 * Threads: a client has one owner at a time; make one for each thread.
 */
#ifndef KILN_NET_CLIENT_H
#define KILN_NET_CLIENT_H

#include "base/buf.h"
#include "base/compress.h"
#include "base/err.h"
#include "net/rpc.h"

struct kiln_client;

struct kiln_client_opts {
    const char *server; /* "http://127.0.0.1:4040", "https://...", "unix:/run/kiln/kiln.sock" */
    const char *token;  /* sent as a bearer token; NULL: none */
    const char *tenant; /* X-Scope-OrgID; NULL: none */
    const char *ca_file, *cert_file, *key_file; /* PEM; NULL: the system's, none */
    const char *server_name; /* what the certificate is to say; NULL: the name in `server` */
    enum kiln_tls_version min_version, max_version;
    const char *proxy;   /* "http://10.0.0.1:3128"; NULL: as the environment says */
    bool cookies;        /* are kept, and sent again */
    bool connects_anew;  /* for each call */
    bool system_ca;      /* the system's authorities are good beside ca_file */
    bool insecure;       /* do not verify the server's certificate */
    bool checks_peer;    /* of "unix:/path": only a listener that is trusted (base/peer.h) */
    uint32_t timeout_ms; /* of a call; 0: 10,000 */
    size_t answer_max;   /* 0: 4 MiB; a larger answer is an error that is not retried */
    /* Calls end within about a second when either is true; NULL: never. */
    const _Atomic bool *cancel, *stop;
};

KILN_CHECK int kiln_client_new(const struct kiln_client_opts *opts, struct kiln_client **ret_client,
                               struct kiln_err *err);
void kiln_client_free(struct kiln_client *client);

struct kiln_call {
    const char *method; /* NULL: POST, or GET without a body */
    const char *path;   /* with the query: "/ingest?name=x" */
    const char *content_type;
    struct kiln_str body;
    enum kiln_compression encoding; /* what `body` is already compressed with */
    const struct kiln_header *headers;
    uint32_t n_headers;
};

struct kiln_answer {
    int status;              /* HTTP */
    int rpc_code;            /* gRPC: enum kiln_rpc_code; else 0 */
    bool rpc_ok;             /* gRPC said OK, also where its message cannot be read */
    bool retryable;          /* OTLP's rules for HTTP and gRPC */
    uint32_t retry_after_ms; /* from Retry-After or RetryInfo; 0: not said */
    char message[256];       /* of a refusal: the server's sentence */
    char word[32];           /* of a refusal by our API: what kind it is, "not_found" */
    bool takes_zstd;         /* the server said that it does */
    char notes[128];         /* X-Kiln-Notes: what one should know of an answer of our API */
    struct kiln_buf body;    /* uncompressed; of gRPC: the message */
};
/* `answer` is cleared first; its body is freed by kiln_answer_done(). */
void kiln_answer_init(struct kiln_answer *answer);
void kiln_answer_done(struct kiln_answer *answer);

/*
 * One HTTP call.  Returns 0 when there was an answer, whatever its status; negative when there was
 * none (-ECONNREFUSED, -ETIMEDOUT, -ECONNRESET...: worth another try; -ECANCELED).
 */
KILN_CHECK int kiln_client_call(struct kiln_client *client, const struct kiln_call *call,
                                struct kiln_answer *answer, struct kiln_err *err);

/* One unary gRPC call: `call->path` is the method's, the body the bare message. */
KILN_CHECK int kiln_client_grpc(struct kiln_client *client, const struct kiln_call *call,
                                struct kiln_answer *answer, struct kiln_err *err);

/* True for what either of them returned where another try may go better. */
bool kiln_client_retryable(int code);

#endif /* KILN_NET_CLIENT_H */
