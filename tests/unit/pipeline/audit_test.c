/* SPDX-License-Identifier: Apache-2.0 */
/* Records of the audit log: what is in a line, and what a file may be. */
#include "pipeline/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "folder.h"
#include "test.h"

static char folder[FOLDER_NAME], path[FOLDER_NAME + 32], other[FOLDER_NAME + 32];
static struct kiln_audit *audit;
static struct kiln_err err;

static void start(void)
{
    folder_make(folder);
    snprintf(path, sizeof(path), "%s/audit.log", folder);
    snprintf(other, sizeof(other), "%s/other", folder);
    err = (struct kiln_err){0};
    CHECK_OK(kiln_audit_new(NULL, &audit));
}

static void stop(void)
{
    kiln_audit_free(audit);
    folder_remove(folder);
    CHECK_EQ(kiln_mem_live(), 0);
}

static int open_as(enum kiln_log_form form)
{
    err = (struct kiln_err){0};
    return kiln_audit_open(audit, path, form, &err);
}

static void write_about(struct kiln_str target)
{
    kiln_audit_write(audit, &(struct kiln_audit_record){.action = "delete service",
                                                        .tenant = "shop",
                                                        .target = target,
                                                        .who = "ops",
                                                        .peer = "10.0.0.7:1",
                                                        .result = "ok"});
}

/* The file without its times. */
static const char *content(const char *file)
{
    static char said[1 << 14];
    struct kiln_buf text;
    size_t at = 0;

    kiln_buf_init(&text, sizeof(said));
    CHECK_OK(kiln_file_read(file, &text, NULL));
    for (struct kiln_str rest = kiln_buf_str(&text); rest.len;) {
        struct kiln_str line = kiln_str_cut(&rest, '\n');

        kiln_str_cut(&line, ' ');
        at += (size_t)snprintf(said + at, sizeof(said) - at, "%.*s\n", KILN_STR_ARG(line));
    }
    kiln_buf_done(&text);
    return said;
}

TEST(audit, a_record_is_a_line_of_a_file_that_only_its_owner_reads)
{
    struct stat st;

    start();
    CHECK_OK(open_as(KILN_LOG_PLAIN));
    write_about(KILN_STR("cart"));
    CHECK_TEXT(content(path), "level=info msg=audit action=\"delete service\" tenant=shop "
                              "target=cart who=ops peer=10.0.0.7:1 result=ok\n");
    CHECK_EQ(stat(path, &st), 0);
    CHECK_EQ(st.st_mode & 07777, 0600);
    stop();
}

TEST(audit, a_name_cannot_look_like_another_record)
{
    start();
    CHECK_OK(open_as(KILN_LOG_LOGFMT));
    write_about(KILN_STR("a\nlevel=info msg=audit who=\"x\" result=ok\r\x1b[2K\0hidden"));
    CHECK_TEXT(content(path),
               "level=info msg=audit action=\"delete service\" tenant=shop "
               "target=\"a\\nlevel=info msg=audit who=\\\"x\\\" "
               "result=ok\\r\\u001b[2K\\u0001hidden\" who=ops peer=10.0.0.7:1 result=ok\n");
    stop();
}

TEST(audit, what_was_there_stays_and_a_file_that_was_moved_is_made_again)
{
    start();
    CHECK_OK(open_as(KILN_LOG_LOGFMT));
    write_about(KILN_STR("one"));
    CHECK_OK(kiln_audit_reopen(audit, &err));
    write_about(KILN_STR("two"));
    CHECK_EQ(rename(path, other), 0);
    write_about(KILN_STR("three"));
    CHECK_OK(kiln_audit_reopen(audit, &err));
    write_about(KILN_STR("four"));
    CHECK(strstr(content(other), "target=one") && strstr(content(other), "target=two") &&
          strstr(content(other), "target=three"));
    CHECK(strstr(content(path), "target=four") && !strstr(content(path), "target=three"));
    stop();
}

TEST(audit, what_was_not_done_does_not_fill_the_disk_and_what_was_done_is_told)
{
    const struct kiln_audit_record failed = {.action = "x",
                                             .tenant = "",
                                             .target = KILN_STR(""),
                                             .who = "",
                                             .peer = "",
                                             .result = "failed"};
    struct kiln_buf text;
    uint64_t lines = 0, counted = 0;

    start();
    CHECK_OK(open_as(KILN_LOG_LOGFMT));
    for (int i = 0; i < 100000; i++)
        kiln_audit_write(audit, &failed);
    write_about(KILN_STR("cart"));
    kiln_audit_free(audit);
    audit = NULL;
    kiln_buf_init(&text, (size_t)64 << 20);
    CHECK_OK(kiln_file_read(path, &text, NULL));
    kiln_buf_putc(&text, '\0');
    CHECK(strstr(text.ptr, "target=cart"));
    for (const char *at = text.ptr; (at = strchr(at, '\n')); at++)
        lines++;
    for (const char *at = text.ptr; (at = strstr(at, "count=")); at++)
        counted += strtoull(at + 6, NULL, 10) - 1;
    CHECK(lines < 50000); /* 602, unless it takes minutes */
    CHECK_EQ(lines - 1 + counted, 100000);
    kiln_buf_done(&text);
    stop();
}

TEST(audit, neither_a_link_nor_a_pipe_is_written_to)
{
    start();
    CHECK_EQ(symlink(other, path), 0);
    CHECK_EQ(open_as(KILN_LOG_LOGFMT), -ELOOP);
    CHECK(strstr(err.text, "symbolic link"));
    CHECK_EQ(access(other, F_OK), -1);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(mkfifo(path, 0600), 0);
    CHECK(open_as(KILN_LOG_LOGFMT) < 0);
    CHECK_EQ(unlink(path), 0);
    CHECK_OK(open_as(KILN_LOG_JSON));
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(symlink(other, path), 0);
    CHECK_EQ(kiln_audit_reopen(audit, &err), -ELOOP);
    write_about(KILN_STR("one")); /* into the file that has no name any more */
    CHECK_EQ(access(other, F_OK), -1);
    stop();
}
