/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "api/kept.h"
#include "base/buf.h"
#include "base/mem.h"
#include "sim_io.h"
#include "test.h"

#define SHOP KILN_STR("shop")

static struct kiln_io *io;
static struct kiln_kept *kept;
static struct kiln_err err;

static void open_again(void)
{
    kiln_kept_close(kept);
    CHECK_OK(kiln_kept_open(io, &kept, NULL));
    err = (struct kiln_err){0};
}

static void start(void)
{
    io = kiln_sim_new();
    kept = NULL;
    open_again();
}

static void stop(void)
{
    kiln_kept_close(kept);
    kept = NULL;
    kiln_sim_free(io);
}

static int set_at(const char *name, const char *text, uint64_t modified_ns)
{
    struct kiln_kept_item item = {kiln_str_of(name), kiln_str_of(text), modified_ns};

    err = (struct kiln_err){0};
    return kiln_kept_set(kept, SHOP, "settings", &item, &err);
}

static int set(const char *name, const char *text)
{
    return set_at(name, text, 5);
}

static int forget(const char *name)
{
    err = (struct kiln_err){0};
    return kiln_kept_delete(kept, SHOP, "settings", kiln_str_of(name), &err);
}

static int list_one(void *context, const struct kiln_kept_item *item)
{
    struct kiln_buf *out = context;

    kiln_buf_printf(out, "%.*s=%.*s ", KILN_STR_ARG(item->name), KILN_STR_ARG(item->text));
    return 0;
}

/* "a=1 b=2 ", or "error". */
static const char *all_of(struct kiln_str tenant, const char *kind)
{
    static char text[4096];
    struct kiln_buf out;
    int r;

    kiln_buf_init(&out, sizeof(text) - 1);
    err = (struct kiln_err){0};
    r = kiln_kept_each(kept, tenant, kind, list_one, &out, &err);
    snprintf(text, sizeof(text), "%.*s", KILN_STR_ARG(kiln_buf_str(&out)));
    kiln_buf_done(&out);
    return r < 0 ? "error" : text;
}

static const char *all(void)
{
    return all_of(SHOP, "settings");
}

TEST(kept, things_come_back_by_name_as_they_were_set)
{
    start();
    CHECK_TEXT(all(), "");
    CHECK_OK(set("b", "{\"x\":\"\\n\\u00e4\"}"));
    CHECK_OK(set("a", "1"));
    CHECK_OK(set("b \"\\\t", "\xc3\xa4\n"));
    open_again();
    CHECK_TEXT(all(), "a=1 b={\"x\":\"\\n\\u00e4\"} b \"\\\t=\xc3\xa4\n ");
    stop();
}

TEST(kept, tenants_and_kinds_are_apart)
{
    struct kiln_kept_item item = {KILN_STR("n"), KILN_STR("2"), 1};

    start();
    CHECK_OK(set("n", "1"));
    CHECK_OK(kiln_kept_set(kept, KILN_STR("other"), "settings", &item, NULL));
    item.text = KILN_STR("3");
    CHECK_OK(kiln_kept_set(kept, SHOP, "annotations", &item, NULL));
    CHECK_TEXT(all(), "n=1 ");
    CHECK_TEXT(all_of(KILN_STR("other"), "settings"), "n=2 ");
    CHECK_TEXT(all_of(SHOP, "annotations"), "n=3 ");
    stop();
}

TEST(kept, one_of_the_same_name_is_replaced_unless_it_is_later)
{
    start();
    CHECK_OK(set_at("n", "1", 10));
    CHECK_OK(set_at("n", "2", 10));
    CHECK_OK(set_at("n", "3", 11));
    CHECK_EQ(set_at("n", "4", 10), -EEXIST);
    CHECK_TEXT(all(), "n=3 ");
    stop();
}

TEST(kept, what_is_deleted_is_gone_and_deleting_says_whether_it_was_there)
{
    start();
    CHECK_EQ(forget("n"), 0);
    CHECK_OK(set("n", "1"));
    CHECK_OK(set("o", "2"));
    CHECK_EQ(forget("n"), 1);
    CHECK_EQ(forget("n"), 0);
    open_again();
    CHECK_TEXT(all(), "o=2 ");
    stop();
}

TEST(kept, names_that_could_leave_the_folder_are_refused)
{
    struct kiln_kept_item item = {KILN_STR("n"), KILN_STR("1"), 1};

    start();
    CHECK_EQ(kiln_kept_set(kept, KILN_STR(".."), "settings", &item, NULL), -EINVAL);
    CHECK_EQ(kiln_kept_set(kept, KILN_STR("a/b"), "settings", &item, NULL), -EINVAL);
    CHECK_EQ(kiln_kept_set(kept, KILN_STR(""), "settings", &item, NULL), -EINVAL);
    CHECK_EQ(kiln_kept_set(kept, KILN_STR("a|b"), "settings", &item, NULL), -EINVAL);
    CHECK_EQ(kiln_kept_set(kept, SHOP, "../x", &item, NULL), -EINVAL);
    CHECK_EQ(kiln_kept_set(kept, SHOP, "", &item, NULL), -EINVAL);
    stop();
}

TEST(kept, texts_names_and_numbers_have_limits)
{
    char *much = calloc(1, KILN_KEPT_TEXT_MAX + 2);

    CHECK(much != NULL);
    memset(much, 'x', KILN_KEPT_TEXT_MAX + 1);
    start();
    CHECK_EQ(set("n", much), KILN_E_LIMIT);
    CHECK_TEXT(err.where, "text");
    CHECK_EQ(set("", "1"), KILN_E_LIMIT);
    CHECK_EQ(set("\xff", "1"), KILN_E_LIMIT);
    CHECK_EQ(set("n", "\xff"), KILN_E_LIMIT);
    much[KILN_KEPT_TEXT_MAX] = '\0';
    for (int i = 0; i < 3; i++) {
        char name[16];

        snprintf(name, sizeof(name), "%d", i);
        CHECK_OK(set(name, much));
    }
    CHECK_EQ(set("one too many", much), KILN_E_LIMIT);
    CHECK_EQ(forget("one too many"), 0);
    CHECK_EQ(forget("2"), 1);
    stop();
    free(much);
}

static void put_raw(const char *text)
{
    CHECK_OK(io->mkdir(io, "kept"));
    CHECK_OK(io->mkdir(io, "kept/shop"));
    CHECK_OK(kiln_io_put(io, "kept/shop/settings.json", text, strlen(text)));
}

TEST(kept, a_damaged_file_is_an_error_and_is_never_replaced)
{
    static const char *const damaged[] = {
        "",
        "{",
        "[]",
        "{\"items\":[{\"name\":\"b\"},{\"name\":\"a\"}]}",
        "{\"items\":[{\"name\":\"a\"},{\"name\":\"a\"}]}",
        "{\"items\":[{\"name\":5}]}",
        "{\"items\":[{\"modified_ns\":\"x\"}]}",
        "{\"items\":[]} {}",
    };

    start();
    for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++) {
        put_raw(damaged[i]);
        CHECK_TEXT(all(), "error");
        CHECK(strstr(err.where, "kept/shop/settings.json") != NULL);
        CHECK(set("n", "1") < 0);
        CHECK(forget("a") < 0);
    }
    put_raw("{\"later\":[1],\"items\":[{\"name\":\"a\",\"text\":\"1\",\"more\":{}}]}");
    CHECK_TEXT(all(), "a=1 ");
    stop();
}

/* After a power cut in any operation: what was acknowledged is there, and the file is whole. */
TEST(kept, what_was_acknowledged_survives_a_power_cut_anywhere)
{
    for (uint64_t seed = 1; seed < 200; seed++) {
        char was[64] = "", may[64];
        uint64_t random = seed;

        start();
        kiln_sim_cut_at(io, 1 + kiln_sim_random(&random) % 60);
        for (int i = 0; !kiln_sim_is_dead(io); i++) {
            char value[16];

            snprintf(value, sizeof(value), "%d", i);
            snprintf(may, sizeof(may), "n=%s ", value);
            if (set("n", value) == 0)
                memcpy(was, may, sizeof(was));
        }
        kiln_sim_cut(io, kiln_sim_random(&random));
        open_again();
        if (strcmp(all(), may) != 0)
            CHECK_TEXT(all(), was);
        CHECK_OK(set("n", "after"));
        CHECK_TEXT(all(), "n=after ");
        stop();
    }
}

TEST(kept, each_failing_call_is_told_and_leaves_the_old_or_the_new)
{
    for (uint64_t n = 1;; n++) {
        const char *now;
        int r;

        start();
        CHECK_OK(set("n", "old"));
        kiln_sim_fail_at(io, n, -EIO);
        r = set("n", "new");
        if (kiln_sim_last_failure(io)[0] == '\0') {
            CHECK_OK(r);
            CHECK(n > 5);
            stop();
            return;
        }
        kiln_sim_fail_at(io, 0, 0);
        now = all();
        CHECK(strcmp(now, "n=old ") == 0 || strcmp(now, "n=new ") == 0);
        if (r == 0)
            CHECK_TEXT(now, "n=new ");
        stop();
    }
}

TEST(kept, a_full_disk_leaves_what_was_there)
{
    start();
    CHECK_OK(set("n", "old"));
    kiln_sim_limit(io, kiln_sim_used(io) + 10);
    CHECK_EQ(set("n", "a longer text than there is room for"), -ENOSPC);
    CHECK(err.text[0] != '\0');
    CHECK_TEXT(all(), "n=old ");
    kiln_sim_limit(io, UINT64_MAX);
    CHECK_OK(set("n", "new"));
    CHECK_TEXT(all(), "n=new ");
    stop();
}

TEST(kept, out_of_memory_is_an_error_that_loses_nothing)
{
    start();
    CHECK_OK(set("a", "1"));
    for (uint64_t n = 1;; n++) {
        int64_t live = kiln_mem_live();
        bool failed;
        int r;

        kiln_mem_fail_at(n);
        r = set("b", "2");
        failed = kiln_mem_failed();
        kiln_mem_fail_at(0);
        CHECK_EQ(kiln_mem_live(), live);
        if (!failed) {
            CHECK_OK(r);
            break;
        }
        CHECK(r < 0);
        CHECK_TEXT(all(), "a=1 ");
    }
    CHECK_TEXT(all(), "a=1 b=2 ");
    stop();
}
