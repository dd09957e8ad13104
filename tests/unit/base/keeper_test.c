/* SPDX-License-Identifier: Apache-2.0 */
/* Each in a process of its own, which becomes nobody and cannot go back. */
#include "base/keeper.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/calls.h"
#include "base/file.h"
#include "folder.h"
#include "test.h"

enum { NOBODY = 65534 };

struct place {
    char dir[FOLDER_NAME], secret[FOLDER_NAME + 16], other[FOLDER_NAME + 16];
    char ready[FOLDER_NAME + 16], socket[FOLDER_NAME + 16];
};

static void make_socket(const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(name.sun_path, sizeof(name.sun_path), "%s", path);
    CHECK_OK(bind(fd, (struct sockaddr *)&name, sizeof(name)));
    close(fd);
}

/* A folder that only root may enter. */
static void make(struct place *p)
{
    folder_make(p->dir);
    snprintf(p->secret, sizeof(p->secret), "%s/secret", p->dir);
    snprintf(p->other, sizeof(p->other), "%s/other", p->dir);
    snprintf(p->ready, sizeof(p->ready), "%s/ready", p->dir);
    snprintf(p->socket, sizeof(p->socket), "%s/socket", p->dir);
    CHECK_OK(kiln_file_write(p->secret, KILN_STR("one"), NULL));
    CHECK_OK(kiln_file_write(p->other, KILN_STR("other"), NULL));
    CHECK_OK(chmod(p->dir, 0700));
    make_socket(p->socket);
}

/* What `attempt` returns in a process that was root, started the child, and is nobody now. */
static int as_nobody(const struct place *p, int (*attempt)(const struct place *p))
{
    const char *read[] = {p->secret};
    const struct kiln_keeper_opts opts = {
        .read = read, .n_read = 1, .write = p->ready, .remove = {NULL, p->socket}, .user = NOBODY};
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        int r = kiln_keeper_start(&opts);

        if (r < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0)
            _exit(99);
        r = attempt(p);
        kiln_keeper_stop();
        _exit(r < 0 ? -r : 0);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status));
    return -WEXITSTATUS(status);
}

static int read_twice(const struct place *p)
{
    struct kiln_buf text;
    int r;

    for (int i = 0; i < 2; i++) {
        kiln_buf_init(&text, 100);
        r = kiln_file_read(p->secret, &text, NULL);
        if (r == 0 && !kiln_str_eq(kiln_buf_str(&text), KILN_STR("one")))
            r = -EBADMSG;
        kiln_buf_done(&text);
        if (r < 0)
            return r;
    }
    return 0;
}

static int read_other(const struct place *p)
{
    struct kiln_buf text;
    int r;

    kiln_buf_init(&text, 100);
    r = kiln_file_read(p->other, &text, NULL);
    kiln_buf_done(&text);
    return r;
}

static int look_at(const struct place *p)
{
    struct stat st;
    int r = kiln_file_stat(p->secret, &st);

    return r == 0 && st.st_size != 3 ? -EBADMSG : r;
}

static int write_ready(const struct place *p)
{
    return kiln_keeper_write(p->ready, KILN_STR("ready"));
}

static int write_other(const struct place *p)
{
    return kiln_keeper_write(p->other, KILN_STR("x"));
}

static int open_secret(const struct place *p)
{
    int fd = kiln_keeper_open(p->secret);

    return fd < 0 ? fd : close(fd);
}

static int remove_socket(const struct place *p)
{
    return kiln_keeper_remove(p->socket);
}

static int remove_other(const struct place *p)
{
    return kiln_keeper_remove(p->other);
}

TEST(keeper, opens_writes_and_removes_its_own_files_and_no_other)
{
    struct place p;

    if (geteuid() != 0)
        SKIP("only root can become nobody");
    make(&p);
    CHECK_EQ(as_nobody(&p, read_twice), 0);
    CHECK_EQ(as_nobody(&p, look_at), 0);
    CHECK_EQ(as_nobody(&p, read_other), -EACCES);
    CHECK_EQ(as_nobody(&p, write_ready), 0);
    CHECK_EQ(access(p.ready, F_OK), 0);
    CHECK_EQ(as_nobody(&p, write_other), -EACCES);
    CHECK_EQ(as_nobody(&p, remove_other), -EACCES);
    CHECK_EQ(as_nobody(&p, remove_socket), 0);
    CHECK_EQ(access(p.socket, F_OK), -1);
    CHECK_EQ(access(p.other, F_OK), 0);
    folder_remove(p.dir);
}

TEST(keeper, removes_nothing_but_a_socket)
{
    struct place p;

    if (geteuid() != 0)
        SKIP("only root can become nobody");
    make(&p);
    CHECK_OK(unlink(p.socket));
    CHECK_OK(kiln_file_write(p.socket, KILN_STR("a file"), NULL));
    CHECK_EQ(as_nobody(&p, remove_socket), -EACCES);
    CHECK_EQ(access(p.socket, F_OK), 0);
    folder_remove(p.dir);
}

/* As before Linux 5.9. */
static bool refuse_close_range(void)
{
    static const uint32_t calls[] = {SYS_close_range};

    return kiln_calls_confine(&(struct kiln_call_filter){
               .calls = calls, .n_calls = 1, .all_but = true, .refused_errno = ENOSYS}) == 0;
}

TEST(keeper, needs_no_close_range)
{
    struct place p;
    int status;
    pid_t pid;

    if (geteuid() != 0)
        SKIP("only root can become nobody");
    make(&p);
    pid = fork();
    if (pid == 0)
        _exit(!refuse_close_range() ? 98 : as_nobody(&p, read_twice) == 0 ? 0 : 1);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
    folder_remove(p.dir);
}

static bool is_text(const char *path, const char *expected)
{
    struct kiln_buf text;
    bool same;

    kiln_buf_init(&text, 100);
    same = kiln_file_read(path, &text, NULL) == 0 &&
           kiln_str_eq(kiln_buf_str(&text), kiln_str_of(expected));
    kiln_buf_done(&text);
    return same;
}

/* The paths are in a directory of nobody, who puts links to a file of root there. */
TEST(keeper, follows_links_of_others_but_not_of_the_user)
{
    struct place p;

    if (geteuid() != 0)
        SKIP("only root can become nobody");
    make(&p);
    CHECK_OK(unlink(p.secret));
    CHECK_OK(symlink("other", p.secret));
    CHECK_EQ(as_nobody(&p, open_secret), 0);
    CHECK_OK(symlink("other", p.ready));
    CHECK_EQ(as_nobody(&p, write_ready), 0);
    CHECK(is_text(p.other, "ready"));
    CHECK_OK(kiln_file_write(p.other, KILN_STR("other"), NULL));

    CHECK_OK(lchown(p.secret, NOBODY, NOBODY));
    CHECK_OK(lchown(p.ready, NOBODY, NOBODY));
    CHECK_EQ(as_nobody(&p, open_secret), -ELOOP);
    CHECK_EQ(as_nobody(&p, write_ready), -ELOOP);
    CHECK(is_text(p.other, "other"));

    CHECK_OK(unlink(p.secret));
    CHECK_OK(link(p.other, p.secret));
    CHECK_EQ(as_nobody(&p, open_secret), 0);
    CHECK_OK(chown(p.dir, NOBODY, NOBODY));
    CHECK_EQ(as_nobody(&p, open_secret), -EACCES);
    folder_remove(p.dir);
}

TEST(keeper, opens_directories_but_no_pipe)
{
    struct place p;

    if (geteuid() != 0)
        SKIP("only root can become nobody");
    make(&p);
    CHECK_OK(unlink(p.secret));
    CHECK_OK(mkdir(p.secret, 0755));
    CHECK_EQ(as_nobody(&p, open_secret), 0);
    CHECK_OK(rmdir(p.secret));
    CHECK_OK(mkfifo(p.secret, 0666));
    CHECK_EQ(as_nobody(&p, open_secret), -EACCES);
    folder_remove(p.dir);
}

TEST(keeper, replaces_no_link_that_leads_nowhere)
{
    struct place p;
    struct stat st;

    if (geteuid() != 0)
        SKIP("only root can become nobody");
    make(&p);
    CHECK_OK(symlink("/proc/self/fd/1", p.ready)); /* as /dev/stdout */
    CHECK(as_nobody(&p, write_ready) < 0);
    CHECK_OK(lstat(p.ready, &st));
    CHECK(S_ISLNK(st.st_mode));
    folder_remove(p.dir);
}

static int open_after_forget(const struct place *p)
{
    kiln_keeper_forget();
    return open_secret(p);
}

TEST(keeper, a_process_that_forgot_it_opens_nothing)
{
    struct place p;

    if (geteuid() != 0)
        SKIP("only root can become nobody");
    make(&p);
    CHECK_EQ(as_nobody(&p, open_after_forget), -EACCES);
    folder_remove(p.dir);
}

TEST(keeper, without_a_child_everything_is_refused)
{
    CHECK_EQ(kiln_keeper_open("/etc/shadow"), -EACCES);
    CHECK_EQ(kiln_keeper_write("/etc/shadow", KILN_STR("")), -EACCES);
    CHECK_EQ(kiln_keeper_remove("/etc/shadow"), -EACCES);
    kiln_keeper_stop();
}
