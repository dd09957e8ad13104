/* SPDX-License-Identifier: Apache-2.0 */
#include "base/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "squatter.h"
#include "test.h"

/* A folder that only root can change, as are those above it; a socket of another user in it. */
struct place {
    struct squatter squatter;
    char folder[32], path[96];
    struct kiln_err err;
};

static bool begin(struct place *p, uid_t owner, mode_t mode)
{
    if (geteuid() != 0)
        return false;
    *p = (struct place){.folder = "/run/kiln-test-XXXXXX"};
    CHECK(mkdtemp(p->folder));
    CHECK_OK(chown(p->folder, SQUATTER_UID, SQUATTER_UID));
    snprintf(p->path, sizeof(p->path), "%s/s", p->folder);
    squatter_start(&p->squatter, p->path);
    CHECK_OK(chmod(p->folder, mode));
    CHECK_OK(chown(p->folder, owner, 0));
    return true;
}

static int connect_to(const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(name.sun_path, sizeof(name.sun_path), "%s", path);
    CHECK_OK(connect(fd, (struct sockaddr *)&name, sizeof(name)));
    return fd;
}

static int check(struct place *p)
{
    int fd = connect_to(p->path);
    int r = kiln_peer_check(fd, p->path, &p->err);

    close(fd);
    return r;
}

static void end(struct place *p)
{
    CHECK_EQ(squatter_stop(&p->squatter), 0);
    unlink(p->path);
    CHECK_OK(rmdir(p->folder));
}

#define BEGIN(p, owner, mode)                                                                      \
    if (!begin(&(p), owner, mode)) {                                                               \
        SKIP("only root can be somebody else");                                                    \
        return;                                                                                    \
    }

TEST(peer, the_owner_of_a_socket_in_its_own_folder_is_trusted)
{
    struct place p;

    BEGIN(p, SQUATTER_UID, 0755);
    CHECK_OK(check(&p));
    end(&p);
}

TEST(peer, the_owner_of_a_socket_in_a_folder_of_root_is_trusted)
{
    struct place p;

    BEGIN(p, 0, 0755);
    CHECK_OK(check(&p));
    end(&p);
}

TEST(peer, where_every_user_may_create_files_no_owner_is_trusted)
{
    struct place p;

    BEGIN(p, 0, 01777);
    CHECK_EQ(check(&p), -EACCES);
    CHECK_TEXT(p.err.where, p.path);
    CHECK(strstr(p.err.text, "user 65534 listens here"));
    end(&p);
}

TEST(peer, where_a_group_may_create_files_no_owner_is_trusted)
{
    struct place p;

    BEGIN(p, 0, 0775);
    CHECK_EQ(check(&p), -EACCES);
    end(&p);
}

TEST(peer, in_a_folder_of_a_third_user_no_owner_is_trusted)
{
    struct place p;

    BEGIN(p, 1, 0755);
    CHECK_EQ(check(&p), -EACCES);
    end(&p);
}

TEST(peer, a_listener_that_does_not_own_the_socket_is_not_trusted)
{
    struct place p;

    BEGIN(p, 0, 0755);
    CHECK_OK(chown(p.path, 1, 1));
    CHECK_EQ(check(&p), -EACCES);
    end(&p);
}

TEST(peer, the_folders_that_count_are_those_behind_a_link)
{
    struct place p;
    char link[80];

    BEGIN(p, 0, 01777);
    snprintf(link, sizeof(link), "%s-link", p.folder);
    CHECK_OK(symlink(p.folder, link));
    snprintf(p.path, sizeof(p.path), "%s/s", link);
    CHECK_EQ(check(&p), -EACCES);
    CHECK_OK(unlink(link));
    snprintf(p.path, sizeof(p.path), "%s/s", p.folder);
    end(&p);
}

TEST(peer, the_own_user_is_trusted_anywhere)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    char folder[] = "/tmp/kiln-test-XXXXXX";
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;
    struct kiln_err err = {0};

    CHECK(mkdtemp(folder));
    CHECK_OK(chmod(folder, 0777));
    snprintf(name.sun_path, sizeof(name.sun_path), "%s/s", folder);
    CHECK_OK(bind(listener, (struct sockaddr *)&name, sizeof(name)));
    CHECK_OK(listen(listener, 1));
    fd = connect_to(name.sun_path);
    CHECK_OK(kiln_peer_check(fd, name.sun_path, &err));
    close(fd);
    close(listener);
    unlink(name.sun_path);
    rmdir(folder);
}

TEST(peer, a_file_that_is_no_socket_has_no_peer)
{
    struct kiln_err err = {0};
    int fds[2];

    CHECK_OK(pipe2(fds, O_CLOEXEC));
    CHECK_EQ(kiln_peer_check(fds[0], "/x", &err), -ENOTSOCK);
    close(fds[0]);
    close(fds[1]);
}
