/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ottl_int - what the files of OTTL share:
 *
 *   lex.c     text into words                 path.c       what a path names, and reading it
 *   parse.c   words into a tree               path_set.c   writing it
 *   eval.c    conditions and values           converter.c  functions that make a value
 *   math.c    + - * /                         editor.c     functions that change something
 *   text.c    values as texts                 value.c      values of the batch, and their parts
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_PIPELINE_OTTL_OTTL_INT_H
#define KILN_PIPELINE_OTTL_OTTL_INT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/regex.h"
#include "core/draft.h"
#include "pipeline/ottl/ottl.h"

enum {
    KILN_OTTL_TEXT_MAX = 16 << 10,
    KILN_OTTL_NODES_MAX = 1000,
    KILN_OTTL_DEPTH_MAX = 32,
    KILN_OTTL_ARGS_MAX = 128,     /* of a function, or in a list */
    KILN_OTTL_KEYS_MAX = 4,       /* of a path: ["a"]["b"] */
    KILN_OTTL_MADE_MAX = 64 << 10 /* bytes of a text that is made */
};

/* ---- words ---- */

enum kiln_ottl_word_kind {
    KILN_OTTL_END,
    KILN_OTTL_NAME,   /* set, resource */
    KILN_OTTL_STRING, /* in quotes */
    KILN_OTTL_NUMBER,
    KILN_OTTL_SIGN, /* one of == != <= >= < > ( ) [ ] , . + - * / */
    KILN_OTTL_BAD
};

struct kiln_ottl_word {
    enum kiln_ottl_word_kind kind;
    struct kiln_str text; /* as written */
    size_t at;            /* offset */
};

/* The word at `at`, without white space before it. */
struct kiln_ottl_word kiln_ottl_lex(struct kiln_str text, size_t at);

/* ---- values ---- */

enum kiln_ottl_kind {
    KILN_OTTL_NIL,
    KILN_OTTL_BOOL,
    KILN_OTTL_INT,
    KILN_OTTL_DOUBLE,
    KILN_OTTL_TEXT,
    KILN_OTTL_BYTES,
    KILN_OTTL_LIST,    /* `nested` */
    KILN_OTTL_MAP,     /* `nested` */
    KILN_OTTL_SET,     /* `set`: all attributes of something */
    KILN_OTTL_NUMBERS, /* `numbers`: values or times of a sample */
    KILN_OTTL_MOMENT,  /* `i`: Unix nanoseconds */
    KILN_OTTL_TYPE,    /* `type`: of samples, of a period */
    KILN_OTTL_SAMPLES, /* `i`: so many of them, to be counted */
    KILN_OTTL_KINDS
};

struct kiln_ottl_value {
    enum kiln_ottl_kind kind;
    union {
        bool flag;
        int64_t i;
        double d;
        struct kiln_str text;
        struct kiln_value nested;
        uint32_t set;
        struct kiln_value_type type;
        struct {
            const int64_t *at;
            uint32_t n;
        } numbers;
    };
};

/* ---- the tree ---- */

enum kiln_ottl_field {
    KILN_OTTL_ATTRIBUTES,
    KILN_OTTL_CACHE, /* as attributes: of the item, and gone with it */
    KILN_OTTL_INDICES,
    KILN_OTTL_DROPPED,
    KILN_OTTL_SCHEMA_URL,
    KILN_OTTL_SCOPE_NAME,
    KILN_OTTL_SCOPE_VERSION,
    KILN_OTTL_SAMPLE_VALUE_TYPE,
    KILN_OTTL_SAMPLE_TYPE,
    KILN_OTTL_SAMPLE_UNIT,
    KILN_OTTL_PERIOD_VALUE_TYPE,
    KILN_OTTL_PERIOD_TYPE,
    KILN_OTTL_PERIOD_UNIT,
    KILN_OTTL_PERIOD,
    KILN_OTTL_ALL_SAMPLES,
    KILN_OTTL_TIME,
    KILN_OTTL_TIME_MOMENT,
    KILN_OTTL_DURATION,
    KILN_OTTL_ID_BYTES,
    KILN_OTTL_ID_TEXT,
    KILN_OTTL_PAYLOAD_FORMAT,
    KILN_OTTL_PAYLOAD,
    KILN_OTTL_VALUES,
    KILN_OTTL_TIMES,
    KILN_OTTL_MOMENTS,
    KILN_OTTL_LINK
};

/* A key in brackets: a text, or a number from 0. */
struct kiln_ottl_key {
    struct kiln_str text; /* ptr NULL: a number */
    uint64_t index;
};

struct kiln_ottl_path {
    enum kiln_ottl_context context;
    enum kiln_ottl_field field;
    struct kiln_ottl_key keys[KILN_OTTL_KEYS_MAX];
    uint32_t n_keys;
};

enum kiln_ottl_node_kind {
    KILN_OTTL_OR, /* of args[0] and args[1] */
    KILN_OTTL_AND,
    KILN_OTTL_NOT,
    KILN_OTTL_COMPARE, /* `op` */
    KILN_OTTL_LITERAL,
    KILN_OTTL_PATH,
    KILN_OTTL_CALL,
    KILN_OTTL_MATH, /* `sign`, of args[0] and args[1] */
    KILN_OTTL_ITEMS /* a list as written: args */
};

enum kiln_ottl_op {
    KILN_OTTL_EQ,
    KILN_OTTL_NE,
    KILN_OTTL_LT,
    KILN_OTTL_LE,
    KILN_OTTL_GT,
    KILN_OTTL_GE
};

struct kiln_ottl_run;
struct kiln_ottl_node;

/*
 * A function.  `args` says what each argument is, a letter each: v any value, w the same or a list,
 * p a path that can be written, m one to attributes or a map, s a text literal, u a strategy, r a
 * pattern (a literal, compiled), n a number literal, l a list.  Behind a ? they may be left out.
 */
struct kiln_ottl_function {
    const char *name;
    const char *args;
    int (*convert)(struct kiln_ottl_run *run, const struct kiln_ottl_node *call,
                   struct kiln_ottl_value *ret);
    int (*edit)(struct kiln_ottl_run *run, const struct kiln_ottl_node *call);
};

struct kiln_ottl_node {
    enum kiln_ottl_node_kind kind;
    enum kiln_ottl_op op;
    char sign;                                 /* MATH: one of + - * / */
    struct kiln_ottl_value value;              /* LITERAL */
    struct kiln_ottl_path path;                /* PATH */
    const struct kiln_ottl_function *function; /* CALL */
    struct kiln_regex *pattern;                /* LITERAL that is one; owned */
    struct kiln_ottl_node **args;
    uint32_t n_args;
    struct kiln_ottl_node *made_before; /* all nodes of a tree, to free their patterns */
};

struct kiln_ottl {
    struct kiln_budget budget;
    struct kiln_arena arena; /* nodes and texts */
    enum kiln_ottl_context context;
    enum kiln_ottl_context cache;     /* whose cache it names; CONTEXTS: nobody's */
    struct kiln_ottl_node *condition; /* NULL: always */
    struct kiln_ottl_node *edit;      /* of a statement */
    struct kiln_ottl_node *last;      /* that was made */
    uint32_t n_nodes;
    struct kiln_draft draft;
};

/* ---- reading ---- */

/*
 * What the names and keys of a path mean.  `n` names; `context` is that of names without one.
 * False: nothing that is known.
 */
bool kiln_ottl_path_find(const struct kiln_str *names, uint32_t n, enum kiln_ottl_context context,
                         struct kiln_ottl_path *path);
/* Why it may not be written (NULL: it may), and whether it can be attributes, or a map in them. */
const char *kiln_ottl_path_unwritten(const struct kiln_ottl_path *path);
bool kiln_ottl_path_is_map(const struct kiln_ottl_path *path);

const struct kiln_ottl_function *kiln_ottl_converter(struct kiln_str name);
const struct kiln_ottl_function *kiln_ottl_editor(struct kiln_str name);

/* ---- running ---- */

struct kiln_ottl_run {
    struct kiln_ottl *ottl;
    const struct kiln_ottl_item *item;
    struct kiln_budget budget;
    struct kiln_arena made; /* texts */
    struct kiln_err *err;
    int code; /* of the last failure */
};

/* All return 0 or a code with a sentence in run->err. */
KILN_CHECK int kiln_ottl_eval(struct kiln_ottl_run *run, const struct kiln_ottl_node *node,
                              struct kiln_ottl_value *ret);
/* The same where a text is needed: anything else is an error. */
KILN_CHECK int kiln_ottl_eval_text(struct kiln_ottl_run *run, const struct kiln_ottl_node *node,
                                   struct kiln_str *ret);
/* Copies a text that a function made to where it lives as long as the run. */
KILN_CHECK int kiln_ottl_make(struct kiln_ottl_run *run, struct kiln_str text,
                              struct kiln_ottl_value *ret);
int kiln_ottl_fail(struct kiln_ottl_run *run, int code, const char *fmt, ...) KILN_PRINTF(3, 4);

KILN_CHECK int kiln_ottl_path_get(struct kiln_ottl_run *run, const struct kiln_ottl_path *path,
                                  struct kiln_ottl_value *ret);
KILN_CHECK int kiln_ottl_path_set(struct kiln_ottl_run *run, const struct kiln_ottl_path *path,
                                  const struct kiln_ottl_value *value);
/* The attributes (or cache) of what a path is about, and how to give it others. */
uint32_t kiln_ottl_set_of(const struct kiln_ottl_run *run, const struct kiln_ottl_path *path);
void kiln_ottl_give_set(struct kiln_ottl_run *run, const struct kiln_ottl_path *path, uint32_t set);

/* + - * / of two numbers. */
KILN_CHECK int kiln_ottl_calculate(struct kiln_ottl_run *run, const struct kiln_ottl_node *node,
                                   struct kiln_ottl_value *ret);

/* ---- values of the batch ---- */

struct kiln_ottl_value kiln_ottl_value_of(const struct kiln_batch *batch, struct kiln_value value);
/* These return 0 or a code, as above; all but the first two need the item's builder. */
KILN_CHECK int kiln_ottl_weigh(struct kiln_ottl_run *run, struct kiln_value value);
KILN_CHECK int kiln_ottl_integers(struct kiln_ottl_run *run, const struct kiln_ottl_value *value,
                                  int64_t **ret_at, uint32_t *ret_n);
KILN_CHECK int kiln_ottl_value_in(struct kiln_ottl_run *run, const struct kiln_ottl_value *value,
                                  struct kiln_value *ret);
KILN_CHECK int kiln_ottl_list(struct kiln_ottl_run *run, const struct kiln_ottl_node *list,
                              struct kiln_ottl_value *ret);
/* Puts `to` where the keys lead in a value; what is not there is made on the way. */
KILN_CHECK int kiln_ottl_put_part(struct kiln_ottl_run *run, struct kiln_value *of,
                                  const struct kiln_ottl_key *keys, uint32_t n_keys,
                                  struct kiln_value to);
/* The entries of a map as attributes; failures stick in the builder. */
uint32_t kiln_ottl_set_of_map(struct kiln_ottl_run *run, struct kiln_value map);

/* The text that says what a value is; of nil there is none. */
void kiln_ottl_put_text(struct kiln_buf *out, const struct kiln_batch *batch,
                        const struct kiln_ottl_value *value);

#endif /* KILN_PIPELINE_OTTL_OTTL_INT_H */
