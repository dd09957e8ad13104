/* SPDX-License-Identifier: Apache-2.0 */
/* Which lines of a function cost what, and their text: GET /api/v1/source. */
#include <stdio.h>
#include <stdlib.h>

#include "api/native_int.h"
#include "api/sources.h"
#include "api_kit.h"
#include "folder.h"
#include "test.h"

#define MINUTE API_KIT_MINUTE
#define PARSE  "/api/v1/source?query=process_cpu:cpu:nanoseconds&function=parse"

static struct api_kit kit;
static char folder[FOLDER_NAME];
static struct kiln_sources *sources;

/* Some of it in a block, some not yet. */
static void start(void)
{
    api_kit_init(&kit, 0, kiln_api_add_native);
    api_kit_put_cpu(&kit,
                    "main;parse@/build/json.go:42;read 300\nmain;parse@/build/json.go:42 500\n"
                    "main;write 200\n",
                    50 * MINUTE, "service.name=shop", 1);
    CHECK_OK(kiln_store_flush(kit.store.engine, NULL));
    api_kit_put_cpu(&kit,
                    "main;parse@/build/json.go:45;parse@/build/json.go:42 7\n"
                    "main;parse@/build/xml.go:3 1\n",
                    10 * MINUTE, "service.name=shop", 2);
}

/* A file of so many lines, "line 1" and so on. */
static void give_text(int n_lines)
{
    const char *places[] = {folder};
    char path[128];
    FILE *file;

    folder_make(folder);
    snprintf(path, sizeof(path), "%s/json.go", folder);
    file = fopen(path, "w");
    CHECK(file != NULL);
    for (int i = 1; i <= n_lines; i++)
        fprintf(file, "line %d\r\n", i);
    fclose(file);
    CHECK_OK(kiln_sources_new(places, 1, &sources, NULL));
    kit.api.sources = sources;
}

static void stop(void)
{
    api_kit_done(&kit);
    if (sources)
        folder_remove(folder);
    kiln_sources_free(sources);
    sources = NULL;
}

static bool says(const char *text, const char *part)
{
    if (!strstr(text, part))
        printf("%s\nis not in\n%s\n", part, text);
    return strstr(text, part) != NULL;
}

TEST(native_source, lines_of_a_function_have_their_costs)
{
    const char *text;

    start();
    text = api_kit_get(&kit, PARSE);
    CHECK_EQ(api_kit_status(), 200);
    API_GOLDEN("native-source.json", text);
    stop();
}

TEST(native_source, the_text_around_them_comes_from_a_configured_directory)
{
    const char *text;

    start();
    give_text(60);
    text = api_kit_get(&kit, PARSE);
    CHECK(says(text, "\"text\":{\"origin\":\"directory\",\"path\":\"json.go\",\"first\":22,"
                     "\"lines\":[\"line 22\","));
    CHECK(says(text, "\"line 60\"]},\"text_problem\":null"));
    stop();
}

TEST(native_source, a_file_that_is_too_short_is_another_version)
{
    start();
    give_text(44);
    CHECK(says(api_kit_get(&kit, PARSE),
               "\"text\":null,\"text_problem\":\"/build/json.go has 44 lines, and the profile "
               "speaks of line 45: it is another version than the one that ran\""));
    stop();
}

TEST(native_source, a_line_may_have_the_last_number_there_is)
{
    start();
    give_text(44);
    api_kit_put_cpu(&kit,
                    "main;parse@/build/json.go:9223372036854775807 9\n"
                    "main;parse@/build/json.go:9223372036854775000 9000\n",
                    5 * MINUTE, "service.name=shop", 3);
    CHECK(says(api_kit_get(&kit, PARSE), "speaks of line 9223372036854775807: it is another"));
    stop();
}

TEST(native_source, functions_of_one_name_in_other_files_are_told)
{
    const char *text;

    start();
    give_text(60);
    text = api_kit_get(&kit, PARSE "&file=/build/xml.go");
    CHECK(says(text, "\"file\":\"/build/xml.go\""));
    CHECK(says(text, "\"all\":1008,\"lines\":[{\"line\":3,\"self\":1,\"total\":1,"
                     "\"self_share\":0.000992,"));
    CHECK(says(text, "}],\"other_files\":[\"/build/json.go\"]"));
    CHECK(says(text, "\"text_problem\":\"/build/xml.go: it is beneath none of the directories"));
    text = api_kit_get(&kit, PARSE "&file=none.go");
    CHECK(says(text, "\"file\":\"none.go\",\"module\":\"\",\"start_line\":null,\"self\":0,"
                     "\"total\":0,\"all\":1008,\"lines\":[],\"other_files\":[\"/build/json.go\",\"/"
                     "build/xml.go\"],"
                     "\"text\":null,\"text_problem\":\"no stack has the function of this file\""));
    stop();
}

TEST(native_source, what_is_not_known_is_said)
{
    start();
    CHECK(says(api_kit_get(&kit, PARSE "r"), "\"text_problem\":\"no stack has the function\""));
    CHECK(says(api_kit_get(&kit, "/api/v1/source?query=process_cpu:cpu:nanoseconds&function=main"),
               "the profiles do not say in which file the function is"));
    api_kit_get(&kit, "/api/v1/source?query=process_cpu:cpu:nanoseconds");
    CHECK_EQ(api_kit_status(), 400);
    CHECK(says(api_kit_get(&kit, PARSE "&function=main"), "function: say one, by its whole name"));
    stop();
}
