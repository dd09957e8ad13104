/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>

#include "pipeline/outcome.h"

const char *const kiln_outcome_names[KILN_N_OUTCOMES] = {
#define X(suffix, name) [KILN_OUTCOME_##suffix] = name,
    KILN_OUTCOME_MAP(X)
#undef X
};

/*
 * What OTLP says of each.  UNAVAILABLE with RetryInfo, 429 and 503 are tried again by senders;
 * INVALID_ARGUMENT, 400 and 413 are not, nor is RESOURCE_EXHAUSTED without RetryInfo.
 */
static const struct row {
    int code;
    enum kiln_outcome_kind kind;
    enum kiln_rpc_code rpc;
    int http;
    bool again;
} rows[] = {
    {0, KILN_OUTCOME_ACCEPTED, KILN_RPC_OK, 200, false},
    {-EAGAIN, KILN_OUTCOME_BUSY, KILN_RPC_UNAVAILABLE, 429, true},
    {-ENOMEM, KILN_OUTCOME_BUSY, KILN_RPC_UNAVAILABLE, 503, true},
    {-ENOSPC, KILN_OUTCOME_STORAGE, KILN_RPC_UNAVAILABLE, 503, true},
    {-EIO, KILN_OUTCOME_STORAGE, KILN_RPC_UNAVAILABLE, 503, true},
    {-ESHUTDOWN, KILN_OUTCOME_STOPPING, KILN_RPC_UNAVAILABLE, 503, true},
    {KILN_E_LIMIT, KILN_OUTCOME_TOO_LARGE, KILN_RPC_RESOURCE_EXHAUSTED, 413, false},
};
static const struct row any_other = {0, KILN_OUTCOME_REJECTED, KILN_RPC_INVALID_ARGUMENT, 400,
                                     false};

static const struct row *row_of(int code)
{
    for (size_t i = 0; i < KILN_ARRAY_LEN(rows); i++) {
        if (rows[i].code == code)
            return &rows[i];
    }
    return &any_other;
}

enum kiln_outcome_kind kiln_outcome_kind(int code)
{
    return row_of(code)->kind;
}

bool kiln_outcome_is_worse(const struct kiln_outcome *a, const struct kiln_outcome *b)
{
    if (!a->code || !b->code)
        return a->code ? true : !b->code && a->rejected > b->rejected;
    return row_of(a->code)->again && !row_of(b->code)->again;
}

struct kiln_rpc_status kiln_outcome_status(const struct kiln_outcome *outcome, char *text,
                                           size_t size)
{
    const struct row *row = row_of(outcome->code);
    const struct kiln_err *err = &outcome->err;
    struct kiln_rpc_status status = {
        .code = row->rpc,
        .http_status = row->http,
        .message = text,
        .field = row->kind == KILN_OUTCOME_REJECTED ? err->where : NULL,
    };

    if (row->again)
        status.retry_after_s = outcome->retry_after_s ? outcome->retry_after_s : 1;
    snprintf(text, size, "%s%s%s", err->where, err->where[0] ? ": " : "",
             err->text[0] ? err->text : kiln_err_text(outcome->code));
    return status;
}
