/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protobuf wire reader: walks any bytes as a message, descends into every length-delimited
 * field, and writes what it read again.  Whatever was readable must read back the same.
 */
#include "codec/pb.h"
#include "fuzz.h"

#define DEPTH_MAX 16
#define BYTES_MAX (64u << 20)

static uint64_t walk(struct kiln_str bytes, int depth)
{
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;
    uint64_t sum = kiln_pb_count_varints(bytes);

    while (kiln_pb_next(&r, &f) > 0) {
        sum += f.tag;
        if ((f.tag & 7) == 2 && depth < DEPTH_MAX)
            sum += walk(f.bytes, depth + 1);
    }
    return sum;
}

/* One field, written, must be read as what it was. */
static void check_round_trip(const struct kiln_pb_field *f)
{
    struct kiln_pb_out w;
    struct kiln_buf out;
    struct kiln_pb r;
    struct kiln_pb_field back;

    kiln_pb_out_init(&w, 16, BYTES_MAX);
    kiln_buf_init(&out, BYTES_MAX);
    if ((f->tag & 7) == 2)
        kiln_pb_put_element(&w, f->tag >> 3, f->bytes);
    else if ((f->tag & 7) == 1)
        kiln_pb_put_fixed64(&w, f->tag >> 3, f->number | 1);
    else
        kiln_pb_put_number(&w, f->tag >> 3, f->number | 1);
    if (kiln_pb_out_flush(&w, &out) == 0) {
        r = kiln_pb_of(kiln_buf_str(&out));
        FUZZ_CHECK(kiln_pb_next(&r, &back) == 1 && r.at == r.end && back.tag >> 3 == f->tag >> 3);
        FUZZ_CHECK((f->tag & 7) == 2 ? kiln_str_eq(back.bytes, f->bytes)
                                     : back.number == (f->number | 1));
    }
    kiln_buf_done(&out);
    kiln_pb_out_done(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kiln_str bytes = {(const char *)data, size};
    struct kiln_pb r = kiln_pb_of(bytes);
    struct kiln_pb_field f;
    volatile uint64_t sum = walk(bytes, 0);

    (void)sum;
    for (int i = 0; i < 64 && kiln_pb_next(&r, &f) > 0; i++)
        check_round_trip(&f);
    return 0;
}
