/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/file.h"
#include "cli/profiler_int.h"

int kiln_profiler_send(int fd, const struct kiln_profiler_head *head, struct kiln_str data)
{
    int file = memfd_create("kiln-message", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int r;

    if (file < 0)
        return -errno;
    r = kiln_fd_write(file, (struct kiln_str){(const char *)head, sizeof(*head)});
    if (r == 0)
        r = kiln_fd_write(file, data);
    if (r == 0)
        r = kiln_descriptor_send(fd, file);
    close(file);
    return r;
}

static int read_all(int file, void *to, size_t n, size_t offset)
{
    for (size_t done = 0; done < n;) {
        ssize_t got = pread(file, (char *)to + done, n - done, (off_t)(offset + done));

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -errno : -EBADMSG; /* it was cut meanwhile */
        done += (size_t)got;
    }
    return 0;
}

/* Only a memory file has seals; the read of any other might block for ever. */
static int read_message(int file, struct kiln_profiler_head *ret_head, struct kiln_buf *data)
{
    struct stat st;
    size_t n;
    char *at;
    int r;

    if (fcntl(file, F_GET_SEALS) < 0 || fstat(file, &st) < 0 ||
        st.st_size < (off_t)sizeof(*ret_head) ||
        (uint64_t)st.st_size > data->max + sizeof(*ret_head))
        return -EBADMSG;
    n = (size_t)st.st_size - sizeof(*ret_head);
    r = read_all(file, ret_head, sizeof(*ret_head), 0);
    if (r < 0 || n == 0)
        return r;
    at = kiln_buf_reserve(data, n);
    if (!at)
        return -ENOMEM;
    r = read_all(file, at, n, sizeof(*ret_head));
    if (r == 0)
        data->len = n;
    return r;
}

int kiln_profiler_receive(int fd, struct kiln_profiler_head *ret_head, struct kiln_buf *data)
{
    int file = kiln_descriptor_receive(fd), r;

    kiln_buf_clear(data);
    if (file < 0)
        return file;
    r = read_message(file, ret_head, data);
    close(file);
    return r;
}
