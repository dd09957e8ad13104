/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The grammar of HTTP/1.1.  A request must come to the same whether its bytes arrive at once or one
 * by one, and what is accepted must keep the promises that handlers rely on.
 */
#include "base/hash.h"
#include "base/http1.h"
#include "fuzz.h"

struct outcome {
    int64_t head; /* its length; 0 unfinished */
    int status;
    int body; /* what the last step said */
    uint64_t hash;
    size_t used;
};

static void check_head(const struct kiln_http_head *head)
{
    FUZZ_CHECK(head->method.len > 0 && head->target.len > 0);
    FUZZ_CHECK(!(head->chunked && head->has_length));
    for (uint32_t i = 0; i < head->n_headers; i++) {
        struct kiln_header h = head->headers[i];

        FUZZ_CHECK(h.name.len > 0 && !memchr(h.name.ptr, ':', h.name.len));
        for (size_t k = 0; k < h.name.len; k++)
            FUZZ_CHECK(h.name.ptr[k] > ' ' && !(h.name.ptr[k] >= 'A' && h.name.ptr[k] <= 'Z'));
        FUZZ_CHECK(!h.value.len || (!memchr(h.value.ptr, '\r', h.value.len) &&
                                    !memchr(h.value.ptr, '\n', h.value.len)));
    }
}

/* Reads a body in pieces of at most `step` bytes. */
static void run_body(const struct kiln_http_head *head, struct kiln_str rest, size_t step,
                     struct outcome *out)
{
    struct kiln_http1_body body;
    size_t all = rest.len;

    kiln_http1_body_init(&body, head);
    out->body = body.state != KILN_BODY_DONE;
    while (rest.len && out->body > 0) {
        struct kiln_str in = {rest.ptr, rest.len < step ? rest.len : step}, piece;
        size_t n = in.len;

        out->body = kiln_http1_body_next(&body, &in, &piece);
        for (size_t i = 0; out->body >= 0 && i < piece.len; i++)
            out->hash = out->hash * 31 + (unsigned char)piece.ptr[i];
        rest.ptr += n - in.len;
        rest.len -= n - in.len;
        FUZZ_CHECK(n > in.len || out->body <= 0);
    }
    out->used = out->body < 0 ? 0 : all - rest.len;
}

static struct outcome run(const uint8_t *data, size_t size, size_t step)
{
    struct kiln_http1_scan scan = {0};
    struct outcome out = {0};
    struct kiln_http_head head;
    char *mine = kiln_malloc(size + 1);

    if (!mine)
        return out;
    memcpy(mine, data, size);
    for (size_t n = 0; n < size && out.head == 0;) {
        n = size - n < step ? size : n + step;
        out.head = kiln_http1_find_end(&scan, (struct kiln_str){mine, n});
    }
    if (out.head > 0)
        out.status = kiln_http1_parse_head(mine, (size_t)out.head, &head);
    if (out.head > 0 && out.status == 0) {
        check_head(&head);
        run_body(&head, (struct kiln_str){mine + out.head, size - (size_t)out.head}, step, &out);
    }
    kiln_free(mine);
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct outcome whole = run(data, size, SIZE_MAX);
    struct outcome bytes = run(data, size, 1);

    FUZZ_CHECK(whole.head == bytes.head && whole.status == bytes.status);
    FUZZ_CHECK(whole.body == bytes.body && whole.used == bytes.used);
    FUZZ_CHECK(whole.body < 0 || whole.hash == bytes.hash);
    return 0;
}
