/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/metadata.h"

#include <strings.h>

static bool is_named(const struct kiln_header *header, struct kiln_str name)
{
    return header->name.len == name.len && strncasecmp(header->name.ptr, name.ptr, name.len) == 0;
}

bool kiln_metadata_next(const struct kiln_remote *remote, struct kiln_str name, uint32_t *at,
                        struct kiln_str *ret_value)
{
    while (*at < remote->n_headers) {
        const struct kiln_header *header = &remote->headers[(*at)++];

        if (is_named(header, name)) {
            *ret_value = header->value;
            return true;
        }
    }
    return false;
}

/* Values have no NUL in them. */
void kiln_metadata_tell(const struct kiln_metadata_keys *keys, const struct kiln_remote *remote,
                        struct kiln_buf *out)
{
    struct kiln_str value;

    for (uint32_t i = 0; i < keys->n; i++) {
        uint32_t at = 0;

        while (kiln_metadata_next(remote, keys->names[i], &at, &value)) {
            kiln_buf_putc(out, '=');
            kiln_buf_add_str(out, value);
            kiln_buf_putc(out, '\0');
        }
        kiln_buf_putc(out, '\0');
    }
}

struct kiln_remote kiln_metadata_common(const struct kiln_metadata_keys *keys,
                                        const struct kiln_remote *remote,
                                        struct kiln_header *headers, uint32_t max)
{
    struct kiln_remote common = {.headers = headers};

    for (uint32_t i = 0; i < keys->n; i++)
        for (uint32_t at = 0; at < remote->n_headers && common.n_headers < max; at++)
            if (is_named(&remote->headers[at], keys->names[i]))
                headers[common.n_headers++] = remote->headers[at];
    return common;
}
