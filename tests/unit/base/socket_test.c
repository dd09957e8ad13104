/* SPDX-License-Identifier: Apache-2.0 */
#include "base/socket.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "folder.h"
#include "test.h"

enum { TRIES = 3000 };

static char folder[FOLDER_NAME], address[FOLDER_NAME + 16], victim[FOLDER_NAME + 16];
static const char *path;
static atomic_uint tries;

static void make(void)
{
    folder_make(folder);
    snprintf(address, sizeof(address), "unix:%s/socket", folder);
    snprintf(victim, sizeof(victim), "%s/victim", folder);
    path = address + strlen("unix:");
}

static mode_t mode_of(const char *file)
{
    struct stat st;

    CHECK_OK(stat(file, &st));
    return st.st_mode & 07777;
}

TEST(socket, has_the_mode_whatever_the_umask_is)
{
    const struct kiln_socket_opts opts[] = {{.address = address},
                                            {.address = address, .unix_mode = 0666}};
    mode_t mask = umask(077);
    int fd;

    make();
    for (int i = 0; i < 2; i++) {
        CHECK_OK(kiln_socket_listen(&opts[i], &fd, NULL));
        CHECK_EQ(mode_of(path), i ? 0666 : 0660);
        close(fd);
    }
    umask(mask);
    folder_remove(folder);
}

/* As soon as it is there; until the try is over. */
static void *replace_by_link(void *unused)
{
    char link[FOLDER_NAME + 16];

    snprintf(link, sizeof(link), "%s/link", folder);
    for (unsigned now = 0; now < TRIES; now++) {
        (void)!symlink("victim", link);
        while (access(path, F_OK) < 0 && atomic_load(&tries) == now)
            ;
        (void)!rename(link, path);
        while (atomic_load(&tries) == now)
            sched_yield();
        (void)!unlink(path);
    }
    return unused;
}

/* A directory that another user can change: the race is lost now and then. */
TEST(socket, of_a_link_in_its_place_no_mode_is_set)
{
    const struct kiln_socket_opts opts = {.address = address, .unix_mode = 0666};
    pthread_t thread;
    int fd;

    make();
    CHECK_OK(kiln_file_write(victim, KILN_STR("x"), NULL));
    CHECK_OK(chmod(victim, 0600));
    atomic_store(&tries, 0);
    CHECK_OK(pthread_create(&thread, NULL, replace_by_link, NULL));
    for (int i = 0; i < TRIES; i++) {
        if (kiln_socket_listen(&opts, &fd, NULL) == 0)
            close(fd);
        atomic_fetch_add(&tries, 1);
    }
    CHECK_OK(pthread_join(thread, NULL));
    CHECK_EQ(mode_of(victim), 0600);
    folder_remove(folder);
}
