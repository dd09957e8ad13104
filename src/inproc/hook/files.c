/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing, where that may sleep: pipes, sockets, terminals, but no disks. */
#undef _FORTIFY_SOURCE /* its functions of the same names are inline */
#include "inproc/sample/files.h"

#include <stddef.h>
#include <unistd.h>

#include "inproc/hook/timed.h"

#define OF_FILE kiln_in_file_reason(fd)

TIMED_FILE(ssize_t, read, (int fd, void *to, size_t n), (fd, to, n), OF_FILE)
TIMED_FILE(ssize_t, __read_chk, (int fd, void *to, size_t n, size_t room), (fd, to, n, room),
           OF_FILE)
TIMED_FILE(ssize_t, readv, (int fd, const struct iovec *to, int n), (fd, to, n), OF_FILE)
TIMED_FILE(ssize_t, write, (int fd, const void *from, size_t n), (fd, from, n), OF_FILE)
TIMED_FILE(ssize_t, writev, (int fd, const struct iovec *from, int n), (fd, from, n), OF_FILE)

#define OF_SOCKET ((flags)&MSG_DONTWAIT ? -1 : kiln_in_file_reason(fd))

TIMED_FILE(ssize_t, recv, (int fd, void *to, size_t n, int flags), (fd, to, n, flags), OF_SOCKET)
TIMED_FILE(ssize_t, __recv_chk, (int fd, void *to, size_t n, size_t room, int flags),
           (fd, to, n, room, flags), OF_SOCKET)
TIMED(ssize_t, recvfrom,
      (int fd, void *restrict to, size_t n, int flags, __SOCKADDR_ARG from,
       socklen_t *restrict length),
      (fd, to, n, flags, from.__sockaddr__, length), OF_SOCKET)
TIMED(ssize_t, __recvfrom_chk,
      (int fd, void *restrict to, size_t n, size_t room, int flags, __SOCKADDR_ARG from,
       socklen_t *restrict length),
      (fd, to, n, room, flags, from.__sockaddr__, length), OF_SOCKET)
TIMED_FILE(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags),
           OF_SOCKET)
TIMED_FILE(ssize_t, send, (int fd, const void *from, size_t n, int flags), (fd, from, n, flags),
           OF_SOCKET)
TIMED(ssize_t, sendto,
      (int fd, const void *from, size_t n, int flags, __CONST_SOCKADDR_ARG to, socklen_t length),
      (fd, from, n, flags, to.__sockaddr__, length), OF_SOCKET)
TIMED_FILE(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags),
           (fd, message, flags), OF_SOCKET)
TIMED(int, accept, (int fd, __SOCKADDR_ARG from, socklen_t *restrict length),
      (fd, from.__sockaddr__, length), OF_FILE)
TIMED(int, accept4, (int fd, __SOCKADDR_ARG from, socklen_t *restrict length, int flags),
      (fd, from.__sockaddr__, length, flags), OF_FILE)
TIMED(int, connect, (int fd, __CONST_SOCKADDR_ARG to, socklen_t length),
      (fd, to.__sockaddr__, length), OF_FILE)
TIMED(int, getaddrinfo,
      (const char *restrict node, const char *restrict service,
       const struct addrinfo *restrict hints, struct addrinfo **restrict ret),
      (node, service, hints, ret), KILN_IN_REASON_SOCKET)

KILN_API int close(int fd);
int close(int fd)
{
    kiln_in_file_forget(fd);
    return kiln_in_next_calls.close(fd);
}
