/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Some fields are very long, so the file is read by and by; the end of what was read is kept, in
 * case it is the beginning of a field.
 */
#include "inproc/thread/status.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STATUS = 4096, FIELD_MAX = 32 };

static long find(int fd, const char *start, size_t length)
{
    char text[STATUS + 1];
    size_t kept = 0;
    ssize_t n;

    while ((n = read(fd, text + kept, STATUS - kept)) > 0) {
        size_t end = kept + (size_t)n;
        const char *found;

        text[end] = '\0';
        found = strstr(text, start);
        if (found && strchr(found + 1, '\n'))
            return strtol(found + length, NULL, 10);
        kept = end < FIELD_MAX ? end : FIELD_MAX;
        memmove(text, text + end - kept, kept);
    }
    return -1;
}

long kiln_in_status(const char *field)
{
    char start[FIELD_MAX];
    int length = snprintf(start, sizeof(start), "\n%s:\t", field);
    int fd = open("/proc/thread-self/status", O_RDONLY | O_CLOEXEC);
    long number = fd < 0 ? -1 : find(fd, start, (size_t)length);

    if (fd >= 0)
        close(fd);
    return number;
}
