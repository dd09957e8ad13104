/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One write a line, without stdio, whose locks and buffers are the program's.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "inproc/start.h"
#include "inproc/thread/helper.h"

/*
 * A program that has closed its standard error hears nothing.  A helper has none that can be
 * written to, and uses the program's.
 */
static void put(const char *line, size_t n)
{
    int fd;

    if (write(STDERR_FILENO, line, n) >= 0 || errno != EBADF)
        return;
    fd = kiln_in_helper_borrow(STDERR_FILENO);
    if (fd < 0)
        return;
    if (write(fd, line, n) < 0)
        n = 0;
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
