/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/otlp.h"
#include "codec/otlp_json.h"
#include "pipeline/exporters/encode.h"

#define BYTES_MAX ((size_t)1 << 30)

static int read_json(struct kiln_str text, struct kiln_batch **ret_batch, struct kiln_err *err)
{
    struct kiln_builder *b;
    int r = kiln_builder_new(NULL, &b);

    if (r < 0)
        return r;
    r = kiln_otlp_json_decode(text, b, err);
    if (r == 0)
        return kiln_builder_finish(b, ret_batch, err);
    kiln_builder_free(b);
    return r;
}

static int plain_of(const struct kiln_spooled *head, struct kiln_str body, struct kiln_buf *out,
                    struct kiln_err *err)
{
    if (head->compression != KILN_PLAIN)
        return kiln_decompress(head->compression, body, out, err);
    kiln_buf_add_str(out, body);
    return out->error;
}

int kiln_export_from_json(const struct kiln_spooled *head, struct kiln_str body,
                          struct kiln_buf *out, struct kiln_err *err)
{
    struct kiln_batch *batch = NULL;
    struct kiln_buf text, plain;
    int r;

    kiln_buf_init(&text, BYTES_MAX);
    kiln_buf_init(&plain, BYTES_MAX);
    r = plain_of(head, body, &text, err);
    if (r == 0)
        r = read_json(kiln_buf_str(&text), &batch, err);
    kiln_buf_done(&text);
    if (r == 0)
        r = kiln_otlp_encode(batch, NULL, &plain, err);
    kiln_batch_unref(batch);
    if (r == 0 && head->compression == KILN_PLAIN)
        kiln_buf_add_str(out, kiln_buf_str(&plain));
    else if (r == 0)
        r = kiln_compress(head->compression, 0, kiln_buf_str(&plain), out);
    kiln_buf_done(&plain);
    r = r < 0 ? r : out->error;
    return r < 0 ? kiln_err_set(err, r, NULL, "%s", kiln_err_text(r)) : 0;
}
