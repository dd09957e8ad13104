/* SPDX-License-Identifier: Apache-2.0 */
#include "mutate.h"

#include <string.h>

#include "mutate_int.h"

/* ---- bytes ---- */

static void change_bytes(struct kiln_str in, uint64_t *random, struct kiln_buf *out)
{
    size_t at = (size_t)mutate_roll(random, in.len + 1);
    size_t n = (size_t)mutate_roll(random, 16);

    n = n < in.len - at ? n : in.len - at;
    kiln_buf_add(out, in.ptr, at);
    switch (mutate_roll(random, 5)) {
    case 0: /* a bit */
        if (at < in.len)
            kiln_buf_putc(out, (char)(in.ptr[at++] ^ 1 << mutate_roll(random, 8)));
        break;
    case 1: /* a number */
        if (at < in.len)
            kiln_buf_putc(out, (char)mutate_number(random, (uint8_t)in.ptr[at++]));
        break;
    case 2: /* twice */
        kiln_buf_add(out, in.ptr + at, n);
        break;
    case 3: /* gone */
        at += n;
        break;
    default: /* from elsewhere */
        kiln_buf_add(out, in.ptr + mutate_roll(random, in.len - n + 1), n);
        at += n;
    }
    kiln_buf_add(out, in.ptr + at, in.len - at);
}

/* ---- lines ---- */

static struct kiln_str line_at(struct kiln_str in, size_t at)
{
    size_t from = at, to = at;

    while (from && in.ptr[from - 1] != '\n')
        from--;
    while (to < in.len && in.ptr[to] != '\n')
        to++;
    return (struct kiln_str){in.ptr + from, to - from + (to < in.len)};
}

/* A digit becomes a number, or a separator another. */
static void change_word(struct kiln_str line, uint64_t *random, struct kiln_buf *out)
{
    static const char *const words[] = {" ",
                                        ";",
                                        "0",
                                        "-1",
                                        "\t",
                                        "",
                                        ";;",
                                        "\x01",
                                        "\xff",
                                        "[",
                                        "18446744073709551615",
                                        "9223372036854775807",
                                        "#",
                                        "_"};
    size_t at = (size_t)mutate_roll(random, line.len);

    kiln_buf_add(out, line.ptr, at);
    if (line.ptr[at] >= '0' && line.ptr[at] <= '9' && mutate_roll(random, 2))
        kiln_buf_add_u64(out, mutate_number(random, (uint64_t)line.ptr[at] - '0'));
    else
        kiln_buf_puts(out, words[mutate_roll(random, sizeof(words) / sizeof(words[0]))]);
    kiln_buf_add(out, line.ptr + at + 1, line.len - at - 1);
}

static void change_lines(struct kiln_str in, uint64_t *random, struct kiln_buf *out)
{
    struct kiln_str line = line_at(in, (size_t)mutate_roll(random, in.len));
    struct kiln_str other = line_at(in, (size_t)mutate_roll(random, in.len));
    size_t before = (size_t)(line.ptr - in.ptr);

    kiln_buf_add(out, in.ptr, before);
    switch (mutate_roll(random, 5)) {
    case 0:
        break;
    case 1:
        kiln_buf_add_str(out, line);
        kiln_buf_add_str(out, line);
        break;
    case 2:
        kiln_buf_add_str(out, other);
        kiln_buf_add_str(out, line);
        break;
    default:
        if (line.len)
            change_word(line, random, out);
    }
    kiln_buf_add(out, line.ptr + line.len, in.len - before - line.len);
}

/* ---- all ---- */

static void change(enum mutate_shape shape, struct kiln_str in, uint64_t *random,
                   struct kiln_buf *out)
{
    if (in.len == 0)
        kiln_buf_putc(out, (char)mutate_roll(random, 256));
    else if (shape == MUTATE_BYTES || mutate_roll(random, 50) == 0)
        change_bytes(in, random, out);
    else if (shape == MUTATE_LINES)
        change_lines(in, random, out);
    else if (shape == MUTATE_JSON)
        mutate_json(in, random, out);
    else
        mutate_protobuf(in, random, out);
}

void mutate(enum mutate_shape shape, struct kiln_str in, uint64_t seed, struct kiln_buf *out)
{
    uint64_t random = seed, n = 1 + mutate_roll(&random, 3);
    struct kiln_buf now;

    kiln_buf_init(&now, out->max);
    kiln_buf_add_str(&now, in);
    for (uint64_t i = 0; i < n; i++) {
        struct kiln_buf next;

        kiln_buf_init(&next, out->max);
        change(shape, kiln_buf_str(&now), &random, &next);
        kiln_buf_done(&now);
        now = next;
    }
    kiln_buf_add_str(out, kiln_buf_str(&now));
    kiln_buf_done(&now);
}
