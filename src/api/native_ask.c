/* SPDX-License-Identifier: Apache-2.0 */
/* From parameters to a question on a leash. */
#include "api/native_int.h"

#include <errno.h>

static void choose_stacks(struct kiln_native_call *call, struct kiln_stack_choice *ret)
{
    *ret = (struct kiln_stack_choice){
        .with = call->args.functions.items,
        .n_with = call->args.functions.n,
        .with_regex = call->with,
        .without_regex = call->without,
    };
}

static void choose_ids(const struct kiln_native_args *args, struct kiln_query *query)
{
    query->trace_ids = (const uint8_t(*)[16])args->trace_ids.bytes;
    query->n_trace_ids = args->trace_ids.n;
    query->span_ids = (const uint8_t(*)[8])args->span_ids.bytes;
    query->n_span_ids = args->span_ids.n;
    query->profile_ids = (const uint8_t(*)[16])args->profile_ids.bytes;
    query->n_profile_ids = args->profile_ids.n;
}

static int choose_times(struct kiln_native_call *call, const struct kiln_native_wish *wish,
                        struct kiln_query *query)
{
    const struct kiln_native_args *args = &call->args;
    const struct kiln_native_side *side = wish->side;

    if (wish->all_times && !(args->said & (KILN_NATIVE_BIT(FROM) | KILN_NATIVE_BIT(UNTIL))))
        return 0;
    query->start_ns = side && side->from_ns ? side->from_ns : args->from_ns;
    query->end_ns = side && side->until_ns ? side->until_ns : args->until_ns;
    if (query->start_ns >= query->end_ns)
        return kiln_native_refuse(call, side == &args->left ? "left_from" : "right_from",
                                  "must be before the end of its side");
    return 0;
}

/* Whose fault it is that a question could not be opened. */
static const char *fault_of(int code)
{
    return code == KILN_E_MALFORMED || code == KILN_E_PATTERN || code == KILN_E_NOMATCH ||
                   code == KILN_E_AMBIGUOUS || code == -ENOENT
               ? "query"
               : NULL;
}

int kiln_native_ask(struct kiln_native_call *call, const struct kiln_native_wish *wish,
                    struct kiln_ask **ret_ask)
{
    const struct kiln_native_args *args = &call->args;
    struct kiln_str selectors[3] = {args->query};
    struct kiln_query query = {
        .tenants = kiln_str_of(call->request->tenant),
        .selectors = selectors,
        .n_selectors = 1,
        .type = wish->type,
        .needs_type = !wish->any_type,
        .type_wins = wish->type_wins,
        .gone = kiln_request_gone(call->request),
        .timeout_ms = args->timeout_ms,
    };
    int r = choose_times(call, wish, &query);

    choose_ids(args, &query);
    if (!wish->no_stacks)
        choose_stacks(call, &query.stacks);
    if (r < 0)
        return r;
    if (wish->side && wish->side->query.len)
        selectors[query.n_selectors++] = wish->side->query;
    if (wish->side && wish->side->selector.len)
        selectors[query.n_selectors++] = wish->side->selector;
    r = kiln_ask_open(call->api->querier, &query, ret_ask, &call->err);
    if (r < 0)
        call->param = fault_of(r);
    return r;
}

void kiln_native_close(struct kiln_native_call *call, struct kiln_ask *ask)
{
    if (!ask)
        return;
    if (ask->question.leash == &ask->leash) {
        kiln_leash_give(&ask->leash, call->room);
        call->room = 0;
    }
    kiln_ask_close(ask);
}

void kiln_native_share(struct kiln_ask *first, struct kiln_ask *second)
{
    second->question.leash = first->question.leash;
}

int kiln_native_room(struct kiln_native_call *call, struct kiln_ask *ask, size_t bytes)
{
    if (kiln_leash_reserve(ask->question.leash, bytes, NULL) < 0)
        return kiln_err_set(&call->err, KILN_E_LIMIT, NULL,
                            "an answer of %zu KiB does not fit beside the question in the memory "
                            "it may use: ask for less",
                            bytes >> 10);
    call->room += bytes;
    return 0;
}
