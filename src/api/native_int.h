/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_int - what the files of our own API share.  docs/openapi.yaml says what they answer.
 *
 *   native.c         routes; from a request to a reply
 *   native_args.c    parameters, and what is wrong with them
 *   native_ask.c     parameters ─▶ kiln_ask
 *   native_write.c   the parts that answers are made of
 *   native_files.c   answers as files of other formats
 *   native_open.c    files that come in, to be looked at
 *   native_timeline.c   samples in the order of their times
 *   native_body.c    JSON that comes in
 *   native_told.c    what is kept of what people tell
 *   native_query.c, native_series.c, native_diff.c, native_labels.c, native_found.c,
 * native_windows.c, native_function.c, native_gap.c, native_source.c, native_services.c,
 *   native_deployments.c, native_annotations.c   questions
 *   native_symbols.c   debug files, and what lacks names
 *   native_session.c, native_status.c, native_drops.c   about the server itself
 *   native_agents.c, native_orders.c   host profilers, and what they are told
 *
 * Threads: a call has one owner, the worker that answers it.
 */
#ifndef KILN_API_NATIVE_INT_H
#define KILN_API_NATIVE_INT_H

#include "api/api.h"
#include "base/json.h"
#include "base/regex.h"
#include "codec/codec.h"
#include "core/timed.h"

/* ---- parameters ---- */

#define KILN_NATIVE_PARAMS(X)                                                                      \
    X(QUERY, "query")                                                                              \
    X(FROM, "from")                                                                                \
    X(UNTIL, "until")                                                                              \
    X(FORMAT, "format")                                                                            \
    X(NODES, "nodes")                                                                              \
    X(LIMIT, "limit")                                                                              \
    X(STEP, "step")                                                                                \
    X(BY, "by")                                                                                    \
    X(FUNCTION, "function")                                                                        \
    X(WITH, "with")                                                                                \
    X(WITHOUT, "without")                                                                          \
    X(TRACE_ID, "trace_id")                                                                        \
    X(SPAN_ID, "span_id")                                                                          \
    X(PROFILE_ID, "profile_id")                                                                    \
    X(EXACT, "exact")                                                                              \
    X(ORDER, "order")                                                                              \
    X(SERVICE, "service")                                                                          \
    X(NORMALIZE, "normalize")                                                                      \
    X(LEFT_QUERY, "left_query")                                                                    \
    X(LEFT_FROM, "left_from")                                                                      \
    X(LEFT_UNTIL, "left_until")                                                                    \
    X(LEFT_VERSION, "left_version")                                                                \
    X(LEFT_DEPLOYMENT, "left_deployment")                                                          \
    X(RIGHT_QUERY, "right_query")                                                                  \
    X(RIGHT_FROM, "right_from")                                                                    \
    X(RIGHT_UNTIL, "right_until")                                                                  \
    X(RIGHT_VERSION, "right_version")                                                              \
    X(RIGHT_DEPLOYMENT, "right_deployment")                                                        \
    X(TIMEOUT, "timeout")                                                                          \
    X(NAME, "name")                                                                                \
    X(TYPE, "type")                                                                                \
    X(FILE, "file")                                                                                \
    X(OFFSET, "offset")                                                                            \
    X(TOTAL, "total")                                                                              \
    X(SHA256, "sha256")                                                                            \
    X(MISSING, "missing")                                                                          \
    X(HZ, "hz")                                                                                    \
    X(DURATION, "duration")                                                                        \
    X(LABEL, "label")                                                                              \
    X(SORT, "sort")                                                                                \
    X(POINTS, "points")                                                                            \
    X(MATCH, "match")

enum kiln_native_param {
#define X(suffix, name) KILN_NATIVE_##suffix,
    KILN_NATIVE_PARAMS(X)
#undef X
        KILN_NATIVE_PARAMS_N
};
#define KILN_NATIVE_BIT(suffix) (UINT64_C(1) << KILN_NATIVE_##suffix)
/* Sets of them that go together. */
#define KILN_NATIVE_RANGE                                                                          \
    (KILN_NATIVE_BIT(QUERY) | KILN_NATIVE_BIT(FROM) | KILN_NATIVE_BIT(UNTIL) |                     \
     KILN_NATIVE_BIT(TIMEOUT))
#define KILN_NATIVE_STACKS                                                                         \
    (KILN_NATIVE_BIT(FUNCTION) | KILN_NATIVE_BIT(WITH) | KILN_NATIVE_BIT(WITHOUT))
#define KILN_NATIVE_LINKS (KILN_NATIVE_BIT(TRACE_ID) | KILN_NATIVE_BIT(SPAN_ID))

struct kiln_native_texts {
    struct kiln_str *items;
    uint32_t n, cap;
};
/* Ids of 16 bytes, or of 8. */
struct kiln_native_ids {
    uint8_t *bytes;
    uint32_t n, cap;
};
struct kiln_native_side {
    struct kiln_str query, version, deployment;
    struct kiln_str selector;   /* of what was named: its labels */
    uint64_t from_ns, until_ns; /* 0: not said */
};

enum {
    KILN_NATIVE_NODES_DEFAULT = 8192,
    KILN_NATIVE_ROWS_DEFAULT = 100,
    KILN_NATIVE_MANY_ROWS_DEFAULT = 10000
};

/* What was said; what was not has its default. */
struct kiln_native_args {
    uint64_t said; /* KILN_NATIVE_BIT()s */
    struct kiln_str query, format, with, without, service, name, type, file, sha256, sort, match;
    uint64_t from_ns, until_ns;
    uint32_t nodes, limit, points;
    uint64_t step_ns, timeout_ms; /* 0: not said */
    struct kiln_native_texts by, functions;
    struct kiln_native_ids trace_ids, span_ids, profile_ids;
    uint64_t offset, total;
    bool exact, missing;
    uint32_t hz;          /* 0: not said */
    uint64_t duration_ns; /* 0: not said */
    struct kiln_str label;
    enum kiln_found_order order;
    struct kiln_str normalize;
    struct kiln_native_side left, right;
};

/* ---- a call ---- */

struct kiln_native_note {
    const char *code;
    char text[192];
};

struct kiln_native_call {
    struct kiln_api *api;
    struct kiln_request *request;
    struct kiln_native_args args;
    struct kiln_err err;
    const char *param; /* whose fault `err` is; NULL: err.where says it */
    char known[512];   /* words to go on with behind the error; "" */
    uint64_t now_ns;
    size_t room; /* taken from a leash */
    size_t paid; /* taken from the pool of questions, for the arena */
    struct kiln_regex *with, *without;
    struct kiln_native_note notes[8];
    uint32_t n_notes;
    /* the answer */
    int status;
    const char *content_type; /* NULL: no body */
    char disposition[128];    /* Content-Disposition; "": none */
    char cookie[192];         /* Set-Cookie; "": none */
    uint32_t retry_s;         /* Retry-After; 0: none, or what is usual */
    char audited[512];        /* what an audit record is about; "": what follows the path */
    bool cacheable;
    struct kiln_buf body;
    struct kiln_json_out w; /* into body */
    struct kiln_budget budget;
    struct kiln_arena arena; /* texts of parameters */
};

struct kiln_native_endpoint {
    const char *method, *path;
    enum kiln_access access;
    uint64_t params; /* that it knows */
    /* Fills the body, or fails and fills call->err. */
    int (*run)(struct kiln_native_call *call);
    size_t body_max;
};

/* ---- native_args.c ---- */

/* Reads all parameters; one that is not in `known` is an error. */
KILN_CHECK int kiln_native_args_read(struct kiln_native_call *call, uint64_t known);
void kiln_native_args_done(struct kiln_native_call *call);
/* The place of a word in a list that NULL ends; an error that names the words otherwise. */
KILN_CHECK int kiln_native_choose(struct kiln_native_call *call, const char *param,
                                  struct kiln_str word, const char *const *words);
KILN_CHECK int kiln_native_time(struct kiln_native_call *call, const char *param,
                                struct kiln_str text, uint64_t *ret_ns);
/* Hexadecimal digits, dashes between them passed over. */
KILN_CHECK int kiln_native_id(struct kiln_native_call *call, const char *param,
                              struct kiln_str text, uint8_t *ret_id, size_t size);
/* Length of a bucket: what was asked for, or one that gives at most 250. */
uint64_t kiln_native_step(const struct kiln_native_args *args);
/* How many rows `limit` allows: all with 0, `by_default` without it. */
uint32_t kiln_native_most(const struct kiln_native_call *call, uint32_t by_default);
/* Whether a text contains that of `match`. */
bool kiln_native_matches(const struct kiln_native_call *call, struct kiln_str text);
/* Fails the call with the parameter's name before the sentence. */
int kiln_native_refuse(struct kiln_native_call *call, const char *param, const char *fmt, ...)
    KILN_PRINTF(3, 4);

/* ---- native_ask.c ---- */

/* What a call asks beside its parameters. */
struct kiln_native_wish {
    const struct kiln_native_side *side; /* of a diff; NULL: none */
    bool any_type;                       /* a type need not be said */
    bool no_stacks;                      /* parameters about stacks do not count */
    bool all_times;                      /* unless times were said */
    struct kiln_str type;                /* five parts; empty: what the selector says */
    bool type_wins;                      /* over what the selector says */
};
KILN_CHECK int kiln_native_ask(struct kiln_native_call *call, const struct kiln_native_wish *wish,
                               struct kiln_ask **ret_ask);
/* Gives the room back, and closes.  NULL is allowed. */
void kiln_native_close(struct kiln_native_call *call, struct kiln_ask *ask);
/*
 * Puts a second question of a call on the leash of the first: who has memory and waits for more
 * might wait for somebody who does the same.
 */
void kiln_native_share(struct kiln_ask *first, struct kiln_ask *second);
/* Memory for an answer of about so many bytes, from the question's, until it is closed;
 * KILN_E_LIMIT.  Only of one question (the first) of a call. */
KILN_CHECK int kiln_native_room(struct kiln_native_call *call, struct kiln_ask *ask, size_t bytes);

/* ---- native_write.c ---- */

void kiln_native_note(struct kiln_native_call *call, const char *code, const char *fmt, ...)
    KILN_PRINTF(3, 4);
/* What is to be said of any answer with a basis. */
void kiln_native_note_basis(struct kiln_native_call *call, const struct kiln_basis *basis);
/* Lists have no member for notes: their header X-Kiln-Notes has it. */
void kiln_native_note_damaged(struct kiln_native_call *call, uint32_t n_damaged);
/* The same of a tree: what is folded, what is estimated. */
void kiln_native_note_flame(struct kiln_native_call *call, const struct kiln_flame *flame);
/* Notes about what was pruned: the largest possible error of nodes and of functions, in percent of
 * everything; 0: none. */
void kiln_native_note_bounds(struct kiln_native_call *call, double nodes, double functions);

/* Members of the object that is open: a name and its value. */
void kiln_native_put_text(struct kiln_native_call *call, const char *name, struct kiln_str text);
void kiln_native_put_said(struct kiln_native_call *call, const char *name,
                          const char *text); /* "": null */
void kiln_native_put_number(struct kiln_native_call *call, const char *name, double number);
void kiln_native_put_u64(struct kiln_native_call *call, const char *name, uint64_t number);
void kiln_native_put_i64(struct kiln_native_call *call, const char *name, int64_t number);
void kiln_native_put_flag(struct kiln_native_call *call, const char *name, bool flag);
void kiln_native_put_time(struct kiln_native_call *call, const char *name,
                          uint64_t ns); /* 0: null */
/* The same where 0 is the time of a question and not the lack of one. */
void kiln_native_put_moment(struct kiln_native_call *call, const char *name, uint64_t ns);
void kiln_native_put_seconds(struct kiln_native_call *call, const char *name, uint64_t ns);
void kiln_native_put_id(struct kiln_native_call *call, const char *name, const uint8_t *id,
                        size_t size); /* all zero: null */
void kiln_native_put_type(struct kiln_native_call *call, const struct kiln_type *type);
void kiln_native_put_type_members(struct kiln_native_call *call, const struct kiln_type *type);
void kiln_native_put_range(struct kiln_native_call *call, uint64_t from_ns, uint64_t until_ns);
void kiln_native_put_basis(struct kiln_native_call *call, const struct kiln_basis *basis);
/* The type and the matchers of a question, as a selector. */
void kiln_native_put_selector(struct kiln_native_call *call, const char *name,
                              const struct kiln_ask *ask);
void kiln_native_put_labels(struct kiln_native_call *call, const struct kiln_series *series);
void kiln_native_put_notes(struct kiln_native_call *call);
void kiln_native_put_profile(struct kiln_native_call *call, const struct kiln_found_row *row);

/* Names that a tree uses, numbered anew: [old] is the new number and one, or 0. */
struct kiln_native_names {
    uint32_t *number;
    uint32_t *used; /* old numbers, in the new order */
    uint32_t n_used;
};
KILN_CHECK int kiln_native_names_init(struct kiln_native_names *names, uint32_t n);
void kiln_native_names_done(struct kiln_native_names *names);
uint32_t kiln_native_names_use(struct kiln_native_names *names, uint32_t old);
/* names, files, modules, kinds */
void kiln_native_put_names(struct kiln_native_call *call, const struct kiln_native_names *names,
                           const struct kiln_flame_name *all);
/* A name and the rest of a function. */
void kiln_native_put_function(struct kiln_native_call *call, const struct kiln_flame_name *name);

/* "flamegraph", "top" */
/* A tree as columns, one array for each member of its nodes: numbers that stand `stride` apart. */
struct kiln_native_shape {
    const uint32_t *name, *depth; /* of the first node */
    size_t stride, n;
};
/* Names and depths; then any other member, of which `first` is the first node's. */
void kiln_native_put_shape(struct kiln_native_call *call, const struct kiln_native_shape *shape,
                           struct kiln_native_names *names);
void kiln_native_put_values(struct kiln_native_call *call, const char *key, const int64_t *first,
                            const struct kiln_native_shape *shape);
/* The number of the name of what was folded, or null. */
void kiln_native_put_other(struct kiln_native_call *call, uint32_t other,
                           const struct kiln_native_names *names);
KILN_CHECK int kiln_native_put_flame(struct kiln_native_call *call, const struct kiln_flame *flame);
void kiln_native_put_top(struct kiln_native_call *call, const struct kiln_flame *flame,
                         double count, uint32_t limit);
/* "top" up to its rows, of which the caller puts as many as it is told; a note says what is cut. */
uint32_t kiln_native_begin_top(struct kiln_native_call *call, uint32_t n_functions, uint32_t limit,
                               int64_t error_bound);
void kiln_native_end_top(struct kiln_native_call *call);
/* About how many bytes they take. */
size_t kiln_native_flame_bytes(const struct kiln_flame *flame);

/* Half-width of the 95 % interval of a share, after Agresti and Coull; below 0: not known. */
double kiln_native_half(double share, double count);
/* A share, to a millionth. */
void kiln_native_put_share(struct kiln_native_call *call, double share);
/* "PREFIX_share" and "PREFIX_error": what part of the total a value is, of so many observations. */
void kiln_native_put_part(struct kiln_native_call *call, const char *prefix, int64_t value,
                          int64_t total, double count);
/* A share's half-width, or null. */
void kiln_native_put_half(struct kiln_native_call *call, double share, double count);

/* ---- the questions ---- */

int kiln_native_run_query(struct kiln_native_call *call);
int kiln_native_run_diff(struct kiln_native_call *call);
int kiln_native_run_labels(struct kiln_native_call *call);
int kiln_native_run_values(struct kiln_native_call *call);
int kiln_native_run_series(struct kiln_native_call *call);
int kiln_native_run_types(struct kiln_native_call *call);
int kiln_native_run_profiles(struct kiln_native_call *call);
int kiln_native_run_profile(struct kiln_native_call *call);
int kiln_native_run_spans(struct kiln_native_call *call);
int kiln_native_run_windows(struct kiln_native_call *call);
int kiln_native_run_function(struct kiln_native_call *call);
int kiln_native_run_gap(struct kiln_native_call *call);
int kiln_native_run_services(struct kiln_native_call *call);
int kiln_native_run_deployments(struct kiln_native_call *call);
int kiln_native_run_deploy(struct kiln_native_call *call);
int kiln_native_run_undeploy(struct kiln_native_call *call);
int kiln_native_run_annotations(struct kiln_native_call *call);
int kiln_native_run_annotate(struct kiln_native_call *call);
int kiln_native_run_unannotate(struct kiln_native_call *call);
int kiln_native_run_findings(struct kiln_native_call *call);

int kiln_native_run_open(struct kiln_native_call *call);
int kiln_native_run_source(struct kiln_native_call *call);

int kiln_native_run_symbols(struct kiln_native_call *call);
int kiln_native_run_symbols_of(struct kiln_native_call *call);
int kiln_native_run_symbols_put(struct kiln_native_call *call);
int kiln_native_run_symbols_delete(struct kiln_native_call *call);

/* ---- native_query.c ---- */

/* What an answer about samples begins with, but for the total, and what it ends with. */
void kiln_native_begin_answer(struct kiln_native_call *call, const struct kiln_type *type,
                              struct kiln_window range, const struct kiln_basis *basis);
void kiln_native_end_answer(struct kiln_native_call *call);
/* Total, table and tree: what of these there is. */
KILN_CHECK int kiln_native_put_merged(struct kiln_native_call *call,
                                      const struct kiln_merged *merged);

/* The same of a question, whose type and range they are. */
void kiln_native_begin_question(struct kiln_native_call *call, const struct kiln_ask *ask,
                                const struct kiln_basis *basis);

/* ---- native_series.c ---- */

KILN_CHECK int kiln_native_answer_series(struct kiln_native_call *call, struct kiln_ask *ask);

/* ---- native_timeline.c ---- */

/* How many samples are wanted. */
KILN_CHECK int kiln_native_rows(struct kiln_native_call *call, uint32_t *ret_limit);
KILN_CHECK int kiln_native_answer_timeline(struct kiln_native_call *call, struct kiln_ask *ask);
/* Total and timeline; about how many bytes they take. */
KILN_CHECK int kiln_native_put_timed(struct kiln_native_call *call, const struct kiln_timed *timed);
size_t kiln_native_timed_bytes(const struct kiln_timed *timed);

/* ---- about the server itself ---- */

struct kiln_caller;

int kiln_native_run_session(struct kiln_native_call *call);
int kiln_native_run_sign_in(struct kiln_native_call *call);
int kiln_native_run_sign_out(struct kiln_native_call *call);
int kiln_native_run_status(struct kiln_native_call *call);
int kiln_native_run_agents(struct kiln_native_call *call);
int kiln_native_run_report(struct kiln_native_call *call);
int kiln_native_run_orders(struct kiln_native_call *call);
int kiln_native_run_order(struct kiln_native_call *call);
int kiln_native_run_unorder(struct kiln_native_call *call);
/* Why it may not give all. */
#define KILN_NATIVE_ANONYMOUS_ORDERS                                                               \
    "This server has no tokens. Root and its own user may pause, and boost more, over its Unix "   \
    "socket (sudo kiln pause ...); everybody may where server.anonymous_orders is all."
/* Which orders a caller may give, who has tokens or needs none. */
enum kiln_order_limit kiln_native_order_limit(const struct kiln_native_call *call,
                                              const struct kiln_caller *caller);
/* Fails where no agents report here. */
KILN_CHECK int kiln_native_need_fleet(struct kiln_native_call *call);
/* Who asks (pipeline/gate.h). */
void kiln_native_caller(const struct kiln_native_call *call, struct kiln_caller *ret_caller);
/* "drops": whatever was counted that was dropped, refused or cut; with `none`, an empty list. */
void kiln_native_put_drops(struct kiln_native_call *call, bool none);

/* ---- native_files.c ---- */

/* A file of any format Kiln writes. */
KILN_CHECK int kiln_native_file(struct kiln_native_call *call, struct kiln_ask *ask,
                                enum kiln_format format);
/* What a file is made of. */
struct kiln_native_export {
    enum kiln_format format;
    const struct kiln_merged *merged; /* of a picture the tree, else the profile */
    const char *title;                /* NULL: none */
    struct kiln_view_opts view;       /* of formats of one type, where the profile has several */
};
KILN_CHECK int kiln_native_encode(struct kiln_native_call *call, struct kiln_ask *ask,
                                  const struct kiln_native_export *what);
/* The service that a question is about, ending in NUL, or "". */
void kiln_native_title(const struct kiln_ask *ask, struct kiln_buf *out);
void kiln_native_is_file(struct kiln_native_call *call, enum kiln_format format);

#endif /* KILN_API_NATIVE_INT_H */
