/* SPDX-License-Identifier: Apache-2.0 */
#include "squatter.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

static int listen_at(const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    snprintf(name.sun_path, sizeof(name.sun_path), "%s", path);
    return bind(fd, (struct sockaddr *)&name, sizeof(name)) == 0 && listen(fd, 8) == 0 ? fd : -1;
}

/* All that each connection in the backlog sends before its client closes it. */
static size_t drain(int listener)
{
    char bytes[4096];
    size_t sum = 0;
    int fd;

    fcntl(listener, F_SETFL, O_NONBLOCK);
    while ((fd = accept(listener, NULL, NULL)) >= 0) {
        for (ssize_t n; (n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0;)
            sum += (size_t)n;
        close(fd);
    }
    return sum;
}

/* Connections wait in the backlog until the test is done with its client. */
static _Noreturn void squat(const char *path, int control, int report)
{
    int fd = setresgid(SQUATTER_UID, SQUATTER_UID, SQUATTER_UID) == 0 &&
                     setresuid(SQUATTER_UID, SQUATTER_UID, SQUATTER_UID) == 0
                 ? listen_at(path)
                 : -1;
    size_t sum = 0;
    char end;

    if (write(report, fd >= 0 ? "y" : "n", 1) == 1 && fd >= 0 && read(control, &end, 1) == 0)
        sum = drain(fd);
    _exit(write(report, &sum, sizeof(sum)) != sizeof(sum));
}

void squatter_start(struct squatter *s, const char *path)
{
    int control[2], report[2];
    char listens = 'n';

    CHECK_OK(pipe2(control, O_CLOEXEC));
    CHECK_OK(pipe2(report, O_CLOEXEC));
    s->pid = fork();
    CHECK(s->pid >= 0);
    if (s->pid == 0) {
        close(control[1]);
        squat(path, control[0], report[1]);
    }
    close(control[0]);
    close(report[1]);
    s->control = control[1];
    s->report = report[0];
    CHECK_EQ(read(s->report, &listens, 1), 1);
    CHECK_EQ(listens, 'y');
}

size_t squatter_stop(struct squatter *s)
{
    size_t sum = 0;

    close(s->control);
    CHECK_EQ(read(s->report, &sum, sizeof(sum)), (int)sizeof(sum));
    close(s->report);
    CHECK_EQ(waitpid(s->pid, NULL, 0), s->pid);
    return sum;
}
