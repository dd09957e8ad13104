/* SPDX-License-Identifier: Apache-2.0 */
#include "context_maker.h"

#include <stdlib.h>

#include "codec/pb.h"
#include "test.h"

enum { AT = 0x5000 };

static void put_text(struct kiln_pb_out *w, struct kiln_str text)
{
    kiln_pb_put_element(w, 1, text);
}

static void put_list(struct kiln_pb_out *w, struct kiln_str text)
{
    struct kiln_str items[300];
    size_t n = 0, array = kiln_pb_mark(w);

    while (text.len) {
        assert_true(n < 300);
        items[n++] = kiln_str_cut(&text, ' ');
    }
    while (n--) {
        size_t item = kiln_pb_mark(w);

        put_text(w, items[n]);
        kiln_pb_put_message(w, 1, item);
    }
    kiln_pb_put_message(w, 5, array);
}

static void put_number(struct kiln_pb_out *w, const char *text, char kind)
{
    double real = strtod(text, NULL);
    uint64_t bits;

    memcpy(&bits, &real, sizeof(bits));
    if (kind == '~') {
        kiln_pb_raw_fixed64(w, bits);
        kiln_pb_raw_varint(w, KILN_PB_FIXED64(4));
    } else if (kind == '#') {
        kiln_pb_raw_varint(w, (uint64_t)strtoll(text, NULL, 10));
        kiln_pb_raw_varint(w, KILN_PB_VARINT(3));
    } else {
        kiln_pb_raw_varint(w, text[0] == 't');
        kiln_pb_raw_varint(w, KILN_PB_VARINT(2));
    }
}

static void put_value(struct kiln_pb_out *w, struct kiln_str text)
{
    char last = text.len ? text.ptr[text.len - 1] : 0, number[64] = "";

    if (last == ']')
        put_list(w, (struct kiln_str){text.ptr + 1, text.len - 2});
    else if (last == '#' || last == '?' || last == '~')
        put_number(w, memcpy(number, text.ptr, text.len - 1), last);
    else
        put_text(w, text);
}

/* Pairs, as field `field` of what is being written. */
static void put_pairs(struct kiln_pb_out *w, struct kiln_str text, uint32_t field)
{
    struct kiln_str pairs[300];
    size_t n = 0;

    while (text.len) {
        assert_true(n < 300);
        pairs[n++] = kiln_str_cut(&text, ',');
    }
    while (n--) {
        struct kiln_str value = pairs[n], key = kiln_str_cut(&value, '=');
        size_t pair = kiln_pb_mark(w), any = pair;

        put_value(w, value);
        kiln_pb_put_message(w, 2, any);
        kiln_pb_put_bytes(w, 1, key);
        kiln_pb_put_message(w, field, pair);
    }
}

void context_draw(const char *text, struct kiln_buf *out)
{
    struct kiln_str process = kiln_str_of(text), resource = kiln_str_cut(&process, ';');
    struct kiln_pb_out w;
    size_t mark;

    kiln_pb_out_init(&w, 256, 1 << 20);
    put_pairs(&w, process, 2);
    mark = kiln_pb_mark(&w);
    put_pairs(&w, resource, 1);
    kiln_pb_put_message(&w, 1, mark);
    CHECK_OK(kiln_pb_out_flush(&w, out));
    kiln_pb_out_done(&w);
}

void context_page(const char *text, uint64_t address, uint64_t published_ns, char page[4096])
{
    uint32_t version = 2, size;
    struct kiln_buf payload;

    kiln_buf_init(&payload, 4096 - 32);
    context_draw(text, &payload);
    size = (uint32_t)payload.len;
    address += 32;
    memset(page, 0, 4096);
    memcpy(page, "OTEL_CTX", 8);
    memcpy(page + 8, &version, 4);
    memcpy(page + 12, &size, 4);
    memcpy(page + 16, &published_ns, 8);
    memcpy(page + 24, &address, 8);
    memcpy(page + 32, payload.ptr, size);
    kiln_buf_done(&payload);
}

void fake_proc_publish(struct fake_proc *fake, uint32_t pid, const char *text,
                       uint64_t published_ns)
{
    static char mem[AT + 4096];
    uint64_t there[AT / 4096 + 1] = {[AT / 4096] = UINT64_C(1) << 63};

    context_page(text, AT, published_ns, mem + AT);
    fake_proc_write(fake, pid, "mem", mem, sizeof(mem));
    fake_proc_write(fake, pid, "pagemap", (const char *)there, sizeof(there));
    fake_proc_text(fake, pid, "maps",
                   "00001000-00002000 r--p 00000000 00:00 0\n"
                   "00005000-00006000 rw-p 00000000 00:01 77    /memfd:OTEL_CTX (deleted)\n");
}
