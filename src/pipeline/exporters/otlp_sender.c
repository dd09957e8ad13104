/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP over HTTP and gRPC. */
#include <errno.h>

#include "base/mem.h"
#include "pipeline/exporters/calls.h"

#define ANSWER_MAX ((size_t)4 << 20)

struct otlp_sender {
    struct kiln_calls calls; /* first */
    struct kiln_otlp_target target;
    struct kiln_export_shape shape;
};

static char *no_variable(const char *name)
{
    (void)name;
    return NULL;
}

static int pack(struct kiln_sender *sender, const struct kiln_delivery *delivery,
                struct kiln_export_item **ret_items, struct kiln_err *err)
{
    return kiln_export_pack(delivery, &((struct otlp_sender *)sender)->shape, ret_items, err);
}

static int call(struct kiln_calls *calls, struct kiln_client *client,
                const struct kiln_export_item *item, struct kiln_answer *answer,
                struct kiln_err *err)
{
    return kiln_otlp_call(&((struct otlp_sender *)calls)->target, client, &item->head,
                          kiln_export_item_body(item), answer, err);
}

static void destroy(struct kiln_sender *sender)
{
    struct otlp_sender *s = (struct otlp_sender *)sender;

    kiln_calls_done(&s->calls);
    kiln_otlp_target_done(&s->target);
    kiln_free(s);
}

static const struct kiln_sender_ops ops = {
    .pack = pack,
    .send = kiln_calls_send,
    .cancel = kiln_calls_cancel,
    .free = destroy,
};

int kiln_otlp_sender_new(const struct kiln_otlp_sender_opts *opts, struct kiln_sender **ret_sender,
                         struct kiln_err *err)
{
    struct otlp_sender *s = kiln_calloc(1, sizeof(*s));
    int r;

    if (!s)
        return kiln_err_set(err, -ENOMEM, NULL, "%s", kiln_err_text(-ENOMEM));
    r = kiln_otlp_target_find(&opts->target, no_variable, &s->target, err);
    if (r < 0) {
        kiln_otlp_target_done(&s->target);
        kiln_free(s);
        return r;
    }
    s->shape = (struct kiln_export_shape){.compression = s->target.compression,
                                          .level = opts->level,
                                          .json = s->target.protocol == KILN_OTLP_HTTP_JSON,
                                          .request_max = opts->request_max};
    s->calls.sender.ops = &ops;
    s->calls.client = kiln_otlp_client_opts(&s->target, ANSWER_MAX);
    s->calls.threads_max = opts->consumers;
    s->calls.call = call;
    s->calls.protocol = s->target.protocol;
    kiln_calls_init(&s->calls);
    *ret_sender = &s->calls.sender;
    return 0;
}
