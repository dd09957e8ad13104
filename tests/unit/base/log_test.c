/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "test.h"

/* 2026-03-01T12:00:00.123Z */
static const uint64_t noon = UINT64_C(1772366400123000000);

struct written {
    int fds[2];
    struct kiln_log *log;
    char text[65536];
};

static void begin(struct written *w, enum kiln_log_level level, enum kiln_log_form form)
{
    CHECK_OK(pipe(w->fds));
    CHECK_OK(kiln_log_new(w->fds[1], level, form, &w->log));
    kiln_clock_set(noon);
}

/* What was written; the log is gone. */
static const char *end(struct written *w)
{
    size_t len = 0;
    ssize_t n;

    kiln_clock_set(0);
    kiln_log_free(w->log);
    close(w->fds[1]);
    while ((n = read(w->fds[0], w->text + len, sizeof(w->text) - 1 - len)) > 0)
        len += (size_t)n;
    w->text[len] = '\0';
    close(w->fds[0]);
    return w->text;
}

TEST(log, a_line_has_time_level_message_and_fields)
{
    struct written w;

    begin(&w, KILN_LOG_INFO, KILN_LOG_LOGFMT);
    kiln_log(w.log, KILN_LOG_WARN, "block set aside", "path", "%s", "blocks/x.kb", "bytes", "%zu",
             (size_t)42, "part", "%.2f", 0.5, "n", "%d", -7, NULL);
    CHECK_TEXT(end(&w), "time=2026-03-01T12:00:00.123Z level=warn msg=\"block set aside\" "
                        "path=blocks/x.kb bytes=42 part=0.50 n=-7\n");
}

TEST(log, level_and_form_can_change)
{
    struct written w;

    begin(&w, KILN_LOG_WARN, KILN_LOG_LOGFMT);
    kiln_log(w.log, KILN_LOG_INFO, "held back", NULL);
    kiln_log_change(w.log, KILN_LOG_DEBUG, KILN_LOG_JSON);
    kiln_log(w.log, KILN_LOG_DEBUG, "said", NULL);
    CHECK_TEXT(end(&w),
               "{\"time\":\"2026-03-01T12:00:00.123Z\",\"level\":\"debug\",\"msg\":\"said\"}\n");
}

TEST(log, plain_text_has_the_local_time_and_a_level_that_matters)
{
    struct written w;

    setenv("TZ", "UTC-2", 1);
    tzset();
    begin(&w, KILN_LOG_INFO, KILN_LOG_PLAIN);
    kiln_log(w.log, KILN_LOG_WARN, "block set aside", "path", "%s", "my blocks/x.kb", "bytes",
             "%zu", (size_t)42, NULL);
    kiln_log(w.log, KILN_LOG_INFO, "said", NULL);
    kiln_log(w.log, KILN_LOG_ERROR, "failed", "reason", "%s", "no \"x\"", NULL);
    CHECK_TEXT(end(&w), "14:00:00 warning: block set aside; path: my blocks/x.kb; bytes: 42\n"
                        "14:00:00 said\n"
                        "14:00:00 error: failed; reason: no \"x\"\n");
}

TEST(log, json_keeps_numbers_as_numbers)
{
    struct written w;

    begin(&w, KILN_LOG_INFO, KILN_LOG_JSON);
    kiln_log(w.log, KILN_LOG_ERROR, "no", "big", "%llu", 18446744073709551615ULL, "low", "%ld", -5L,
             "text", "%s", "7", "odd", "%g", 1.0 / 0.0, NULL);
    CHECK_TEXT(end(&w),
               "{\"time\":\"2026-03-01T12:00:00.123Z\",\"level\":\"error\",\"msg\":\"no\","
               "\"big\":18446744073709551615,\"low\":-5,\"text\":\"7\",\"odd\":\"inf\"}\n");
}

TEST(log, what_needs_quotes_gets_them)
{
    struct written w;

    begin(&w, KILN_LOG_INFO, KILN_LOG_LOGFMT);
    kiln_log(w.log, KILN_LOG_INFO, "x", "empty", "%s", "", "equal", "%s", "a=b", "quote", "%s",
             "say \"hi\"", "none", "%s", (char *)NULL, "accent", "%s", "\xc3\xa9", NULL);
    CHECK_TEXT(end(&w), "time=2026-03-01T12:00:00.123Z level=info msg=x empty=\"\" equal=\"a=b\" "
                        "quote=\"say \\\"hi\\\"\" none=(none) accent=\"\xc3\xa9\"\n");
}

TEST(log, hostile_texts_are_made_safe)
{
    struct written w;

    begin(&w, KILN_LOG_INFO, KILN_LOG_LOGFMT);
    kiln_log(w.log, KILN_LOG_INFO, "a\nlevel=error", "t", "%s",
             "\x1b[2J\x7f\xc2\x9b\xff\r\t\\\xe2\x80\xae\xe2\x81\xa6", NULL);
    CHECK_TEXT(end(&w), "time=2026-03-01T12:00:00.123Z level=info msg=\"a\\nlevel=error\" "
                        "t=\"\\u001b[2J\\u007f\\u009b\xef\xbf\xbd\\r\\t\\\\\\u202e\\u2066\"\n");
}

TEST(log, hostile_plain_texts_stay_on_their_line)
{
    struct written w;

    begin(&w, KILN_LOG_WARN, KILN_LOG_PLAIN);
    kiln_log(w.log, KILN_LOG_WARN, "x", "t", "%s", "\x1b]0;a\x07\r\n\xc2\x9b\xe2\x80\xae\xff",
             NULL);
    CHECK_TEXT(strchr(end(&w), 'x'), "x; t: \\u001b]0;a\\u0007\\r\\n\\u009b\\u202e\xef\xbf\xbd\n");
}

TEST(log, any_byte_makes_valid_json)
{
    struct written w;
    char all[256];
    struct kiln_json r;

    for (int i = 0; i < 255; i++)
        all[i] = (char)(i + 1);
    all[255] = '\0';
    begin(&w, KILN_LOG_INFO, KILN_LOG_JSON);
    kiln_log(w.log, KILN_LOG_INFO, all, "t", "%s", all, NULL);
    end(&w);
    kiln_json_init(&r, kiln_str_of(w.text), NULL);
    CHECK_OK(kiln_json_skip(&r));
    CHECK_EQ(kiln_json_more(&r), 0);
    kiln_json_done(&r);
}

TEST(log, long_texts_are_cut_and_long_lines_say_so)
{
    static char text[9000];
    struct written w;

    memset(text, '\x01', sizeof(text) - 1);
    begin(&w, KILN_LOG_INFO, KILN_LOG_LOGFMT);
    kiln_log(w.log, KILN_LOG_INFO, "x", "a", "%s", text, "b", "%s", text, "c", "%s", text, "d",
             "%s", text, "e", "%s", text, NULL);
    end(&w);
    CHECK(strstr(w.text, "\\u0001...\" b=") != NULL);
    CHECK(strstr(w.text, " truncated=true\n") != NULL);
    CHECK(strlen(w.text) < 25000);
}

TEST(log, lines_below_the_level_are_not_written)
{
    struct written w;

    begin(&w, KILN_LOG_WARN, KILN_LOG_LOGFMT);
    kiln_log(w.log, KILN_LOG_INFO, "x", NULL);
    kiln_log(NULL, KILN_LOG_ERROR, "x", "a", "%d", 1, NULL);
    CHECK_TEXT(end(&w), "");
    kiln_log_free(NULL);
}

TEST(log, levels_have_names)
{
    enum kiln_log_level level = KILN_LOG_ERROR;

    CHECK_OK(kiln_log_level_parse("debug", &level));
    CHECK_EQ(level, KILN_LOG_DEBUG);
    CHECK(kiln_log_level_parse("loud", &level) < 0);
    CHECK_EQ(level, KILN_LOG_DEBUG);
}

TEST(log, forms_have_names)
{
    enum kiln_log_form form = KILN_LOG_JSON;

    CHECK_OK(kiln_log_form_parse("plain", &form));
    CHECK_EQ(form, KILN_LOG_PLAIN);
    CHECK(kiln_log_form_parse("xml", &form) < 0);
    CHECK_EQ(form, KILN_LOG_PLAIN);
}

TEST(log, a_repeated_line_is_held_back)
{
    _Atomic uint64_t last = 0;

    CHECK(kiln_log_every(&last, 3600));
    CHECK(!kiln_log_every(&last, 3600));
    CHECK(kiln_log_every(&last, 0));
}

static void *chatter(void *log)
{
    for (int i = 0; i < 50; i++)
        kiln_log(log, KILN_LOG_INFO, "spoken by a thread", "n", "%d", 7, NULL);
    return NULL;
}

TEST(log, lines_of_threads_do_not_mix)
{
    const char *line = "time=2026-03-01T12:00:00.123Z level=info msg=\"spoken by a thread\" n=7\n";
    pthread_t threads[4];
    struct written w;
    int lines = 0;

    begin(&w, KILN_LOG_INFO, KILN_LOG_LOGFMT);
    for (int i = 0; i < 4; i++)
        CHECK_OK(pthread_create(&threads[i], NULL, chatter, w.log));
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (const char *at = end(&w); *at; at += strlen(line), lines++)
        CHECK(strncmp(at, line, strlen(line)) == 0);
    CHECK_EQ(lines, 200);
}
