/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/receivers/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "folder.h"
#include "test.h"

/* A folder, patterns in it, and what was read of the files they name. */
struct kit {
    char folder[FOLDER_NAME];
    struct kiln_config *config;
    struct kiln_files files;
    struct kiln_buf got;
};

static void path_of(const struct kit *kit, const char *name, char path[256])
{
    snprintf(path, 256, "%s/%s", kit->folder, name);
}

static void put(const struct kit *kit, const char *name, const char *text)
{
    char path[256], *slash;
    FILE *file;

    path_of(kit, name, path);
    slash = strrchr(path, '/');
    *slash = '\0';
    CHECK_OK(kiln_file_make_folders(path, 0755));
    *slash = '/';
    file = fopen(path, "a");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* `%s` in the patterns is the folder. */
static void open_files(struct kit *kit, const char *include, const char *exclude,
                       const struct kit *before)
{
    char text[1024], in[256], out[256];
    const struct kiln_node *root;

    path_of(kit, include, in);
    path_of(kit, exclude, out);
    snprintf(text, sizeof(text), "include: ['%s']\nexclude: ['%s']\n", in, out);
    CHECK_OK(kiln_config_parse(kiln_str_of(text), &kit->config, NULL));
    root = kiln_config_root(kit->config);
    CHECK_OK(kiln_files_init(&kit->files,
                             &(struct kiln_files_opts){.include = kiln_node_get(root, "include"),
                                                       .exclude = kiln_node_get(root, "exclude"),
                                                       .holds = true},
                             before ? &before->files : NULL));
    kiln_buf_init(&kit->got, 1 << 16);
}

static void close_files(struct kit *kit)
{
    kiln_files_done(&kit->files);
    kiln_buf_done(&kit->got);
    kiln_config_free(kit->config);
}

/* Reads on, by whole lines. */
static bool visit(void *context, struct kiln_file *file, const char *path, int fd,
                  const struct stat *status)
{
    struct kit *kit = context;
    char text[256];
    ssize_t n = pread(fd, text, sizeof(text), file->offset);

    (void)path, (void)status;
    while (n > 0 && text[n - 1] != '\n')
        n--;
    if (n > 0) {
        kiln_buf_add(&kit->got, text, (size_t)n);
        file->offset += n;
    }
    return true;
}

static void check_look(struct kit *kit, const char *expected)
{
    kiln_buf_clear(&kit->got);
    kiln_files_look(&kit->files, visit, kit);
    CHECK_STR(kiln_buf_str(&kit->got), expected);
}

TEST(files, folders_below_folders)
{
    struct kit kit = {0};

    folder_make(kit.folder);
    put(&kit, "top.json", "top\n");
    put(&kit, "a/one.json", "one\n");
    put(&kit, "a/b/c/two.json", "two\n");
    put(&kit, "a/b/c/two.txt", "text\n");
    put(&kit, "a/old/three.json", "three\n");
    put(&kit, ".hidden/four.json", "four\n");
    open_files(&kit, "**/*.json", "**/old/*", NULL);
    check_look(&kit, "two\none\ntop\n");
    check_look(&kit, "");
    close_files(&kit);
    open_files(&kit, "a/**/c/*.json", "none", NULL);
    check_look(&kit, "two\n");
    close_files(&kit);
    open_files(&kit, "a/**", "**/*.json", NULL);
    check_look(&kit, "text\n");
    close_files(&kit);
    folder_remove(kit.folder);
    CHECK_EQ(kiln_mem_live(), 0);
}

TEST(files, what_is_excluded_is_not_read)
{
    struct kit kit = {0};

    folder_make(kit.folder);
    put(&kit, "a.json", "a\n");
    put(&kit, "b.json", "b\n");
    put(&kit, "c.json", "c\n");
    open_files(&kit, "*.json", "[ac].json", NULL);
    check_look(&kit, "b\n");
    close_files(&kit);
    folder_remove(kit.folder);
}

/* Lines that were written since the last look, before the file became a backup. */
TEST(files, a_file_that_was_renamed_is_read_to_its_end)
{
    struct kit kit = {0};
    char from[256], to[256];

    folder_make(kit.folder);
    put(&kit, "p.json", "one\n");
    open_files(&kit, "p.json", "none", NULL);
    check_look(&kit, "one\n");
    put(&kit, "p.json", "two\nthr");
    path_of(&kit, "p.json", from);
    path_of(&kit, "p-1.json", to);
    CHECK_EQ(rename(from, to), 0);
    put(&kit, "p.json", "new\n");
    check_look(&kit, "new\ntwo\n");
    put(&kit, "p-1.json", "ee\n"); /* by who has it open still */
    check_look(&kit, "three\n");
    check_look(&kit, "");
    CHECK_EQ(kit.files.seen->n, 1); /* and forgotten then */
    close_files(&kit);
    folder_remove(kit.folder);
}

/* A receiver of the next configuration goes on where the one before was. */
TEST(files, what_was_read_is_known_to_the_next)
{
    struct kit first = {0}, second, third;

    folder_make(first.folder);
    put(&first, "a.json", "one\n");
    open_files(&first, "*.json", "none", NULL);
    check_look(&first, "one\n");
    second = third = first;
    open_files(&second, "*.json", "none", &first);
    put(&first, "a.json", "two\n");
    close_files(&first);
    CHECK(second.files.seen->looked);
    check_look(&second, "two\n");
    open_files(&third, "*", "none", &second);
    put(&third, "b.txt", "text\n");
    close_files(&second);
    check_look(&third, "text\n");
    close_files(&third);
    folder_remove(first.folder);
    CHECK_EQ(kiln_mem_live(), 0);
}

/* What other patterns name was there before: start_at says from where it is read. */
static bool is_not_known(void *context, struct kiln_file *file, const char *path, int fd,
                         const struct stat *status)
{
    struct kit *kit = context;

    (void)path, (void)fd, (void)status;
    CHECK_EQ(kit->files.seen->looked, false);
    CHECK_EQ(file->is_new, strstr(path, "b.txt") != NULL);
    return true;
}

TEST(files, other_patterns_begin_anew)
{
    struct kit first = {0}, second;

    folder_make(first.folder);
    put(&first, "a.json", "one\n");
    put(&first, "b.txt", "text\n");
    open_files(&first, "*.json", "none", NULL);
    check_look(&first, "one\n");
    second = first;
    open_files(&second, "*", "none", &first);
    close_files(&first);
    kiln_files_look(&second.files, is_not_known, &second);
    CHECK(second.files.seen->looked);
    close_files(&second);
    folder_remove(first.folder);
}

TEST(files, too_many_are_told)
{
    struct kit kit = {0};
    char name[32];

    folder_make(kit.folder);
    for (int i = 0; i <= KILN_FILES_MAX; i++) {
        snprintf(name, sizeof(name), "%d", i);
        put(&kit, name, "");
    }
    open_files(&kit, "*", "none", NULL);
    kit.files.opts.holds = false;
    check_look(&kit, "");
    CHECK_EQ(kit.files.seen->n, KILN_FILES_MAX);
    CHECK(kit.files.told);
    close_files(&kit);
    folder_remove(kit.folder);
}
