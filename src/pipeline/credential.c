/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/credential.h"

#include <ctype.h>
#include <strings.h>

#define TEXT_MAX (1u << 20)

static bool is_named(const struct kiln_header *header, const struct kiln_buf *name)
{
    return header->name.len == name->len &&
           strncasecmp(header->name.ptr, name->ptr, name->len) == 0;
}

int kiln_sign(const struct kiln_credential *credential, const struct kiln_header *headers,
              uint32_t n, struct kiln_signed *ret, struct kiln_err *err)
{
    int r = 0;

    ret->n = 0;
    kiln_buf_init(&ret->name, TEXT_MAX);
    kiln_buf_init(&ret->value, TEXT_MAX);
    if (credential->header)
        r = credential->header(credential->context, &ret->name, &ret->value, err);
    if (r < 0) {
        kiln_signed_done(ret);
        return r;
    }
    for (size_t i = 0; i < ret->name.len; i++) /* as HTTP/2 wants it */
        ret->name.ptr[i] = (char)tolower((unsigned char)ret->name.ptr[i]);
    for (uint32_t i = 0; i < n && i < KILN_SIGNED_MAX; i++)
        if (!is_named(&headers[i], &ret->name))
            ret->headers[ret->n++] = headers[i];
    if (ret->name.len)
        ret->headers[ret->n++] =
            (struct kiln_header){kiln_buf_str(&ret->name), kiln_buf_str(&ret->value)};
    return 0;
}

void kiln_signed_done(struct kiln_signed *done)
{
    kiln_buf_done(&done->name);
    kiln_buf_done(&done->value);
}
