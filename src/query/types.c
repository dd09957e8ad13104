/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which type a question is about.  It is said by the query, before the braces of a selector, or by
 * a matcher {__profile_type__="..."}.  A five-part id is taken as it is; of less ("cpu",
 * "cpu:nanoseconds", the first three parts) the types that the services in question have are asked
 * of the engine, and one of them must fit.
 */
#include <errno.h>

#include "base/buf.h"
#include "query/query_int.h"

int kiln_query_type(struct kiln_str id, struct kiln_type *ret_type)
{
    struct kiln_type type = {.scale = 1};
    struct kiln_str *parts[] = {&type.name, &type.type, &type.unit, &type.period_type,
                                &type.period_unit};
    struct kiln_str rest = id;

    for (size_t i = 0; i < KILN_ARRAY_LEN(parts); i++) {
        if (!rest.ptr)
            return KILN_E_MALFORMED;
        *parts[i] = kiln_str_cut(&rest, ':');
    }
    if (rest.ptr && !kiln_str_eq(rest, KILN_STR("delta")))
        return KILN_E_MALFORMED;
    if (!type.type.len && !type.name.len)
        return KILN_E_MALFORMED;
    type.level = kiln_type_is_level(&type);
    *ret_type = type;
    return 0;
}

/* ---- looking for types ---- */

static bool is_service(struct kiln_str name)
{
    return kiln_str_eq(name, KILN_STR("service_name")) ||
           kiln_str_eq(name, KILN_STR("service.name")) ||
           kiln_str_eq(name, KILN_STR("__service_name__"));
}

int kiln_ask_list(struct kiln_ask *ask, const struct kiln_listing *listing,
                  struct kiln_labels **ret_labels, struct kiln_err *err)
{
    struct kiln_question question = {
        .tenants = ask->question.tenants,
        .n_tenants = ask->question.n_tenants,
        .windows = ask->question.windows,
        .n_windows = listing->ever ? 0 : ask->question.n_windows,
        .type = listing->type,
        .leash = &ask->leash,
    };
    struct kiln_engine *engine = ask->querier->engine;
    struct kiln_matcher *matchers;
    uint32_t n = 0;

    matchers = kiln_arena_alloc(&ask->arena, (ask->question.n_matchers + 1) * sizeof(*matchers));
    if (!matchers)
        return -ENOMEM;
    for (uint32_t i = 0; i < ask->question.n_matchers; i++) {
        if (is_service(ask->matchers[i].name))
            matchers[n++] = ask->matchers[i];
    }
    question.matchers = matchers;
    question.n_matchers = n;
    return engine->ops->labels(engine, &question, &listing->name, 1, ret_labels, err);
}

/* The types of the services and tenants in question, at its times or at all. */
static int list_types(struct kiln_ask *ask, bool ever, struct kiln_labels **ret_labels,
                      struct kiln_err *err)
{
    const struct kiln_listing listing = {.name = KILN_TYPE_LABEL, .ever = ever};
    struct kiln_labels *labels = NULL;
    int r = kiln_ask_list(ask, &listing, &labels, err);

    if (r == 0)
        r = kiln_labels_add_made(labels, &listing.name, 1, false);
    if (r < 0)
        kiln_labels_free(labels);
    else
        *ret_labels = labels;
    return r;
}

/* Whether a stored type is what is wanted; empty: any. */
static bool fits(struct kiln_str id, struct kiln_str wanted)
{
    struct kiln_type type;

    return kiln_query_type(id, &type) == 0 && (!wanted.len || kiln_type_matches(&type, wanted));
}

static void list(struct kiln_buf *out, const struct kiln_labels *labels, struct kiln_str wanted)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < labels->n_rows; i++) {
        if (!fits(labels->rows[i].values[0], wanted))
            continue;
        kiln_buf_puts(out, n++ ? ", " : "");
        kiln_buf_add_str(out, labels->rows[i].values[0]);
    }
}

/* How many types fit, and the last of them. */
static uint32_t count_fitting(const struct kiln_labels *labels, struct kiln_str wanted,
                              struct kiln_str *ret_id)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < labels->n_rows; i++) {
        if (!fits(labels->rows[i].values[0], wanted))
            continue;
        *ret_id = labels->rows[i].values[0];
        n++;
    }
    return n;
}

static int not_one(const struct kiln_labels *labels, struct kiln_str wanted, uint32_t n,
                   struct kiln_err *err)
{
    const char *lacking =
        labels->n_damaged ? " (damaged files may lack: `kiln store salvage`)" : "";
    struct kiln_buf buf;
    int code;

    kiln_buf_init(&buf, 4096);
    list(&buf, labels, n ? wanted : KILN_STR_NONE);
    code = n ? KILN_E_AMBIGUOUS : buf.len ? KILN_E_NOMATCH : -ENOENT;
    if (n && wanted.len)
        kiln_err_set(err, code, NULL, "%.*s fits %u types: %.*s", KILN_STR_ARG(wanted), n,
                     KILN_STR_ARG(kiln_buf_str(&buf)));
    else if (n)
        kiln_err_set(err, code, NULL, "a type must be said, for there are %u: %.*s", n,
                     KILN_STR_ARG(kiln_buf_str(&buf)));
    else if (buf.len)
        kiln_err_set(err, code, NULL, "no type is %.*s%s; there are %.*s", KILN_STR_ARG(wanted),
                     lacking, KILN_STR_ARG(kiln_buf_str(&buf)));
    else
        kiln_err_set(err, code, NULL, "no profiles are chosen in this time range%s", lacking);
    kiln_buf_done(&buf);
    return code;
}

/* The one type that `wanted` names; an empty one: the only one there is.  A type that a service has
 * at other times is one too: that it has nothing now is an answer. */
static int find_type(struct kiln_ask *ask, struct kiln_str wanted, struct kiln_str *ret_id,
                     struct kiln_err *err)
{
    struct kiln_labels *labels = NULL, *ever = NULL;
    struct kiln_str id = KILN_STR_NONE;
    uint32_t n;
    int r = list_types(ask, false, &labels, err);

    if (r < 0)
        return r;
    n = count_fitting(labels, wanted, &id);
    if (n == 0 && wanted.len && ask->question.n_windows) {
        r = list_types(ask, true, &ever, err);
        n = r == 0 && count_fitting(ever, wanted, &id) == 1;
    }
    if (r == 0 && n == 1) {
        *ret_id = kiln_arena_copy(&ask->arena, id);
        r = ret_id->ptr ? 0 : -ENOMEM;
    } else if (r == 0) {
        r = not_one(labels, wanted, n, err);
    }
    kiln_labels_free(ever);
    kiln_labels_free(labels);
    return r;
}

/* ---- deciding ---- */

static uint32_t count_parts(struct kiln_str text)
{
    uint32_t n = text.len > 0;

    for (size_t i = 0; i < text.len; i++)
        n += text.ptr[i] == ':';
    return n;
}

static struct kiln_str without_delta(struct kiln_str id)
{
    if (count_parts(id) == 6 && kiln_str_ends(id, KILN_STR(":delta")))
        id.len -= strlen(":delta");
    return id;
}

/* Makes `wanted` the type of the question. */
static int take_type(struct kiln_ask *ask, struct kiln_str wanted, struct kiln_err *err)
{
    struct kiln_str id = without_delta(wanted);
    uint32_t parts = count_parts(id);
    int r = 0;

    if (parts > 5 || parts == 4)
        r = KILN_E_MALFORMED;
    else if (parts < 4)
        r = find_type(ask, wanted, &id, err);
    if (r == 0)
        r = kiln_query_type(id, &ask->type);
    if (r == 0)
        ask->question.type = id;
    else if (r == KILN_E_MALFORMED)
        return kiln_err_set(err, r, NULL,
                            "%.*s is no profile type: one is like "
                            "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
                            (int)(wanted.len < 100 ? wanted.len : 100), wanted.ptr);
    return r;
}

static bool says_type(const struct kiln_matcher *m)
{
    return m->op == KILN_MATCH_EQ && m->value.len && kiln_str_eq(m->name, KILN_TYPE_LABEL);
}

/* The first matcher that says a type, or nothing. */
static struct kiln_str said_by_matcher(const struct kiln_ask *ask)
{
    for (uint32_t i = 0; i < ask->question.n_matchers; i++) {
        if (says_type(&ask->matchers[i]))
            return ask->matchers[i].value;
    }
    return KILN_STR_NONE;
}

/* Without the matchers that only say again what the type is, or all that say one. */
static void drop_matchers(struct kiln_ask *ask, bool all)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < ask->question.n_matchers; i++) {
        const struct kiln_matcher *m = &ask->matchers[i];

        if (!says_type(m) || (!all && !kiln_type_matches(&ask->type, without_delta(m->value))))
            ask->matchers[kept++] = *m;
    }
    ask->question.n_matchers = kept;
}

int kiln_ask_set_type(struct kiln_ask *ask, const struct kiln_query *query, struct kiln_err *err)
{
    struct kiln_str before_braces = ask->selector.type;
    struct kiln_str wanted = query->type.len ? query->type : before_braces;
    int r = 0;

    if (!wanted.len)
        wanted = said_by_matcher(ask);
    if (wanted.len)
        r = take_type(ask, wanted, err);
    else if (query->needs_type)
        r = find_type(ask, wanted, &ask->question.type, err);
    if (r == 0 && !wanted.len && ask->question.type.len)
        r = kiln_query_type(ask->question.type, &ask->type);
    if (r < 0)
        return r;
    if (query->type.len && before_braces.len && !query->type_wins &&
        !kiln_type_matches(&ask->type, without_delta(before_braces)))
        return kiln_err_set(err, KILN_E_MALFORMED, NULL, "two types are said: %.*s and %.*s",
                            KILN_STR_ARG(query->type), KILN_STR_ARG(before_braces));
    drop_matchers(ask, query->type_wins);
    return kiln_ask_set_parts(ask, err);
}
