/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What servers answer to libkiln: HTTP/1.1 answers, which must come to the same whether their bytes
 * arrive at once or one by one; dates; and google.rpc.Status.
 */
#include "fuzz.h"
#include "inproc/out/answer.h"
#include "inproc/out/call.h"

struct outcome {
    int result, status;
    size_t body;
    bool keep_alive;
    uint32_t retry_after_ms;
};

static struct outcome run(struct kiln_str rest, size_t step)
{
    struct kiln_in_answer answer;
    struct outcome out = {.result = 1};

    kiln_in_answer_init(&answer);
    while (rest.len && out.result > 0) {
        size_t n = rest.len < step ? rest.len : step;

        out.result = kiln_in_answer_feed(&answer, (struct kiln_str){rest.ptr, n});
        rest.ptr += n;
        rest.len -= n;
    }
    /* Bytes behind the end are seen only where they come with it. */
    if (out.result == 0 && rest.len)
        answer.keep_alive = false;
    if (out.result > 0)
        out.result = kiln_in_answer_end(&answer);
    out.status = answer.status;
    out.body = answer.body.len;
    out.keep_alive = answer.keep_alive;
    FUZZ_CHECK(answer.body.len <= KILN_IN_ANSWER_BODY_MAX);
    FUZZ_CHECK(out.result != 0 || (answer.status >= 200 && answer.status <= 999));
    kiln_in_answer_done(&answer);
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_str bytes = {(const char *)data, size};
    struct outcome whole = run(bytes, SIZE_MAX), single = run(bytes, 1);
    char message[256] = "";

    FUZZ_CHECK(whole.result == single.result);
    if (whole.result == 0)
        FUZZ_CHECK(whole.status == single.status && whole.body == single.body &&
                   whole.keep_alive == single.keep_alive);
    (void)kiln_in_retry_after(bytes, 784111777);
    FUZZ_CHECK(kiln_in_status_read(bytes, message, sizeof(message)) >= -1);
    FUZZ_CHECK(memchr(message, '\0', sizeof(message)));
    return 0;
}
