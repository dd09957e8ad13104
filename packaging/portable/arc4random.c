/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arc4random() and arc4random_buf() of glibc 2.36, which static libraries of Debian 12 call, for
 * the portable tarball. As those of glibc do, they end the process if the kernel has no random
 * numbers.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

uint32_t arc4random(void);
void arc4random_buf(void *buf, size_t len);

void arc4random_buf(void *buf, size_t len)
{
    for (uint8_t *at = buf, *end = at + len; at < end;) {
        ssize_t n = getrandom(at, (size_t)(end - at), 0);

        if (n > 0)
            at += n;
        else if (n == 0 || errno != EINTR)
            abort();
    }
}

uint32_t arc4random(void)
{
    uint32_t number;

    arc4random_buf(&number, sizeof(number));
    return number;
}
