/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One write a line, without stdio, whose locks and buffers are the program's.
 *
 * A program may close its standard error and open something else, which gets its number: data that
 * a word of ours would spoil.  So it is written to where it is what it was at the start, or a
 * terminal or a log; and never where that would wait, or end the program by SIGPIPE or SIGXFSZ.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inproc/start.h"
#include "inproc/thread/helper.h"

static struct stat at_start;
static bool is_known;

void kiln_in_say_begin(void)
{
    if (!is_known)
        is_known = fstat(STDERR_FILENO, &at_start) == 0;
}

static bool is_for_words(int fd)
{
    struct stat now;

    if (fstat(fd, &now) != 0)
        return false;
    return (is_known && now.st_dev == at_start.st_dev && now.st_ino == at_start.st_ino) ||
           S_ISCHR(now.st_mode) || (S_ISREG(now.st_mode) && fcntl(fd, F_GETFL) & O_APPEND);
}

static bool may_grow(int fd, size_t n)
{
    struct rlimit limit;
    struct stat now;

    return fstat(fd, &now) == 0 &&
           (!S_ISREG(now.st_mode) ||
            (getrlimit(RLIMIT_FSIZE, &limit) == 0 && (uint64_t)now.st_size + n <= limit.rlim_cur));
}

static bool takes_one_now(int fd, size_t n)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};

    return poll(&poll_fd, 1, 0) == 1 && poll_fd.revents == POLLOUT && may_grow(fd, n);
}

/*
 * A program that has closed its standard error hears nothing.  A helper has none that can be
 * written to, and uses the program's.
 */
static void put(const char *line, size_t n)
{
    int flags = fcntl(STDERR_FILENO, F_GETFL);
    bool own = flags >= 0 && !(flags & O_PATH);
    int fd = own ? STDERR_FILENO : kiln_in_helper_borrow(STDERR_FILENO);

    if (fd >= 0 && is_for_words(fd) && takes_one_now(fd, n) && write(fd, line, n) < 0)
        n = 0;
    if (fd >= 0 && !own)
        close(fd);
}

void kiln_in_say(bool important, const char *format, ...)
{
    char line[512] = "kiln: ";
    int kept_errno = errno;
    size_t n = strlen(line);
    va_list args;
    int more;

    if (!important && !kiln_in_settings.log)
        return;
    va_start(args, format);
    more = vsnprintf(line + n, sizeof(line) - n - 1, format, args);
    va_end(args);
    if (more > 0)
        n += (size_t)more < sizeof(line) - n - 1 ? (size_t)more : sizeof(line) - n - 2;
    line[n++] = '\n';
    put(line, n);
    errno = kept_errno;
}
