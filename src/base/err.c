/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/err.h"

const char *kiln_err_text(int code)
{
    switch (code) {
    case 0:
        return "no error";
#define X(number, name, text)                                                                      \
    case KILN_E_##name:                                                                            \
        return text;
        KILN_ERR_MAP(X)
#undef X
    default:
        return strerror(-code);
    }
}

int kiln_err_set(struct kiln_err *err, int code, const char *where, const char *fmt, ...)
{
    va_list args;

    if (!err || err->code)
        return code;
    err->code = code;
    snprintf(err->where, sizeof(err->where), "%s", where ? where : "");
    va_start(args, fmt);
    vsnprintf(err->text, sizeof(err->text), fmt, args);
    va_end(args);
    return code;
}

void kiln_err_within(struct kiln_err *err, const char *fmt, ...)
{
    char joined[sizeof(err->where) * 2];
    va_list args;
    int n;

    if (!err || !err->code)
        return;
    va_start(args, fmt);
    n = vsnprintf(joined, sizeof(err->where), fmt, args);
    va_end(args);
    if (n < 0)
        return;
    if (n > (int)sizeof(err->where) - 1)
        n = (int)sizeof(err->where) - 1;
    snprintf(joined + n, sizeof(joined) - (size_t)n, "%s%s", err->where[0] ? "." : "", err->where);
    snprintf(err->where, sizeof(err->where), "%.*s", (int)sizeof(err->where) - 1, joined);
}

int kiln_err_in_file(struct kiln_err *err, int code, const char *path)
{
    struct kiln_err inner;

    if (!err)
        return code;
    kiln_err_set(err, code, NULL, "%s", kiln_err_text(code));
    inner = *err;
    if (inner.where[0])
        snprintf(err->where, sizeof(err->where), "%.*s: %.60s", (int)sizeof(err->where) - 64, path,
                 inner.where);
    else
        snprintf(err->where, sizeof(err->where), "%s", path);
    return code;
}
