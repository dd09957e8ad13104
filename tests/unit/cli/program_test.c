/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/environment.h"
#include "cli/program.h"
#include "folder.h"
#include "test.h"

static void write_script(const char *folder, const char *name, const char *text, char *ret_path)
{
    FILE *file;

    snprintf(ret_path, PATH_MAX, "%s/%s", folder, name);
    file = fopen(ret_path, "w");
    CHECK(file != NULL);
    fputs(text, file);
    fclose(file);
    CHECK_OK(chmod(ret_path, 0755));
}

static struct kiln_program look(const char *command)
{
    struct kiln_program program = {0};
    struct kiln_err err = {0};

    CHECK_OK(kiln_program_look(command, &program, &err));
    return program;
}

TEST(program, a_command_is_found_in_path_and_has_no_bar)
{
    struct kiln_program program = look("sh");

    CHECK_EQ(program.bar, KILN_BAR_NONE);
    CHECK_EQ(program.kind, KILN_PROGRAM_SHELL);
    CHECK(program.path[0] == '/');
}

TEST(program, what_is_not_there_is_an_error_that_names_it)
{
    struct kiln_program program;
    struct kiln_err err = {0};

    CHECK_EQ(kiln_program_look("/nowhere/program", &program, &err), -EINVAL);
    CHECK_STR(kiln_str_of(err.where), "/nowhere/program");
    CHECK_EQ(kiln_program_look("", &program, &err), -EINVAL);
}

TEST(program, a_script_is_what_its_first_line_runs)
{
    static const char *const lines[] = {"#!/bin/sh\n",
                                        "#! /bin/sh -e\nexit\n",
                                        "#!/usr/bin/env sh\n",
                                        "#!/usr/bin/env -S A=b sh -x\nexit\n",
                                        "exit 0\n",
                                        ""};
    char folder[FOLDER_NAME], path[PATH_MAX];

    folder_make(folder);
    for (size_t i = 0; i < KILN_ARRAY_LEN(lines); i++) {
        write_script(folder, "script", lines[i], path);
        CHECK_EQ(look(path).kind, KILN_PROGRAM_SHELL);
    }
    folder_remove(folder);
}

TEST(program, a_script_that_runs_itself_ends)
{
    char folder[FOLDER_NAME], path[PATH_MAX], line[PATH_MAX + 8];

    folder_make(folder);
    snprintf(line, sizeof(line), "#!%s/script\n", folder);
    write_script(folder, "script", line, path);
    CHECK_EQ(look(path).bar, KILN_BAR_NONE);
    folder_remove(folder);
}

TEST(program, interpreters_are_known_by_the_name_that_links_lead_to)
{
    char folder[FOLDER_NAME], path[PATH_MAX], link[PATH_MAX];

    folder_make(folder);
    write_script(folder, "python3.99", "\177ELF", path);
    snprintf(link, sizeof(link), "%s/tool", folder);
    CHECK_OK(symlink(path, link));
    CHECK_EQ(look(link).kind, KILN_PROGRAM_PYTHON);
    write_script(folder, "node", "\177ELF", path);
    CHECK_EQ(look(path).kind, KILN_PROGRAM_NODE);
    folder_remove(folder);
}

TEST(program, more_rights_than_the_user_has_are_a_bar)
{
    char folder[FOLDER_NAME], path[PATH_MAX];
    struct kiln_buf program;

    if (getuid() != 0)
        skip();
    folder_make(folder);
    snprintf(path, sizeof(path), "%s/true", folder);
    kiln_buf_init(&program, 1 << 20);
    CHECK_OK(kiln_file_read("/bin/true", &program, NULL));
    CHECK_OK(kiln_file_write(path, kiln_buf_str(&program), NULL));
    kiln_buf_done(&program);
    CHECK_OK(chown(path, 65534, 65534));
    CHECK_OK(chmod(path, 04755));
    CHECK_EQ(look(path).bar, KILN_BAR_SECURE);
    CHECK_OK(chmod(path, 0755));
    CHECK_EQ(look(path).bar, KILN_BAR_NONE);
    folder_remove(folder);
}

TEST(program, each_bar_says_what_to_do)
{
    for (uint32_t bar = KILN_BAR_GO; bar <= KILN_BAR_SECURE; bar++)
        CHECK(strstr(kiln_program_why(bar), "kiln record"));
    CHECK(kiln_program_why(KILN_BAR_NONE) == NULL);
}

TEST(environment, changes_are_of_the_copy_alone)
{
    struct kiln_environment env;

    CHECK_OK(setenv("KILN_TEST_A", "1", 1));
    kiln_environment_init(&env);
    kiln_environment_put_before(&env, "KILN_TEST_A", "0", ':');
    CHECK_STR(kiln_str_of(kiln_environment_get(&env, "KILN_TEST_A")), "0:1");
    kiln_environment_set_u64(&env, "KILN_TEST_B", 7);
    CHECK_STR(kiln_str_of(kiln_environment_get(&env, "KILN_TEST_B")), "7");
    kiln_environment_put_before(&env, "KILN_TEST_C", "x", ' ');
    CHECK_STR(kiln_str_of(kiln_environment_get(&env, "KILN_TEST_C")), "x");
    kiln_environment_set(&env, "KILN_TEST_A", NULL);
    CHECK(kiln_environment_get(&env, "KILN_TEST_A") == NULL);
    CHECK(env.items[env.n] == NULL);
    CHECK_EQ(env.error, 0);
    CHECK_STR(kiln_str_of(getenv("KILN_TEST_A")), "1");
    kiln_environment_done(&env);
}
