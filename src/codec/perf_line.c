/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The header of a sample has, in this order, what was asked for of
 *
 *   comm  pid/tid  [cpu]  seconds.micros:  period  event:
 *
 * and only brackets, the point and the colons tell which is which, since a comm may hold blanks and
 * digits.  So the first of cpu, time and event is looked for, the number before it is the id, and
 * what stands before that is the comm.
 *
 * A frame is an address in hexadecimal, the symbol with an offset, and the module in parentheses
 * ("inlined" for a frame that has no code of its own).  Symbols may hold blanks and parentheses.
 */
#include "codec/perf_int.h"

#define WORDS_MAX        24u /* enough for a comm of 15 characters and all fields */
#define KERNEL_ADDRESSES UINT64_C(0xffff800000000000)

struct words {
    struct kiln_str word[WORDS_MAX];
    int n;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static struct words split(struct kiln_str line)
{
    struct words w = {.n = 0};
    const char *p = line.ptr, *end = line.ptr + line.len;

    while (w.n < (int)WORDS_MAX) {
        const char *from;

        while (p < end && (*p == ' ' || *p == '\t'))
            p++;
        from = p;
        while (p < end && *p != ' ' && *p != '\t')
            p++;
        if (p == from)
            break;
        w.word[w.n++] = (struct kiln_str){from, (size_t)(p - from)};
    }
    return w;
}

/* ---- what a word is ---- */

/* "1846.411485:", as nanoseconds. */
static bool parse_time(struct kiln_str word, int64_t *ret)
{
    struct kiln_str seconds, fraction;
    uint64_t s, f, scale = 1000000000;

    if (word.len < 2 || word.ptr[word.len - 1] != ':')
        return false;
    fraction = (struct kiln_str){word.ptr, word.len - 1};
    seconds = kiln_str_cut(&fraction, '.');
    if (fraction.len == 0 || fraction.len > 9 || seconds.len > 9 ||
        kiln_str_parse_u64(seconds, &s) < 0 || kiln_str_parse_u64(fraction, &f) < 0)
        return false;
    for (size_t i = 0; i < fraction.len; i++)
        scale /= 10;
    *ret = (int64_t)(s * 1000000000 + f * scale);
    return true;
}

/* "[003]" */
static bool parse_cpu(struct kiln_str word, int64_t *ret)
{
    if (word.len < 3 || word.ptr[0] != '[' || word.ptr[word.len - 1] != ']')
        return false;
    return is_digit(word.ptr[1]) &&
           kiln_str_parse_i64((struct kiln_str){word.ptr + 1, word.len - 2}, ret) == 0;
}

/* "17338" (a thread) or "17338/17340" (process and thread). */
static bool parse_ids(struct kiln_str word, struct perf_header *h)
{
    struct kiln_str rest = word, first = kiln_str_cut(&rest, '/');
    int64_t a, b;

    if (kiln_str_parse_i64(first, &a) < 0)
        return false;
    if (!rest.ptr) {
        h->tid = a;
        return true;
    }
    if (kiln_str_parse_i64(rest, &b) < 0)
        return false;
    h->pid = a;
    h->tid = b;
    return true;
}

static bool is_event(struct kiln_str word)
{
    return word.len > 1 && word.ptr[word.len - 1] == ':' && !is_digit(word.ptr[0]);
}

/* ---- headers ---- */

/* Where the fields are found; -1 where they are not. */
struct places {
    int cpu, time, event;
};

static struct places find(const struct words *w, struct perf_header *h)
{
    struct places p = {-1, -1, -1};
    int behind;

    for (int i = 0; i < w->n && p.time < 0; i++) {
        if (parse_time(w->word[i], &h->time_ns))
            p.time = i;
    }
    for (int i = 0; i < (p.time < 0 ? w->n : p.time); i++) {
        if (parse_cpu(w->word[i], &h->cpu))
            p.cpu = i; /* the last one: a comm may look like it */
    }
    behind = p.time > p.cpu ? p.time : p.cpu;
    for (int i = behind < 0 ? 1 : behind + 1; i < w->n && p.event < 0; i++) {
        if (is_event(w->word[i]))
            p.event = i;
    }
    return p;
}

static struct kiln_str span(struct kiln_str from, struct kiln_str to)
{
    return (struct kiln_str){from.ptr, (size_t)(to.ptr + to.len - from.ptr)};
}

/* The period stands directly before the event, if something else is known to be the id. */
static bool take_period(const struct words *w, struct places p, struct perf_header *h)
{
    struct perf_header ignored;
    int behind = p.time > p.cpu ? p.time : p.cpu;

    if (p.event < 1 || p.event - 1 <= behind)
        return false;
    if (behind < 0 && (p.event < 2 || !parse_ids(w->word[p.event - 2], &ignored)))
        return false;
    return kiln_str_parse_i64(w->word[p.event - 1], &h->period) == 0 && h->period >= 0;
}

/* Comm and ids: the words before the first field that is known. */
static void take_names(const struct words *w, int n, struct perf_header *h)
{
    if (n > 0 && parse_ids(w->word[n - 1], h))
        n--;
    if (n > 0)
        h->comm = span(w->word[0], w->word[n - 1]);
}

bool perf_parse_header(struct kiln_str line, struct perf_header *ret)
{
    struct words w = split(line);
    struct perf_header h = {.pid = -1, .tid = -1, .cpu = -1, .period = -1, .time_ns = -1};
    struct places p = find(&w, &h);
    int n = w.n;

    if (w.n == 0)
        return false;
    if (p.cpu >= 0)
        n = p.cpu;
    else if (p.time >= 0)
        n = p.time;
    else if (p.event >= 0)
        n = p.event;
    if (!take_period(&w, p, &h))
        h.period = -1;
    else if (n == p.event)
        n--;
    take_names(&w, n, &h);
    if (p.event >= 0) {
        struct kiln_str event = w.word[p.event];

        h.event = (struct kiln_str){event.ptr, event.len - 1};
        h.rest.ptr = event.ptr + event.len;
        h.rest.len = (size_t)(line.ptr + line.len - h.rest.ptr);
    }
    if (p.event < 0 && p.time < 0 && h.tid < 0)
        return false;
    *ret = h;
    return true;
}

/* ---- frames ---- */

/* Cuts "(module)" off the end of a frame; the parentheses may hold others: "(/memfd:x (deleted))".
 */
static bool cut_module(struct kiln_str *text, struct kiln_str *ret)
{
    size_t open = 0;
    int depth = 0;

    if (text->len == 0 || text->ptr[text->len - 1] != ')')
        return false;
    for (size_t i = text->len; i-- > 0;) {
        depth += (text->ptr[i] == ')') - (text->ptr[i] == '(');
        open = i;
        if (depth == 0)
            break;
    }
    if (depth != 0 || (open > 0 && text->ptr[open - 1] != ' '))
        return false;
    *ret = (struct kiln_str){text->ptr + open + 1, text->len - open - 2};
    *text = kiln_str_trim((struct kiln_str){text->ptr, open});
    return true;
}

/* The symbol without "+0x28". */
static struct kiln_str without_offset(struct kiln_str symbol)
{
    const char *plus = symbol.len ? memrchr(symbol.ptr, '+', symbol.len) : NULL;
    struct kiln_str offset;
    uint64_t ignored;

    if (!plus || plus == symbol.ptr)
        return symbol;
    offset = (struct kiln_str){plus + 1, (size_t)(symbol.ptr + symbol.len - plus - 1)};
    if (!kiln_str_starts(offset, KILN_STR("0x")) || kiln_str_parse_hex(offset, &ignored) < 0)
        return symbol;
    symbol.len = (size_t)(plus - symbol.ptr);
    return symbol;
}

static struct kiln_str kind_of(struct kiln_str module, uint64_t address)
{
    if (kiln_str_starts(module, KILN_STR("[kernel")) ||
        kiln_str_starts(module, KILN_STR("[guest.kernel")) || address >= KERNEL_ADDRESSES)
        return KILN_STR("kernel");
    if (kiln_str_contains(module, KILN_STR("/perf-")) && kiln_str_ends(module, KILN_STR(".map")))
        return KILN_STR("jit");
    return module.len ? KILN_STR("native") : KILN_STR("");
}

bool perf_parse_frame(struct kiln_str line, bool strict, struct kiln_textframe *ret)
{
    struct kiln_textframe frame = {0};
    struct kiln_str rest = kiln_str_trim(line), word = kiln_str_cut(&rest, ' ');
    struct kiln_str module = KILN_STR_NONE;

    if (word.len == 0 || word.len > 16 || kiln_str_parse_hex(word, &frame.address) < 0)
        return false;
    rest = kiln_str_trim(rest);
    if (!cut_module(&rest, &module) && strict)
        return false;
    frame.name = without_offset(rest);
    if (kiln_str_eq(module, KILN_STR("inlined"))) {
        frame.inlined = true;
        module = KILN_STR_NONE;
    }
    if (kiln_str_eq(module, KILN_STR("[unknown]")))
        module = KILN_STR_NONE;
    if (kiln_str_eq(frame.name, KILN_STR("[unknown]")))
        frame.name = frame.address ? KILN_STR("") : frame.name;
    frame.module = module;
    frame.kind = kind_of(module, frame.address);
    *ret = frame;
    return true;
}

void perf_parse_source(struct kiln_str line, struct kiln_textframe *frame)
{
    struct kiln_str text = kiln_str_trim(line);
    const char *note = memmem(text.ptr, text.len, " (", 2);
    const char *colon;
    uint64_t number;

    if (note)
        text.len = (size_t)(note - text.ptr);
    colon = text.len ? memrchr(text.ptr, ':', text.len) : NULL;
    if (!colon || frame->name.len == 0)
        return;
    if (kiln_str_parse_u64((struct kiln_str){colon + 1, (size_t)(text.ptr + text.len - colon - 1)},
                           &number) < 0 ||
        number > INT64_MAX)
        return;
    frame->file = (struct kiln_str){text.ptr, (size_t)(colon - text.ptr)};
    frame->line = (int64_t)number;
}
