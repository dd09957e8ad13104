/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One character at a time: decode, judge, quote, append.  The width of a text is the sum of the
 * advances that Helvetica, Arial and their twins share, because a drawing is made where no font is.
 */
#include "codec/clean.h"

#define REPLACEMENT 0xfffdu
#define ELLIPSIS    0x2026u

struct span {
    uint32_t first, last;
};

/* Characters that change how others are shown, or show nothing: marks of direction, joins, tags. */
static const struct span unseen[] = {
    {0x00ad, 0x00ad}, {0x061c, 0x061c}, {0x180e, 0x180e},   {0x200b, 0x200f}, {0x2028, 0x202e},
    {0x2060, 0x206f}, {0xd800, 0xdfff}, {0xfdd0, 0xfdef},   {0xfe00, 0xfe0f}, {0xfeff, 0xfeff},
    {0xfff0, 0xfffb}, {0xfffe, 0xffff}, {0xe0000, 0xe0fff},
};

static bool is_unseen(uint32_t c)
{
    if (c < 0x20 || (c >= 0x7f && c < 0xa0) || (c & 0xfffe) == 0xfffe)
        return true;
    for (size_t i = 0; i < KILN_ARRAY_LEN(unseen); i++)
        if (c >= unseen[i].first && c <= unseen[i].last)
            return true;
    return false;
}

/* Decodes the character at the start of `s`; *ret_len bytes, 1 where they are no character. */
static uint32_t decode(struct kiln_str s, size_t *ret_len)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char lead = (unsigned char)s.ptr[0];
    size_t n = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    uint32_t c = n > 1 ? lead & (0x7fu >> n) : lead;

    *ret_len = 1;
    if (n == 0 || lead > 0xf4 || n > s.len)
        return REPLACEMENT;
    for (size_t i = 1; i < n; i++) {
        if (((unsigned char)s.ptr[i] & 0xc0) != 0x80)
            return REPLACEMENT;
        c = c << 6 | ((unsigned char)s.ptr[i] & 0x3f);
    }
    if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return REPLACEMENT;
    *ret_len = n;
    return c;
}

uint32_t kiln_clean_next(struct kiln_str *rest)
{
    size_t len;
    uint32_t c = decode(*rest, &len);

    rest->ptr += len;
    rest->len -= len;
    if (c == '\t' || c == '\n' || c == '\r')
        return ' ';
    return is_unseen(c) ? REPLACEMENT : c;
}

static void add_utf8(struct kiln_buf *out, uint32_t c)
{
    if (c < 0x80) {
        kiln_buf_putc(out, (char)c);
    } else if (c < 0x800) {
        kiln_buf_putc(out, (char)(0xc0 | c >> 6));
        kiln_buf_putc(out, (char)(0x80 | (c & 0x3f)));
    } else {
        if (c < 0x10000) {
            kiln_buf_putc(out, (char)(0xe0 | c >> 12));
        } else {
            kiln_buf_putc(out, (char)(0xf0 | c >> 18));
            kiln_buf_putc(out, (char)(0x80 | (c >> 12 & 0x3f)));
        }
        kiln_buf_putc(out, (char)(0x80 | (c >> 6 & 0x3f)));
        kiln_buf_putc(out, (char)(0x80 | (c & 0x3f)));
    }
}

static const char *entity(uint32_t c, enum kiln_quote quote)
{
    if (quote == KILN_QUOTE_XML)
        return c == '<'    ? "&lt;"
               : c == '>'  ? "&gt;"
               : c == '&'  ? "&amp;"
               : c == '"'  ? "&quot;"
               : c == '\'' ? "&#39;"
                           : NULL;
    if (quote == KILN_QUOTE_DOT)
        return c == '"' ? "\\\"" : c == '\\' ? "\\\\" : NULL;
    return NULL;
}

static void add_char(struct kiln_buf *out, uint32_t c, enum kiln_quote quote)
{
    const char *quoted = entity(c, quote);

    if (quoted)
        kiln_buf_puts(out, quoted);
    else
        add_utf8(out, c);
}

void kiln_clean_add(struct kiln_buf *out, struct kiln_str s, size_t chars_max,
                    enum kiln_quote quote)
{
    while (s.len && chars_max) {
        uint32_t c = kiln_clean_next(&s);

        if (--chars_max == 0 && s.len)
            c = ELLIPSIS;
        add_char(out, c, quote);
    }
}

struct kiln_str kiln_clean_short(struct kiln_str name)
{
    size_t start = 0;

    for (size_t i = 0; i + 1 < name.len && !(i && strchr("([< ", name.ptr[i])); i++)
        if (name.ptr[i] == '/')
            start = i + 1;
    return (struct kiln_str){name.ptr + start, name.len - start};
}

/* Thousandths of the font size, from ' ' to '~'. */
static const uint16_t advance[] = {
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333,  278, 278, 556, 556, 556,
    556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667,
    611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667,  611, 722, 667, 944, 667,
    667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278,  556, 556, 222, 222, 500,
    222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500,  500, 334, 260, 334, 584,
};

static double char_width(uint32_t c, double size_px)
{
    unsigned wide = c >= 0x1100 ? 1000 : 600;

    return (c >= ' ' && c <= '~' ? advance[c - ' '] : wide) * size_px / 1000;
}

size_t kiln_clean_fit(struct kiln_str s, double size_px, double width_px)
{
    double cut_px = width_px - size_px; /* the ellipsis is an em wide */
    double used_px = 0;
    size_t chars = 0, fitting = 0;

    while (s.len) {
        used_px += char_width(kiln_clean_next(&s), size_px);
        if (used_px > width_px)
            return fitting ? fitting + 1 : 0;
        chars++;
        if (used_px <= cut_px)
            fitting = chars;
    }
    return SIZE_MAX;
}

double kiln_clean_width(struct kiln_str s, double size_px)
{
    double used_px = 0;

    while (s.len)
        used_px += char_width(kiln_clean_next(&s), size_px);
    return used_px;
}
