/* SPDX-License-Identifier: Apache-2.0 */
#include "store/book.h"

#include <stdlib.h>

#include "support/drawn.h"
#include "test.h"

#define FRAME(function, in, at)                                                                    \
    (const struct kiln_symbol_frame[])                                                             \
    {                                                                                              \
        {                                                                                          \
            .name = {function, sizeof(function) - 1}, .file = {in, sizeof(in) - 1}, .line = at     \
        }                                                                                          \
    }

static const struct kiln_symbol three[] = {
    {0x2000, 0x100, FRAME("parse", "json.c", 40), 1},
    {0x1000, 0, FRAME("main", "main.c", 7), 1},
    {0x3000, 0x10, FRAME("read", "json.c", -1), 1},
};

static const struct kiln_symbol_frame inlined[] = {
    {.name = {"get", 3}, .system_name = {"_get", 4}, .file = {"buf.h", 5}, .line = 3},
    {.name = {"skip", 4}, .file = {"json.c", 6}, .line = 12, .start_line = 10},
    {.name = {"parse", 5}, .file = {"json.c", 6}, .line = 41},
};
TEST(book, a_build_id_cannot_leave_its_folder)
{
    char path[KILN_SYMBOLS_PATH_MAX], much[600];

    CHECK_OK(kiln_symbols_path(KILN_STR("t"), KILN_STR("a/../b.c"), path, NULL));
    CHECK_TEXT(path, "symbols/t/a%2F..%2Fb.c");
    CHECK_OK(kiln_symbols_path(KILN_STR(".."), KILN_STR(".."), path, NULL));
    CHECK_TEXT(path, "symbols/%2E./%2E.");
    CHECK(kiln_symbols_path(KILN_STR("t"), KILN_STR(""), path, NULL) < 0);
    memset(much, '/', sizeof(much));
    CHECK(kiln_symbols_path(KILN_STR("t"), (struct kiln_str){much, 100}, path, NULL) < 0);
    CHECK(kiln_symbols_path(KILN_STR("t"), (struct kiln_str){much, 600}, path, NULL) < 0);
}

/* ---- files and batches ---- */

static char folder[] = "/tmp/kiln-symbols-XXXXXX";

static struct kiln_io *io;
static _Atomic uint64_t ages;

static struct kiln_book *open_book(void)
{
    struct kiln_book *book = NULL;

    CHECK_OK(kiln_book_new(
        &(struct kiln_book_opts){.io = io, .tenant = KILN_STR("t"), .ages = &ages}, &book));
    return book;
}

static struct kiln_book *open_folder(void)
{
    memcpy(folder + sizeof(folder) - 7, "XXXXXX", 6);
    CHECK(mkdtemp(folder) != NULL);
    CHECK_OK(kiln_io_open(folder, false, &io));
    return open_book();
}

static void close_folder(struct kiln_book *book)
{
    char command[64];

    kiln_book_free(book);
    kiln_io_close(io);
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    CHECK_EQ((system)(command), 0);
}

/* Two nameless frames of one mapping below a named one, and one of a mapping without a build id.
 * The innermost has a function that is made up. */
static struct kiln_batch *nameless(const char *key, const char *build_id)
{
    struct kiln_builder *b;
    struct kiln_batch *batch;
    struct kiln_mapping known = {.start = 0x400000, .limit = 0x500000, .offset = 0x1000};
    struct kiln_mapping other = {.start = 0x700000, .limit = 0x800000};
    struct kiln_profile profile = {.time_ns = 1};
    struct kiln_function function = {0};
    struct kiln_line line = {0}, made_up = {0};
    uint32_t attr, frames[4], p;

    CHECK_OK(kiln_builder_new(NULL, &b));
    attr = kiln_builder_text_attr(b, kiln_str_of(key), kiln_str_of(build_id));
    known.attrs = kiln_builder_set(b, &attr, 1, NULL);
    known.filename = kiln_builder_string(b, KILN_STR("/bin/app"));
    other.filename = kiln_builder_string(b, KILN_STR("/lib/other.so"));
    function.name = kiln_builder_string(b, KILN_STR("start"));
    line.function = kiln_builder_function(b, &function);
    function.name = kiln_builder_string(b, KILN_STR("app+0x3000"));
    made_up.function = kiln_builder_function(b, &function);
    frames[0] = kiln_builder_location(
        b, &(struct kiln_location){.address = 0x402008, .mapping = kiln_builder_mapping(b, &known)},
        &made_up, 1);
    frames[1] = kiln_builder_location(
        b, &(struct kiln_location){.address = 0x401004, .mapping = kiln_builder_mapping(b, &known)},
        NULL, 0);
    frames[2] = kiln_builder_location(
        b, &(struct kiln_location){.address = 0x702008, .mapping = kiln_builder_mapping(b, &other)},
        NULL, 0);
    frames[3] = kiln_builder_location(b, &(struct kiln_location){0}, &line, 1);
    kiln_builder_add_resource(b, &(struct kiln_resource){0});
    kiln_builder_add_scope(b, &(struct kiln_scope){0});
    p = kiln_builder_add_profile(b, &profile);
    kiln_builder_add_value(b, p, kiln_builder_stack(b, frames, 4), 0, 5);
    CHECK_OK(kiln_builder_finish(b, &batch, NULL));
    return batch;
}

static const char *named_text(struct kiln_book *book, struct kiln_batch *batch)
{
    struct kiln_view_opts opts = {0};
    struct kiln_view *view;
    static char text[256];

    CHECK_OK(kiln_book_apply(book, 1 << 24, &batch, NULL));
    view = kiln_test_view(batch, &opts);
    snprintf(text, sizeof(text), "%s", kiln_test_view_text(view));
    kiln_view_free(view);
    return text;
}

TEST(book, names_come_late)
{
    struct kiln_book *book = open_folder();
    const char *key = "process.executable.build_id.gnu";
    const char *before = "start;other.so+0x2008;app+0x2004;app+0x3000 5\n";

    CHECK_TEXT(named_text(book, nameless(key, "id1")), before);
    CHECK_OK(kiln_book_put(book, KILN_STR("id2"), three, 3, NULL));
    CHECK_TEXT(named_text(book, nameless(key, "id1")), before);
    CHECK_OK(kiln_book_put(book, KILN_STR("id1"), three + 1, 1, NULL));
    CHECK_TEXT(named_text(book, nameless("process.executable.build_id.go", "id1")),
               "start;other.so+0x2008;main;main 5\n");
    CHECK_OK(kiln_book_put(book, KILN_STR("id1"), three, 3, NULL));
    CHECK_TEXT(named_text(book, nameless(key, "id1")), "start;other.so+0x2008;parse;read 5\n");
    CHECK_TEXT(named_text(book, nameless("process.executable.name", "id1")), before);
    kiln_book_free(book);
    book = open_book(); /* they are on disk */
    CHECK_TEXT(named_text(book, nameless(key, "id1")), "start;other.so+0x2008;parse;read 5\n");
    CHECK_OK(kiln_book_drop(book, KILN_STR("id1"), NULL));
    CHECK_OK(kiln_book_drop(book, KILN_STR("id3"), NULL));
    CHECK_TEXT(named_text(book, nameless(key, "id1")), before);
    CHECK_EQ(kiln_book_count(book), 1);
    kiln_book_free(book);
    book = open_book();
    CHECK_TEXT(named_text(book, nameless(key, "id1")), before);
    CHECK_EQ(kiln_book_count(book), 1);
    close_folder(book);
}

TEST(book, a_location_becomes_what_was_inlined_there)
{
    struct kiln_symbol two[] = {{0x2004, 1, inlined, 3}, {0x3008, 1, FRAME("_start", "", 0), 1}};
    const char *key = "process.executable.build_id.gnu";
    struct kiln_book *book = open_folder();

    CHECK_OK(kiln_book_put(book, KILN_STR("id1"), two, 2, NULL));
    CHECK_TEXT(named_text(book, nameless(key, "id1")),
               "start;other.so+0x2008;parse;skip;get;_start 5\n");
    close_folder(book);
}

TEST(book, that_there_is_nothing_leaves_a_location_as_it_is)
{
    struct kiln_symbol none = {0x2004, 1, NULL, 0};
    const char *key = "process.executable.build_id.gnu";
    struct kiln_book *book = open_folder();

    CHECK_OK(kiln_book_put(book, KILN_STR("id1"), &none, 1, NULL));
    CHECK_TEXT(named_text(book, nameless(key, "id1")),
               "start;other.so+0x2008;app+0x2004;app+0x3000 5\n");
    close_folder(book);
}

TEST(book, a_damaged_file_is_passed_over_and_made_anew)
{
    struct kiln_book *book = open_folder();
    const char *key = "process.executable.build_id.htlhash";

    CHECK_OK(kiln_book_put(book, KILN_STR("id1"), three, 3, NULL));
    CHECK_OK(kiln_io_put(io, "symbols/t/id1", "rubbish", 7));
    CHECK_TEXT(named_text(book, nameless(key, "id1")),
               "start;other.so+0x2008;app+0x2004;app+0x3000 5\n");
    CHECK_OK(kiln_book_put(book, KILN_STR("id1"), three + 1, 1, NULL));
    CHECK_TEXT(named_text(book, nameless(key, "id1")), "start;other.so+0x2008;main;main 5\n");
    close_folder(book);
}

TEST(book, any_build_id_is_found_again)
{
    static const char *const ids[] = {"a/../b.c", "..", "x.tmp", "%41", "\xff\x01"};
    struct kiln_book *book = open_folder();

    for (size_t i = 0; i < KILN_ARRAY_LEN(ids); i++)
        CHECK_OK(kiln_book_put(book, kiln_str_of(ids[i]), three, 3, NULL));
    CHECK_OK(kiln_io_put(io, "symbols/t/y", "", 0));
    CHECK_OK(io->rename(io, "symbols/t/y", "symbols/t/x.tmp")); /* as a crash leaves it */
    kiln_book_free(book);
    book = open_book();
    CHECK_EQ(kiln_book_count(book), KILN_ARRAY_LEN(ids));
    for (size_t i = 0; i < KILN_ARRAY_LEN(ids); i++) {
        struct kiln_symbols *symbols = NULL;

        CHECK_EQ(kiln_book_get(book, kiln_str_of(ids[i]), &symbols), 1);
        CHECK_STR(kiln_symbols_build_id(symbols), ids[i]);
        kiln_symbols_unref(symbols);
    }
    close_folder(book);
}
