/* SPDX-License-Identifier: Apache-2.0 */
#include "base/params.h"
#include "base/bytetext.h"
#include "base/err.h"

#define PARAM_MAX (1u << 20)

int kiln_percent_decode(struct kiln_str text, bool form, struct kiln_buf *out)
{
    char *at = kiln_buf_reserve(out, text.len);

    for (size_t i = 0; at && i < text.len; i++) {
        char c = text.ptr[i];

        if (c == '%') {
            uint8_t byte;

            if (text.len - i < 3 ||
                kiln_hex_decode((struct kiln_str){text.ptr + i + 1, 2}, &byte, 1) < 0)
                return KILN_E_MALFORMED;
            c = (char)byte;
            i += 2;
        } else if (c == '+' && form) {
            c = ' ';
        }
        *at++ = c;
        out->len++;
    }
    return out->error;
}

void kiln_params_init(struct kiln_params *params, struct kiln_str query)
{
    *params = (struct kiln_params){.rest = query};
    kiln_buf_init(&params->buf, PARAM_MAX);
}

void kiln_params_done(struct kiln_params *params)
{
    kiln_buf_done(&params->buf);
}

int kiln_params_next(struct kiln_params *params)
{
    struct kiln_str pair, name;
    const char *text;
    size_t n_name;
    int r;

    do {
        if (params->rest.len == 0)
            return 0;
        pair = kiln_str_cut(&params->rest, '&');
    } while (pair.len == 0);
    kiln_buf_clear(&params->buf);
    name = kiln_str_cut(&pair, '=');
    r = kiln_percent_decode(name, true, &params->buf);
    n_name = params->buf.len;
    if (r == 0)
        r = kiln_percent_decode(pair, true, &params->buf);
    if (r < 0)
        return r;
    text = params->buf.ptr ? params->buf.ptr : "";
    params->name = (struct kiln_str){text, n_name};
    params->value = (struct kiln_str){text + n_name, params->buf.len - n_name};
    return 1;
}
