/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child: takes one ask after another, opens the file that came beside it unless it has it open
 * already, and says what it finds.  It keeps the tables of the files asked last, as many as fit in
 * a quarter of its memory; one file may take three quarters while it is read.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "symbol/confine.h"
#include "symbol/names.h"
#include "symbol/names_wire.h"

enum { KEPT_MAX = 48, FILES_MAX = KEPT_MAX + 8 };

struct kept {
    struct kiln_names_ask ask; /* kind, id, version */
    struct kiln_names *names;
    int fd;
    uint64_t used; /* when, in asks */
};

struct child {
    size_t memory;
    struct kept kept[KEPT_MAX];
    uint32_t n_kept;
    uint64_t now;
    struct kiln_names_ask ask;
    uint64_t addresses[KILN_WIRE_ADDRESSES];
    char packet[KILN_WIRE_PACKET];
};

/* Returns bytes, 0 at the end, negative on error; *ret_fd is -1 where none came. */
static ssize_t receive(struct iovec *iov, size_t n_iov, int *ret_fd)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct msghdr message = {.msg_iov = iov,
                             .msg_iovlen = n_iov,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    struct cmsghdr *head;
    ssize_t n;

    do
        n = recvmsg(KILN_WIRE_SOCKET, &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    *ret_fd = -1;
    head = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
        memcpy(ret_fd, CMSG_DATA(head), sizeof(*ret_fd));
    return n < 0 ? -errno : n;
}

static int transmit(const void *data, size_t n)
{
    struct iovec iov = {(void *)(uintptr_t)data, n};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
    ssize_t sent;

    do
        sent = sendmsg(KILN_WIRE_SOCKET, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : 0;
}

static void drop(struct child *child, uint32_t i)
{
    kiln_names_close(child->kept[i].names);
    close(child->kept[i].fd);
    child->kept[i] = child->kept[--child->n_kept];
}

static uint32_t oldest(const struct child *child)
{
    uint32_t found = 0;

    for (uint32_t i = 1; i < child->n_kept; i++) {
        if (child->kept[i].used < child->kept[found].used)
            found = i;
    }
    return found;
}

/* Until what is kept leaves room for one more. */
static void make_room(struct child *child)
{
    size_t bytes = 0;

    for (uint32_t i = 0; i < child->n_kept; i++)
        bytes += kiln_names_bytes(child->kept[i].names);
    while (child->n_kept > 0 && (child->n_kept == KEPT_MAX || bytes > child->memory / 4)) {
        uint32_t i = oldest(child);

        bytes -= kiln_names_bytes(child->kept[i].names);
        drop(child, i);
    }
}

static int open_names(struct child *child, int fd, struct kiln_names **ret_names)
{
    const struct kiln_names_limits limits = {.memory_bytes = child->memory / 4 * 3};
    struct kiln_bytes bytes;
    int r = kiln_bytes_file(fd, &bytes);

    if (r < 0)
        return r;
    make_room(child);
    r = kiln_names_open(child->ask.kind, &bytes, &limits, ret_names);
    if (r != -ENOMEM || child->n_kept == 0)
        return r;
    while (child->n_kept > 0)
        drop(child, 0);
    return kiln_names_open(child->ask.kind, &bytes, &limits, ret_names);
}

/* Another version of a file that is kept: true where it only has more at its end. */
static bool grow(struct kept *kept, const struct kiln_names_ask *ask, int fd)
{
    struct kiln_bytes bytes;

    if (kiln_bytes_file(fd, &bytes) < 0 || kiln_names_grow(kept->names, &bytes) < 0)
        return false;
    close(kept->fd);
    kept->fd = fd;
    kept->ask = *ask;
    return true;
}

/* The names of what is asked; `fd` is taken.  -ENOENT: it is not kept, and there is no file. */
static int get(struct child *child, int fd, struct kept **ret_kept)
{
    const struct kiln_names_ask *ask = &child->ask;
    struct kept made = {.ask = *ask, .fd = fd};
    int r;

    for (uint32_t i = 0; i < child->n_kept; i++) {
        struct kept *kept = child->kept + i;

        if (kept->ask.id != ask->id || kept->ask.kind != ask->kind)
            continue;
        if (kept->ask.version == ask->version) {
            if (fd >= 0)
                close(fd);
            *ret_kept = kept;
            return 0;
        }
        if (fd >= 0 && grow(kept, ask, fd)) {
            *ret_kept = kept;
            return 0;
        }
        drop(child, i);
        break;
    }
    if (fd < 0)
        return -ENOENT;
    r = open_names(child, fd, &made.names);
    if (r < 0) {
        close(fd);
        return r;
    }
    child->kept[child->n_kept++] = made;
    *ret_kept = child->kept + child->n_kept - 1;
    return 0;
}

static int refuse(const struct child *child, int status)
{
    struct kiln_names_answer answer = {.number = child->ask.number, .status = status};

    return transmit(&answer, sizeof(answer));
}

/* As many packets as it takes. */
static int answer(struct child *child, struct kiln_names *names)
{
    struct kiln_names_answer head = {.number = child->ask.number};
    size_t len = sizeof(head);

    for (uint32_t i = 0; i < child->ask.n; i++) {
        struct kiln_name name = {0};

        (void)kiln_names_find(names, child->addresses[i], &name);
        if (!kiln_wire_add(child->packet, &len, &name)) {
            int r;

            memcpy(child->packet, &head, sizeof(head));
            r = transmit(child->packet, len);
            if (r < 0)
                return r;
            head.first = i;
            head.n = 0;
            len = sizeof(head);
            (void)kiln_wire_add(child->packet, &len, &name);
        }
        head.n++;
    }
    memcpy(child->packet, &head, sizeof(head));
    return transmit(child->packet, len);
}

/* One ask.  1: go on; 0: there will be no more. */
static int serve(struct child *child)
{
    struct iovec iov[] = {{&child->ask, sizeof(child->ask)},
                          {child->addresses, sizeof(child->addresses)}};
    struct kept *kept = NULL;
    int fd;
    ssize_t n = receive(iov, 2, &fd);
    int r;

    if (n <= 0)
        return (int)n;
    if ((size_t)n < sizeof(child->ask) || child->ask.n == 0 || child->ask.n > KILN_WIRE_ADDRESSES ||
        (size_t)n != sizeof(child->ask) + child->ask.n * sizeof(uint64_t))
        return -EBADMSG;
    r = get(child, fd, &kept);
    if (r == 0) {
        kept->used = ++child->now;
        r = answer(child, kept->names);
    } else {
        r = refuse(child, r);
    }
    return r < 0 ? r : 1;
}

int kiln_resolver_child(void)
{
    struct child *child = kiln_calloc(1, sizeof(*child));
    uint64_t memory = 0;
    struct iovec iov = {&memory, sizeof(memory)};
    int fd;
    int r;

    if (!child || receive(&iov, 1, &fd) != sizeof(memory) || fd >= 0)
        return 1;
    child->memory = memory;
    r = kiln_confine(KILN_WIRE_SOCKET, memory, FILES_MAX);
    /* From here on the resolver's clock runs. */
    if (r == 0)
        r = transmit(&memory, sizeof(memory));
    if (r == 0)
        r = 1;
    while (r == 1)
        r = serve(child);
    return r < 0;
}
