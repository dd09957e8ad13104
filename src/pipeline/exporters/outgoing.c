/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/exporters/outgoing.h"

#include <errno.h>
#include <unistd.h>

static char *no_variable(const char *name)
{
    (void)name;
    return NULL;
}

/* Connections read them later, again and again: what is wrong from the start is told at once. */
static int check_files(const struct kiln_otlp_target_opts *opts, struct kiln_err *err)
{
    const char *const files[] = {opts->ca_file, opts->cert_file, opts->key_file};
    static const char *const keys[] = {"ca_file", "cert_file", "key_file"};

    for (size_t i = 0; i < KILN_ARRAY_LEN(files); i++)
        if (files[i] && access(files[i], R_OK) < 0)
            return kiln_err_set(err, -errno, keys[i], "\"%s\" cannot be read: %s", files[i],
                                kiln_err_text(-errno));
    return 0;
}

int kiln_outgoing_open(struct kiln_outgoing *out, const struct kiln_otlp_sender_opts *opts,
                       struct kiln_err *err)
{
    int r = kiln_otlp_target_find(&opts->target, no_variable, &out->target, err);

    out->credential = opts->credential;
    out->shape = (struct kiln_export_shape){.compression = out->target.compression,
                                            .level = opts->level,
                                            .json = out->target.protocol == KILN_OTLP_HTTP_JSON,
                                            .request_max = opts->request_max};
    out->sender.light = out->shape.compression == KILN_PLAIN && !out->shape.json &&
                        opts->request_max >= KILN_AT_ONCE_BYTES;
    return r < 0 ? r : check_files(&opts->target, err);
}

void kiln_outgoing_done(struct kiln_outgoing *out)
{
    kiln_otlp_target_done(&out->target);
}

/* ---- calls ---- */

int kiln_outgoing_call(const struct kiln_outgoing *out, const struct kiln_export_item *item,
                       struct kiln_outgoing_call *ret, struct kiln_err *err)
{
    int r =
        kiln_sign(&out->credential, out->target.headers, out->target.n_headers, &ret->headers, err);

    if (r < 0)
        return r;
    ret->call = kiln_otlp_request(&out->target, &item->head, kiln_export_item_body(item));
    ret->call.headers = ret->headers.headers;
    ret->call.n_headers = ret->headers.n;
    if (out->content_type)
        ret->call.content_type = out->content_type;
    return 0;
}

void kiln_outgoing_call_done(struct kiln_outgoing_call *call)
{
    kiln_signed_done(&call->headers);
}
