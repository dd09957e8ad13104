/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file is lines of
 *
 *   frame [';' frame]* ' ' count
 *
 * where the count is what stands behind the last blank, so that frames may hold blanks.  A line is
 * read from its end, leaf first, because an inlined frame must come before the one it is part of.
 *
 * Characters of a name that the format has no room for are written as similar ones, and put back
 * when read: ';' as U+FF1B, '#' at the start of a line as U+FF03, and control characters as the
 * pictures of them (U+2400 to U+2421).
 */
#include <math.h>

#include "base/json.h"
#include "codec/collapsed.h"
#include "codec/textframe.h"

#define DETECT_LINES 50
#define NO_STACK     "[no stack]"
#define SEMICOLON    "\xef\xbc\x9b" /* U+FF1B */
#define HASH         "\xef\xbc\x83" /* U+FF03 */
#define PICTURE      "\xe2\x90"     /* how the pictures of control characters begin */
#define SUBSTITUTE   3              /* bytes of each of them */

static const struct suffix {
    struct kiln_str text;
    struct kiln_str kind;
} suffixes[] = {
    {{"_[k]", 4}, {"kernel", 6}},
    {{"_[j]", 4}, {"jit", 3}},
};

/* The next line without its end; false when there is none. */
static bool next_line(struct kiln_str *rest, struct kiln_str *line)
{
    if (rest->len == 0)
        return false;
    *line = kiln_str_cut(rest, '\n');
    if (line->len && line->ptr[line->len - 1] == '\r')
        line->len--;
    return true;
}

/* Cuts a line into stack and count; false where there is no blank or no number behind it. */
static bool split(struct kiln_str line, struct kiln_str *stack, int64_t *count)
{
    const char *blank;
    struct kiln_str number;
    double fraction;

    line = kiln_str_trim(line);
    blank = line.len ? memrchr(line.ptr, ' ', line.len) : NULL;
    if (!blank)
        blank = line.len ? memrchr(line.ptr, '\t', line.len) : NULL;
    if (!blank)
        return false;
    number = (struct kiln_str){blank + 1, (size_t)(line.ptr + line.len - blank - 1)};
    *stack = (struct kiln_str){line.ptr, (size_t)(blank - line.ptr)};
    if (stack->len == 0 || kiln_json_parse_i64(number, count) == 0)
        return stack->len > 0;
    if (kiln_json_parse_double(number, &fraction) < 0 || !(fabs(fraction) < 0x1p63))
        return false;
    *count = llround(fraction);
    return true;
}

static bool is_passed_over(struct kiln_str line)
{
    return kiln_str_trim(line).len == 0 || line.ptr[0] == '#';
}

/* ---- reading ---- */

/* The character that the substitute at the start of `s` stands for; -1 if there is none. */
static int substituted(struct kiln_str s)
{
    unsigned char last = s.len < SUBSTITUTE ? 0 : (unsigned char)s.ptr[2];

    if (kiln_str_starts(s, KILN_STR(SEMICOLON)))
        return ';';
    if (!kiln_str_starts(s, KILN_STR(PICTURE)))
        return -1;
    return last >= 0x80 && last < 0xa0 ? last - 0x80 : last == 0xa1 ? 0x7f : -1;
}

/* Puts the original characters back.  Returns a text in `buf` if there are any. */
static struct kiln_str restore(struct kiln_str name, bool is_root, struct kiln_buf *buf)
{
    bool hash = is_root && kiln_str_starts(name, KILN_STR(HASH));

    if (KILN_LIKELY(!hash && !kiln_str_contains(name, KILN_STR(SEMICOLON)) &&
                    !kiln_str_contains(name, KILN_STR(PICTURE))))
        return name;
    kiln_buf_clear(buf);
    if (hash)
        kiln_buf_putc(buf, '#');
    for (size_t i = hash ? SUBSTITUTE : 0; i < name.len;) {
        int c = substituted((struct kiln_str){name.ptr + i, name.len - i});

        kiln_buf_putc(buf, c < 0 ? name.ptr[i] : (char)c);
        i += c < 0 ? 1 : SUBSTITUTE;
    }
    return kiln_buf_str(buf);
}

static struct kiln_textframe frame_of(struct kiln_str name, bool is_root, struct kiln_buf *buf)
{
    struct kiln_textframe frame = {0};

    for (size_t i = 0; i < KILN_ARRAY_LEN(suffixes); i++) {
        if (name.len > suffixes[i].text.len && kiln_str_ends(name, suffixes[i].text)) {
            name.len -= suffixes[i].text.len;
            frame.kind = suffixes[i].kind;
        }
    }
    if (name.len > 4 && kiln_str_ends(name, KILN_STR("_[i]"))) {
        name.len -= 4;
        frame.inlined = !is_root;
    }
    frame.name = name.len ? restore(name, is_root, buf) : KILN_STR("[unknown]");
    return frame;
}

static int add_frame(struct kiln_textstack *s, struct kiln_str name, bool is_root,
                     struct kiln_buf *buf)
{
    bool alone = s->n_lines == 0;
    struct kiln_textframe frame;
    int r;

    if (!is_root && kiln_textstack_add_known(s, name))
        return 0;
    frame = frame_of(name, is_root, buf);
    r = buf->error ? buf->error : kiln_textstack_add(s, &frame);
    if (r == 0 && alone && !frame.inlined && !is_root)
        r = kiln_textstack_remember(s, name);
    return r;
}

static int add_frames(struct kiln_textstack *s, struct kiln_str stack, struct kiln_buf *buf)
{
    if (kiln_str_eq(stack, KILN_STR(NO_STACK)))
        return 0;
    for (;;) {
        const char *cut = stack.len ? memrchr(stack.ptr, ';', stack.len) : NULL;
        const char *name = cut ? cut + 1 : stack.ptr;
        size_t len = (size_t)(stack.ptr + stack.len - name);
        int r = add_frame(s, (struct kiln_str){name, len}, !cut, buf);

        if (r < 0 || !cut)
            return r;
        stack.len = (size_t)(cut - stack.ptr);
    }
}

static int decode_line(struct kiln_textstack *s, struct kiln_str line, uint32_t profile,
                       struct kiln_buf *buf, struct kiln_err *err)
{
    struct kiln_str stack;
    int64_t count;
    int r;

    if (!split(line, &stack, &count))
        return kiln_err_set(err, KILN_E_MALFORMED, NULL, "not a stack, a blank and a count: %.*s",
                            line.len < 80 ? (int)line.len : 80, line.ptr);
    r = add_frames(s, stack, buf);
    if (r < 0)
        return kiln_err_set(err, r, NULL, "a stack of more than %u frames, or no memory",
                            kiln_builder_limits(s->b)->stack_depth);
    kiln_builder_add_value(s->b, profile, kiln_textstack_take(s, false), 0, count);
    return kiln_builder_error(s->b);
}

int kiln_collapsed_decode(struct kiln_str text, struct kiln_builder *b, struct kiln_err *err)
{
    struct kiln_value_type samples = {kiln_builder_string(b, KILN_STR("samples")),
                                      kiln_builder_string(b, KILN_STR("count"))};
    struct kiln_textstack stack;
    struct kiln_str line;
    struct kiln_buf buf;
    uint32_t profile;
    int r = 0;

    kiln_builder_add_resource(b, &(struct kiln_resource){0});
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    profile = kiln_builder_add_profile(b, &(struct kiln_profile){.sample_type = samples});
    kiln_textstack_init(&stack, b);
    kiln_buf_init(&buf, kiln_builder_limits(b)->memory_bytes);
    r = kiln_builder_error(b);
    for (size_t number = 1; r == 0 && next_line(&text, &line); number++) {
        if (is_passed_over(line))
            continue;
        r = decode_line(&stack, line, profile, &buf, err);
        if (r < 0)
            kiln_err_within(err, "line %zu", number);
    }
    kiln_buf_done(&buf);
    kiln_textstack_done(&stack);
    return r;
}

/* No control characters but tabs. */
static bool is_text(struct kiln_str line)
{
    for (size_t i = 0; i < line.len; i++) {
        if ((unsigned char)line.ptr[i] < 0x20 && line.ptr[i] != '\t')
            return false;
    }
    return true;
}

bool kiln_collapsed_detect(struct kiln_str text)
{
    struct kiln_str line, stack;
    bool found = false;
    int64_t count;

    for (int n = 0; n < DETECT_LINES && next_line(&text, &line); n++) {
        if (is_passed_over(line))
            continue;
        if (!is_text(line) || !split(line, &stack, &count))
            return false;
        found |= memchr(stack.ptr, ';', stack.len) && stack.ptr[0] != ';';
        found |= kiln_str_eq(stack, KILN_STR(NO_STACK));
    }
    return found;
}

/* ---- writing ---- */

static void put_name(struct kiln_buf *out, struct kiln_str name, bool is_root)
{
    size_t from = 0;

    if (is_root && name.len && name.ptr[0] == '#') {
        kiln_buf_puts(out, HASH); /* no comment */
        from = 1;
    }
    for (size_t i = from; i < name.len; i++) {
        unsigned char c = (unsigned char)name.ptr[i];

        if (c != ';' && c >= 0x20 && c != 0x7f)
            continue;
        kiln_buf_add(out, name.ptr + from, i - from);
        kiln_buf_puts(out, c == ';' ? SEMICOLON : PICTURE);
        if (c != ';')
            kiln_buf_putc(out, c == 0x7f ? '\xa1' : (char)(0x80 + c));
        from = i + 1;
    }
    kiln_buf_add(out, name.ptr + from, name.len - from);
}

static void put_frame(struct kiln_buf *out, const struct kiln_frame *frame, bool is_root)
{
    put_name(out, frame->name, is_root);
    if (frame->inlined) {
        kiln_buf_puts(out, "_[i]");
        return;
    }
    for (size_t i = 0; i < KILN_ARRAY_LEN(suffixes); i++) {
        if (kiln_str_eq(frame->kind, suffixes[i].kind))
            kiln_buf_add_str(out, suffixes[i].text);
    }
}

int kiln_collapsed_encode(const struct kiln_view *view, struct kiln_buf *out, struct kiln_err *err)
{
    for (uint32_t i = 0; i < view->n_rows && !out->error; i++) {
        const struct kiln_view_row *row = &view->rows[i];

        if (row->n == 0)
            kiln_buf_puts(out, NO_STACK);
        /* A row may be long where names are: once the limit is reached nothing more is looked at.
         */
        for (uint32_t k = 0; k < row->n && !out->error; k++) {
            if (k)
                kiln_buf_putc(out, ';');
            put_frame(out, &view->frames[view->path[row->first + k]], k == 0);
        }
        kiln_buf_putc(out, ' ');
        kiln_buf_add_i64(out, row->value);
        kiln_buf_putc(out, '\n');
    }
    return out->error ? kiln_err_set(err, out->error, NULL, "%s", kiln_err_text(out->error)) : 0;
}
