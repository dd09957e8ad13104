/* SPDX-License-Identifier: Apache-2.0 */
/* What somebody who interrupts a thread finds in its variable. */
#include <kiln.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include "test.h"

extern __thread void *volatile otel_thread_ctx_v1;

static const uint8_t trace[16] = "trace of a test";
static const uint8_t outer_id[8] = "outer", inner_id[8] = "inner", none[16];

/* The span that the thread shows: "" for none. */
static const char *shown(void)
{
    const uint8_t *record = otel_thread_ctx_v1;

    if (!record || record[24] != 1)
        return "";
    CHECK_EQ(memcmp(record, trace, 16), 0);
    return (const char *)record + 16;
}

TEST(span, a_thread_shows_none_at_first)
{
    CHECK_TEXT(shown(), "");
}

TEST(span, the_record_has_all_its_bytes)
{
    struct kiln_span span;
    const uint8_t *record;

    memset(&span, 0xff, sizeof(span));
    kiln_span_enter(&span, trace, outer_id, 7);
    record = otel_thread_ctx_v1;
    CHECK_EQ(memcmp(record, trace, 16), 0);
    CHECK_EQ(memcmp(record + 16, outer_id, 8), 0);
    CHECK_EQ(record[24], 1);
    CHECK_EQ(record[25], 7);
    CHECK_EQ(record[26] | record[27], 0);
    CHECK_EQ((uintptr_t)record % 2, 0);
    kiln_span_leave(&span);
    CHECK_TEXT(shown(), "");
}

TEST(span, spans_nest)
{
    struct kiln_span outer, inner;

    kiln_span_enter(&outer, trace, outer_id, 0);
    CHECK_TEXT(shown(), "outer");
    kiln_span_enter(&inner, trace, inner_id, 0);
    CHECK_TEXT(shown(), "inner");
    kiln_span_leave(&inner);
    CHECK_TEXT(shown(), "outer");
    kiln_span_leave(&outer);
    CHECK_TEXT(shown(), "");
}

TEST(span, one_that_is_left_too_early_is_never_shown_again)
{
    struct kiln_span outer, inner;

    kiln_span_enter(&outer, trace, outer_id, 0);
    kiln_span_enter(&inner, trace, inner_id, 0);
    kiln_span_leave(&outer);
    CHECK_TEXT(shown(), "inner");
    kiln_span_leave(&inner);
    CHECK_TEXT(shown(), "");
    kiln_span_leave(&inner); /* twice */
    CHECK_TEXT(shown(), "");
}

TEST(span, without_an_id_there_is_none)
{
    struct kiln_span outer, inner;

    kiln_span_enter(&outer, trace, outer_id, 0);
    kiln_span_enter(&inner, none, inner_id, 0);
    CHECK_TEXT(shown(), "");
    kiln_span_leave(&inner);
    CHECK_TEXT(shown(), "outer");
    kiln_span_leave(&outer);
    kiln_span_set(trace, none, 0);
    CHECK_TEXT(shown(), "");
}

TEST(span, what_is_set_stays_until_it_is_cleared)
{
    kiln_span_set(trace, outer_id, 0);
    CHECK_TEXT(shown(), "outer");
    kiln_span_set(trace, inner_id, 0);
    CHECK_TEXT(shown(), "inner");
    kiln_span_clear();
    CHECK_TEXT(shown(), "");
}

static void *of_another_thread(void *ret_text)
{
    *(const char **)ret_text = shown();
    kiln_span_set(trace, inner_id, 0);
    return NULL;
}

TEST(span, threads_do_not_see_each_other)
{
    pthread_t thread;
    const char *text = NULL;

    kiln_span_set(trace, outer_id, 0);
    CHECK_OK(pthread_create(&thread, NULL, of_another_thread, &text));
    pthread_join(thread, NULL);
    CHECK_TEXT(text, "");
    CHECK_TEXT(shown(), "outer");
    kiln_span_clear();
}

/* ---- interrupted anywhere ---- */

static volatile sig_atomic_t seen, torn;

/* In the spans below every byte of the ids is the same. */
static void interrupt(int number)
{
    const uint8_t *record = otel_thread_ctx_v1;

    (void)number;
    seen++;
    if (!record)
        return;
    for (int i = 0; i < 24; i++)
        torn |= record[i] != record[0];
    torn |= record[24] != 1;
}

TEST(span, a_record_is_whole_whenever_a_thread_is_interrupted)
{
    struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
    uint8_t ids[16];

    signal(SIGVTALRM, interrupt);
    setitimer(ITIMER_VIRTUAL, &often, NULL);
    for (uint32_t i = 0; seen < 20; i++) {
        struct kiln_span span;

        memset(ids, (int)(i % 255 + 1), sizeof(ids));
        kiln_span_set(ids, ids, 0);
        memset(ids, (int)(i % 251 + 2), sizeof(ids));
        kiln_span_enter(&span, ids, ids, 0);
        kiln_span_leave(&span);
    }
    setitimer(ITIMER_VIRTUAL, &never, NULL);
    CHECK(!torn);
}
