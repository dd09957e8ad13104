/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gRPC's frames and statuses.  Frames that are read are written again, and must give the bytes they
 * were read from; a text that is percent-encoded must come back; the client takes the whole input
 * for the body and the trailers of an answer.
 */
#include "fuzz.h"
#include "net/client_int.h"
#include "net/grpc.h"

#define PAYLOAD_MAX (1u << 20)

static void frames(struct kiln_str bytes)
{
    struct kiln_str rest = bytes;
    struct kiln_grpc_frame frame;
    struct kiln_buf again;

    kiln_buf_init(&again, SIZE_MAX / 2);
    while (kiln_grpc_frame_next(&rest, PAYLOAD_MAX, &frame) > 0)
        kiln_grpc_frame_put(&again, frame.flags, frame.payload);
    FUZZ_CHECK(
        kiln_str_eq(kiln_buf_str(&again), (struct kiln_str){bytes.ptr, bytes.len - rest.len}));
    kiln_buf_done(&again);
}

static void texts(struct kiln_str bytes)
{
    struct kiln_buf once, back;

    kiln_buf_init(&once, SIZE_MAX / 2);
    kiln_buf_init(&back, SIZE_MAX / 2);
    kiln_grpc_text_put(&once, bytes);
    kiln_grpc_text_get(&back, kiln_buf_str(&once));
    FUZZ_CHECK(kiln_str_eq(kiln_buf_str(&back), bytes));
    kiln_buf_done(&once);
    kiln_buf_done(&back);
}

static void statuses(struct kiln_str bytes)
{
    struct kiln_status_info info;

    if (kiln_status_decode(bytes, &info) == 0)
        FUZZ_CHECK(info.message.len <= bytes.len && (info.has_retry || !info.retry_after_ms));
}

/* Lines up to an empty one are headers and trailers, the rest is the body. */
static void answers(struct kiln_str bytes)
{
    struct kiln_answer answer;
    struct kiln_collected c;

    kiln_answer_init(&answer);
    kiln_collected_init(&c, &answer, "server", PAYLOAD_MAX);
    while (bytes.len) {
        struct kiln_str line = kiln_str_cut(&bytes, '\n');

        if (line.len == 0 || !kiln_collected_line(&c, line))
            break;
    }
    if (kiln_collected_bytes(&c, bytes)) {
        answer.status = bytes.len % 2 ? 200 : 503;
        FUZZ_CHECK(kiln_collected_grpc(&c, NULL) < 0 || answer.rpc_code >= 0);
    }
    kiln_collected_done(&c);
    kiln_answer_done(&answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_str bytes = {(const char *)data, size};

    frames(bytes);
    texts(bytes);
    statuses(bytes);
    answers(bytes);
    return 0;
}
