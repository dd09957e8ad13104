/* SPDX-License-Identifier: Apache-2.0 */
/* What agents say of themselves, and who of them is known. */
#include <errno.h>
#include <stdio.h>

#include "fleet/roster.h"
#include "test.h"

#define NOW (UINT64_C(1772366400) * KILN_NS_PER_S)
#define DAY (86400 * KILN_NS_PER_S)

static struct kiln_agent_status status_of(const char *id)
{
    struct kiln_agent_status status = {.host = "web-1",
                                       .version = "0.1.0",
                                       .kernel = "6.1.0",
                                       .state = KILN_AGENT_PAUSED,
                                       .started_ns = NOW - DAY,
                                       .last_seen_ns = NOW,
                                       .hz = 19,
                                       .samples = 1000,
                                       .processes = 12,
                                       .samples_per_s = 38.5,
                                       .drops = {{"lost", 5}},
                                       .n_drops = 1,
                                       .missed = {{"paused", 7000}},
                                       .n_missed = 1,
                                       .ends = {{"complete", 900}, {"jit", 95}},
                                       .n_ends = 2,
                                       .complete = 900,
                                       .all = 1000,
                                       .cpu_cores = 0.0125,
                                       .memory_bytes = 1 << 20,
                                       .orders = {"a1", "b2"},
                                       .n_orders = 2};

    snprintf(status.id, sizeof(status.id), "%s", id);
    return status;
}

static int read_text(const char *text, struct kiln_agent_status *status, struct kiln_err *err)
{
    struct kiln_json r;
    int code;

    kiln_json_init(&r, kiln_str_of(text), err);
    code = kiln_agent_status_read(&r, status);
    kiln_json_done(&r);
    return code;
}

TEST(status, what_is_written_is_read_again)
{
    struct kiln_agent_status status = status_of("0123abcd"), again;
    struct kiln_json_out w;
    struct kiln_buf text;

    kiln_buf_init(&text, 1 << 16);
    kiln_json_out_init(&w, &text, 0);
    kiln_agent_status_put(&w, &status);
    kiln_buf_putc(&text, '\0');
    CHECK_OK(read_text(text.ptr, &again, NULL));
    CHECK_EQ(memcmp(&status, &again, sizeof(status)), 0);
    kiln_buf_done(&text);
}

TEST(status, a_stranger_cannot_say_too_much)
{
    static const char *const texts[] = {
        "[]",
        "{\"hz\":100000}",
        "{\"hz\":-1}",
        "{\"cpu_cores\":-0.5}",
        "{\"samples\":18446744073709551616}",
        "{\"unwind\":{\"complete\":2,\"all\":1}}",
        "{\"started\":\"never\"}",
        "{\"version\":\"0123456789012345678901234567890123456789\"}",
        "{\"drops\":[{\"reason\":\"a reason that is much longer than any that there is\"}]}",
        "{\"orders\":[1]}",
    };
    struct kiln_agent_status status;

    for (uint32_t i = 0; i < KILN_ARRAY_LEN(texts); i++) {
        struct kiln_err err = {0};

        CHECK(read_text(texts[i], &status, &err) < 0);
        CHECK(err.text[0]);
    }
}

TEST(status, members_of_a_later_version_are_passed_over)
{
    struct kiln_agent_status status;
    struct kiln_buf many;

    CHECK_OK(read_text("{\"id\":\"x\",\"mood\":[1,{\"a\":null}],\"hz\":19}", &status, NULL));
    CHECK_TEXT(status.id, "x");
    CHECK_EQ(status.hz, 19);
    CHECK_OK(read_text("{\"state\":\"dreaming\"}", &status, NULL));
    CHECK_EQ(status.state, KILN_AGENT_RUNNING);
    kiln_buf_init(&many, 1 << 16);
    kiln_buf_puts(&many, "{\"drops\":[");
    for (int i = 0; i <= KILN_AGENT_DROPS; i++)
        kiln_buf_printf(&many, "%s{\"reason\":\"r%d\",\"count\":1}", i ? "," : "", i);
    kiln_buf_puts(&many, "]}");
    kiln_buf_putc(&many, '\0');
    CHECK_OK(read_text(many.ptr, &status, NULL));
    CHECK_EQ(status.n_drops, KILN_AGENT_DROPS);
    kiln_buf_done(&many);
}

TEST(status, what_was_lost_is_a_share_of_all_that_there_was)
{
    struct kiln_agent_status status = {.samples = 1000};
    uint64_t lost, all;

    kiln_agent_add_count(status.drops, &status.n_drops, KILN_AGENT_DROPS, "lost", 100);
    kiln_agent_add_count(status.drops, &status.n_drops, KILN_AGENT_DROPS, "spool_full", 900);
    kiln_agent_add_count(status.missed, &status.n_missed, KILN_AGENT_MISSED, "paused", 5000);
    kiln_agent_loss(&status, &lost, &all);
    CHECK_EQ(lost, 1000);
    CHECK_EQ(all, 1100); /* what was spooled had been sampled */
    status.samples = 10; /* the run before spooled them */
    kiln_agent_loss(&status, &lost, &all);
    CHECK_EQ(all, lost);
}

TEST(status, states_have_words)
{
    struct kiln_agent_status status;
    char text[64];

    for (int i = 0; i <= KILN_AGENT_STOPPED; i++) {
        snprintf(text, sizeof(text), "{\"state\":\"%s\"}",
                 kiln_agent_state_word((enum kiln_agent_state)i));
        CHECK_OK(read_text(text, &status, NULL));
        CHECK_EQ((int)status.state, i);
    }
}

/* ---- roster ---- */

static void append(void *context, const struct kiln_agent_status *status)
{
    struct kiln_buf *text = context;

    kiln_buf_printf(text, "%s/%s ", status->tenant, status->id);
}

static const char *names(struct kiln_roster *roster)
{
    static char room[1024];
    struct kiln_buf text;

    kiln_buf_init(&text, sizeof(room));
    kiln_roster_each(roster, append, &text);
    snprintf(room, sizeof(room), "%.*s", (int)text.len, text.len ? text.ptr : "");
    kiln_buf_done(&text);
    return room;
}

static void report(struct kiln_roster *roster, const char *tenant, const char *id, uint64_t at_ns)
{
    struct kiln_agent_status status = status_of(id);

    CHECK_OK(kiln_roster_report(roster, tenant, &status, at_ns));
}

TEST(roster, knows_agents_by_tenant_and_id)
{
    struct kiln_roster *roster;
    char host[256];

    CHECK_OK(kiln_roster_new(&roster));
    CHECK_EQ(kiln_roster_touch(roster, "a", "1", NOW, host), -ENOENT);
    report(roster, "b", "1", NOW);
    report(roster, "a", "2", NOW);
    report(roster, "a", "1", NOW);
    report(roster, "a", "2", NOW + 1);
    CHECK_TEXT(names(roster), "a/1 a/2 b/1 ");
    CHECK_OK(kiln_roster_touch(roster, "a", "1", NOW, host));
    CHECK_TEXT(host, "web-1");
    kiln_roster_free(roster);
}

TEST(roster, forgets_who_is_silent_for_a_day)
{
    struct kiln_roster *roster;
    char host[256];

    CHECK_OK(kiln_roster_new(&roster));
    report(roster, "a", "1", NOW);
    report(roster, "a", "2", NOW);
    CHECK_OK(kiln_roster_touch(roster, "a", "2", NOW + DAY, host));
    CHECK_EQ(kiln_roster_sweep(roster, NOW + DAY), 2);
    CHECK_EQ(kiln_roster_sweep(roster, NOW + DAY + 1), 1);
    CHECK_TEXT(names(roster), "a/2 ");
    kiln_roster_free(roster);
}

TEST(roster, has_room_for_so_many_and_the_silent_make_room)
{
    struct kiln_agent_status status = status_of("late");
    struct kiln_roster *roster;
    char id[16], host[256];

    CHECK_OK(kiln_roster_new(&roster));
    for (int i = 0; i < KILN_ROSTER_MAX; i++) {
        snprintf(id, sizeof(id), "%d", i);
        report(roster, "a", id, i == 77 ? NOW : NOW + 1);
    }
    CHECK_EQ(kiln_roster_report(roster, "a", &status, NOW + 2), KILN_E_LIMIT);
    CHECK_OK(kiln_roster_report(roster, "b", &status, NOW + 2)); /* nobody locks another out */
    CHECK_EQ(kiln_roster_touch(roster, "a", "77", NOW, host), -ENOENT);
    CHECK_OK(kiln_roster_touch(roster, "b", "late", NOW, host));
    CHECK_OK(kiln_roster_report(roster, "a", &status, NOW + 60 * KILN_NS_PER_S));
    CHECK_OK(kiln_roster_touch(roster, "a", "late", NOW, host));
    kiln_roster_free(roster);
}
