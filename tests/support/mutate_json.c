/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values of a text are found by their first and last bytes; one is replaced, removed with its
 * comma, or repeated.
 */
#include <string.h>

#include "mutate_int.h"

static bool is_scalar(char c)
{
    return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || (c >= 'a' && c <= 'z') ||
           c == 'E';
}

static size_t string_end(struct kiln_str in, size_t at)
{
    for (at++; at < in.len && in.ptr[at] != '"'; at++)
        at += in.ptr[at] == '\\';
    return at < in.len ? at + 1 : in.len;
}

/* Where the value or name that begins at `at` ends. */
static size_t value_end(struct kiln_str in, size_t at)
{
    size_t depth = 0;

    if (in.ptr[at] == '"')
        return string_end(in, at);
    if (in.ptr[at] != '{' && in.ptr[at] != '[') {
        while (at < in.len && is_scalar(in.ptr[at]))
            at++;
        return at;
    }
    while (at < in.len) {
        char c = in.ptr[at];

        at = c == '"' ? string_end(in, at) : at + 1;
        depth += c == '{' || c == '[';
        depth -= c == '}' || c == ']';
        if (depth == 0)
            break;
    }
    return at;
}

static bool begins(char c)
{
    return c == '"' || c == '{' || c == '[' || is_scalar(c);
}

struct found {
    struct kiln_str value;
    bool in_array; /* else the value of a member */
};

/*
 * The first value, not the name of a member, at or behind a random place.  `arrays` has a bit for
 * each container that is open.
 */
static struct found pick(struct kiln_str in, uint64_t *random)
{
    size_t wanted = (size_t)mutate_roll(random, in.len), at = 0, end;
    uint64_t arrays = 0;

    while (at < in.len) {
        char c = in.ptr[at];

        if (!begins(c)) {
            arrays >>= c == '}' || c == ']';
            at++;
            continue;
        }
        end = value_end(in, at);
        if (at >= wanted && !(end < in.len && c == '"' && in.ptr[end] == ':'))
            return (struct found){{in.ptr + at, end - at}, arrays & 1};
        if (c == '{' || c == '[') {
            arrays = arrays << 1 | (c == '[');
            end = at + 1;
        }
        at = end > at ? end : at + 1;
    }
    return (struct found){{in.ptr + in.len, 0}, false};
}

static void put_number(struct kiln_str value, uint64_t *random, struct kiln_buf *out)
{
    bool is_text = value.len && value.ptr[0] == '"';
    uint64_t old = 0;

    for (size_t i = is_text; i < value.len && value.ptr[i] >= '0' && value.ptr[i] <= '9'; i++)
        old = old * 10 + (uint64_t)value.ptr[i] - '0';
    kiln_buf_puts(out, is_text ? "\"" : "");
    kiln_buf_add_u64(out, mutate_number(random, old));
    kiln_buf_puts(out, is_text ? "\"" : "");
}

static void put_other(struct kiln_str in, struct kiln_str value, uint64_t *random,
                      struct kiln_buf *out)
{
    static const char *const values[] = {"null", "{}",  "[]",          "\"\"",  "[0]",
                                         "true", "0.5", "\"\\u0000\"", "\"0\"", "[{}]"};
    bool is_text = value.len && value.ptr[0] == '"';

    if (mutate_roll(random, 6) == 0)
        kiln_buf_puts(out, values[mutate_roll(random, sizeof(values) / sizeof(values[0]))]);
    else if (mutate_roll(random, 6) == 0)
        kiln_buf_add_str(out, pick(in, random).value);
    else if (is_text && mutate_roll(random, 2))
        kiln_buf_puts(out, mutate_roll(random, 2) ? "\"\"" : "\"main\"");
    else if (value.len && (value.ptr[0] == '{' || value.ptr[0] == '['))
        kiln_buf_puts(out, value.ptr[0] == '{' ? "{}" : "[]");
    else
        put_number(value, random, out);
}

void mutate_json(struct kiln_str in, uint64_t *random, struct kiln_buf *out)
{
    struct found found = pick(in, random);
    struct kiln_str value = found.value;
    size_t before = (size_t)(value.ptr - in.ptr), after = before + value.len;
    uint64_t way = found.in_array ? mutate_roll(random, 4) : 3;

    if (way == 0 && after < in.len && in.ptr[after] == ',') { /* gone */
        kiln_buf_add(out, in.ptr, before);
        after++;
    } else if (way <= 1) { /* twice */
        kiln_buf_add(out, in.ptr, after);
        kiln_buf_putc(out, ',');
        kiln_buf_add_str(out, value);
    } else {
        kiln_buf_add(out, in.ptr, before);
        put_other(in, value, random, out);
    }
    kiln_buf_add(out, in.ptr + after, in.len - after);
}
