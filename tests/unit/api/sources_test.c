/* SPDX-License-Identifier: Apache-2.0 */
#include "api/sources.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "folder.h"
#include "test.h"

static char folder[FOLDER_NAME];

static const char *in(const char *name)
{
    static char path[4][256];
    static int at;

    at = (at + 1) % 4;
    snprintf(path[at], sizeof(path[at]), "%s/%s", folder, name);
    return path[at];
}

static void write_file(const char *name, const char *text, size_t len)
{
    FILE *file = fopen(in(name), "w");

    CHECK(file != NULL);
    CHECK_EQ(fwrite(text, 1, len, file), len);
    fclose(file);
}

#define WRITE(name, text) write_file(name, text, sizeof(text) - 1)

static void start(void)
{
    folder_make(folder);
    CHECK_OK(mkdir(in("app"), 0700));
    CHECK_OK(mkdir(in("app/json"), 0700));
    CHECK_OK(mkdir(in("other"), 0700));
    CHECK_OK(mkdir(in("app/.git"), 0700));
    WRITE("app/json/parse.c", "parse");
    WRITE("app/parse.c", "another parse");
    WRITE("app/main.c", "main");
    WRITE("other/main.c", "other main");
    WRITE("app/.git/config", "secret");
    WRITE("app/.env", "secret");
    WRITE("app/program", "a\0b");
    WRITE("outside.c", "outside");
    CHECK_OK(symlink("../outside.c", in("app/link.c")));
    CHECK_OK(symlink("..", in("app/up")));
    CHECK_OK(mkfifo(in("app/pipe.c"), 0600));
}

/* "PATH: TEXT" of what is found, or why it is not. */
static const char *look(const char *place, const char *file)
{
    static char answer[KILN_SOURCE_PATH_MAX + 512];
    const char *places[] = {place};
    struct kiln_sources *sources;
    char path[KILN_SOURCE_PATH_MAX];
    struct kiln_err err = {0};
    struct kiln_buf text;

    CHECK_OK(kiln_sources_new(places, 1, &sources, NULL));
    kiln_buf_init(&text, 2 * KILN_SOURCE_BYTES_MAX);
    if (kiln_sources_read(sources, kiln_str_of(file), &text, path, &err) < 0)
        snprintf(answer, sizeof(answer), "%s", err.text);
    else
        snprintf(answer, sizeof(answer), "%s: %.*s", path, KILN_STR_ARG(kiln_buf_str(&text)));
    kiln_buf_done(&text);
    kiln_sources_free(sources);
    return answer;
}

static bool begins(const char *text, const char *with)
{
    if (strncmp(text, with, strlen(with)) != 0)
        printf("%s\ndoes not begin with\n%s\n", text, with);
    return strncmp(text, with, strlen(with)) == 0;
}

TEST(sources, the_longest_end_of_a_path_that_is_there_counts)
{
    start();
    CHECK_TEXT(look(in("app"), "/home/ci/build/json/parse.c"), "json/parse.c: parse");
    CHECK_TEXT(look(in("app"), "example.com/shop/parse.c"), "parse.c: another parse");
    CHECK_TEXT(look(in("app"), "main.c"), "main.c: main");
    CHECK_TEXT(look(in("app"), "C:\\build\\json\\parse.c"), "json/parse.c: parse");
    CHECK_TEXT(look(in("app"), "/build/json/../main.c"), "main.c: main");
    CHECK_TEXT(look(in("app"), "/home/ci/.cargo/registry/json/parse.c"), "json/parse.c: parse");
    CHECK(begins(look(in("app"), "/build/none.c"), "it is beneath none of the directories"));
    folder_remove(folder);
}

TEST(sources, the_directory_itself_is_a_prefix)
{
    start();
    CHECK_OK(mkdir(in("app/app"), 0700));
    WRITE("app/app/main.c", "nested");
    CHECK_TEXT(look(in("app"), in("app/main.c")), "main.c: main");
    CHECK_TEXT(look(in("app"), "/build/app/main.c"), "app/main.c: nested");
    folder_remove(folder);
}

TEST(sources, a_prefix_says_where_the_rest_is)
{
    char place[300];

    start();
    snprintf(place, sizeof(place), "/build/x=%s", in("app"));
    CHECK_TEXT(look(place, "/build/x/json/parse.c"), "json/parse.c: parse");
    CHECK_TEXT(look(place, "/build/x/./y/../main.c"), "main.c: main");
    CHECK(begins(look(place, "/build/xy/main.c"), "it is beneath none"));
    CHECK(begins(look(place, "/other/main.c"), "it is beneath none"));
    CHECK(begins(look(place, "/build/x/../../../main.c"), "it is beneath none"));
    CHECK(begins(look(place, "/build/x"), "it is beneath none"));
    folder_remove(folder);
}

TEST(sources, places_with_a_prefix_come_first)
{
    char place[300];
    const char *places[] = {in("app"), place};
    struct kiln_sources *sources;
    char path[KILN_SOURCE_PATH_MAX];
    struct kiln_buf text;

    start();
    places[0] = in("app");
    snprintf(place, sizeof(place), "/build=%s", in("other"));
    CHECK_OK(kiln_sources_new(places, 2, &sources, NULL));
    kiln_buf_init(&text, 2 * KILN_SOURCE_BYTES_MAX);
    CHECK_OK(kiln_sources_read(sources, KILN_STR("/build/main.c"), &text, path, NULL));
    CHECK_STR(kiln_buf_str(&text), "other main");
    kiln_buf_clear(&text);
    CHECK_OK(kiln_sources_read(sources, KILN_STR("/build/json/parse.c"), &text, path, NULL));
    CHECK_STR(kiln_buf_str(&text), "parse");
    kiln_buf_done(&text);
    kiln_sources_free(sources);
    folder_remove(folder);
}

TEST(sources, nothing_hidden_linked_or_strange_is_read)
{
    start();
    CHECK_TEXT(look(in("app"), ".env"), "hidden files are not shown");
    CHECK(begins(look(in("app"), "x/.git/config"), "it is beneath none"));
    CHECK_TEXT(look(in("app"), "/../../../.env"), "hidden files are not shown");
    CHECK_TEXT(look(in("app"), "link.c"), "it is behind a symbolic link, which is not followed");
    CHECK_TEXT(look(in("app"), "up/outside.c"),
               "it is behind a symbolic link, which is not followed");
    CHECK(begins(look(in("app"), "../outside.c"), "it is beneath none"));
    CHECK(begins(look(in("app"), "pipe.c"), "it is beneath none"));
    CHECK(begins(look(in("app"), "json"), "it is beneath none"));
    CHECK_TEXT(look(in("app"), "program"), "it is no text");
    CHECK_TEXT(look(in("app"), "////"), "this cannot be the name of a file");
    CHECK_TEXT(look(in("app"), ".."), "this cannot be the name of a file");
    folder_remove(folder);
}

TEST(sources, a_file_of_more_than_4_MiB_is_refused_and_one_of_4_is_not)
{
    FILE *file;

    start();
    file = fopen(in("app/big.c"), "w");
    CHECK(file != NULL);
    for (int i = 0; i < KILN_SOURCE_BYTES_MAX / 4096; i++)
        fprintf(file, "%4095d\n", i);
    fflush(file);
    CHECK(begins(look(in("app"), "big.c"), "big.c:   "));
    fputc('x', file);
    fclose(file);
    CHECK_TEXT(look(in("app"), "big.c"), "it is larger than 4 MiB");
    folder_remove(folder);
}

TEST(sources, a_place_that_is_no_directory_is_named)
{
    static const char *const bad[] = {"/no/such/directory", "=/tmp", "/a=/no/such", "/dev/null"};

    for (size_t i = 0; i < KILN_ARRAY_LEN(bad); i++) {
        struct kiln_sources *sources;
        struct kiln_err err = {0};

        CHECK(kiln_sources_new(&bad[i], 1, &sources, &err) < 0);
        CHECK(err.where[0] != '\0');
    }
}

TEST(sources, names_without_end_are_refused)
{
    struct kiln_source_name name;
    char text[3 * 4096];

    memset(text, 'a', sizeof(text));
    CHECK_EQ(kiln_source_name_parse((struct kiln_str){text, 300}, &name), KILN_E_MALFORMED);
    for (size_t i = 0; i < sizeof(text); i += 200)
        text[i] = '/';
    CHECK_EQ(kiln_source_name_parse((struct kiln_str){text, sizeof(text)}, &name),
             KILN_E_MALFORMED);
    for (size_t i = 0; i < sizeof(text); i += 2)
        text[i] = '/';
    CHECK_EQ(kiln_source_name_parse((struct kiln_str){text, 2000}, &name), KILN_E_MALFORMED);
    CHECK_OK(kiln_source_name_parse((struct kiln_str){text, 500}, &name));
    CHECK_EQ(name.n, 250);
    CHECK_EQ(kiln_source_name_parse(KILN_STR("a\0b"), &name), KILN_E_MALFORMED);
}
