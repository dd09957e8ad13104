/* SPDX-License-Identifier: Apache-2.0 */
#include "inproc/out/answer.h"

#include "base/clock.h"

enum { PIECE = 512 }; /* of a head */

void kiln_in_answer_init(struct kiln_in_answer *answer)
{
    *answer = (struct kiln_in_answer){0};
    kiln_buf_init(&answer->head, KILN_IN_ANSWER_HEAD_MAX + PIECE);
    kiln_buf_init(&answer->body, KILN_IN_ANSWER_BODY_MAX);
}

void kiln_in_answer_done(struct kiln_in_answer *answer)
{
    kiln_buf_done(&answer->head);
    kiln_buf_done(&answer->body);
}

/* ---- when to come back ---- */

/* Days since 1970 of a date in the calendar of today. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t era = y / 400, of_era = y % 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

/* `n` digits of a text at a place; -1: they are none. */
static int64_t digits_at(struct kiln_str text, size_t at, size_t n)
{
    uint64_t number;

    return kiln_str_parse_u64((struct kiln_str){text.ptr + at, n}, &number) < 0 ? -1
                                                                                : (int64_t)number;
}

/* The one form of a date that may still be sent: "Sun, 06 Nov 1994 08:49:37 GMT".  0: it is none.
 */
static uint64_t parse_date(struct kiln_str text)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    int64_t day, year, hour, minute, second, month = -1;

    if (text.len != 29 || memcmp(text.ptr + 25, " GMT", 4) != 0)
        return 0;
    for (int i = 0; i < 12; i++)
        if (memcmp(months + 3 * (size_t)i, text.ptr + 8, 3) == 0)
            month = i + 1;
    day = digits_at(text, 5, 2);
    year = digits_at(text, 12, 4);
    hour = digits_at(text, 17, 2);
    minute = digits_at(text, 20, 2);
    second = digits_at(text, 23, 2);
    if (month < 0 || day < 1 || day > 31 || year < 1970 || hour < 0 || hour > 23 || minute < 0 ||
        minute > 59 || second < 0)
        return 0;
    return (uint64_t)(days_of(year, month, day) * 86400 + hour * 3600 + minute * 60 + second);
}

uint32_t kiln_in_retry_after(struct kiln_str text, uint64_t now_s)
{
    uint64_t seconds, at;

    if (kiln_str_parse_u64(text, &seconds) < 0) {
        at = parse_date(text);
        seconds = at > now_s ? at - now_s : 0;
    }
    return seconds > UINT32_MAX / 1000 ? UINT32_MAX : (uint32_t)seconds * 1000;
}

/* ---- reading ---- */

static void read_head(struct kiln_in_answer *answer, const struct kiln_http_head *head)
{
    bool empty = head->status == 204 || head->status == 304;

    answer->status = head->status;
    answer->until_close = !empty && !head->chunked && !head->has_length;
    answer->keep_alive = head->keep_alive && !answer->until_close;
    for (uint32_t i = 0; i < head->n_headers; i++) {
        const struct kiln_header *h = &head->headers[i];

        if (kiln_str_eq(h->name, KILN_STR("retry-after")))
            answer->retry_after_ms =
                kiln_in_retry_after(h->value, kiln_clock_unix_ns() / KILN_NS_PER_S);
        else if (kiln_str_eq(h->name, KILN_STR("content-type")))
            answer->is_protobuf = kiln_str_contains(h->value, KILN_STR("protobuf"));
    }
    kiln_http1_body_init(&answer->state, head);
    if (empty)
        answer->state.state = KILN_BODY_DONE;
}

/* Takes bytes until the head is complete.  1: it is not yet, 0: it is, and *bytes is behind it. */
static int feed_head(struct kiln_in_answer *answer, struct kiln_str *bytes)
{
    struct kiln_http_head head;
    size_t before = answer->head.len, used = bytes->len < PIECE ? bytes->len : PIECE;
    int64_t n;

    kiln_buf_add(&answer->head, bytes->ptr, used);
    n = answer->head.error ? answer->head.error
                           : kiln_http1_find_end(&answer->scan, kiln_buf_str(&answer->head));
    if (n < 0)
        return (int)n;
    if ((n ? (size_t)n : answer->head.len) > KILN_IN_ANSWER_HEAD_MAX)
        return KILN_E_LIMIT;
    used = n ? (size_t)n - before : used;
    bytes->ptr += used;
    bytes->len -= used;
    if (n == 0)
        return 1;
    if (kiln_http1_parse_answer(answer->head.ptr, (size_t)n, &head) < 0 || head.status == 101)
        return KILN_E_MALFORMED;
    if (head.status >= 200)
        read_head(answer, &head);
    kiln_buf_clear(&answer->head);
    answer->scan = (struct kiln_http1_scan){0};
    return 0;
}

/* The status has said all that counts; what is left is nobody's to read. */
static void give_up_body(struct kiln_in_answer *answer)
{
    kiln_buf_done(&answer->body);
    answer->is_protobuf = answer->until_close = answer->keep_alive = false;
    answer->state.state = KILN_BODY_DONE;
}

static int feed_body(struct kiln_in_answer *answer, struct kiln_str *bytes)
{
    struct kiln_str piece = KILN_STR_NONE;
    int r = 1;

    if (answer->until_close) {
        piece = *bytes;
        *bytes = KILN_STR_NONE;
    } else {
        r = kiln_http1_body_next(&answer->state, bytes, &piece);
    }
    kiln_buf_add_str(&answer->body, piece);
    if (answer->body.error == KILN_E_LIMIT) {
        give_up_body(answer);
        return 0;
    }
    return answer->body.error ? answer->body.error : r;
}

static bool is_complete(const struct kiln_in_answer *answer)
{
    return answer->status && !answer->until_close && answer->state.state == KILN_BODY_DONE;
}

int kiln_in_answer_feed(struct kiln_in_answer *answer, struct kiln_str bytes)
{
    int r = 1;

    while (bytes.len && r >= 0 && !is_complete(answer))
        r = answer->status ? feed_body(answer, &bytes) : feed_head(answer, &bytes);
    if (r < 0)
        return r;
    if (!is_complete(answer))
        return 1;
    if (bytes.len)
        answer->keep_alive = false;
    return 0;
}

int kiln_in_answer_end(struct kiln_in_answer *answer)
{
    return answer->status && (answer->until_close || is_complete(answer)) ? 0 : KILN_E_TRUNCATED;
}
