/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse_server.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REQUEST_BYTES = 256 << 10, WRITE_BYTES = 4096 };

struct serving {
    int fd;
    struct kiln_str content;
    const struct fuse_in_header *in;
};

static void answer(const struct serving *s, int error, const void *body, size_t n)
{
    struct fuse_out_header head = {
        .len = (uint32_t)(sizeof(head) + n), .error = error, .unique = s->in->unique};
    struct iovec parts[] = {{&head, sizeof(head)}, {(void *)(uintptr_t)body, n}};

    (void)!writev(s->fd, parts, 2);
}

static struct fuse_attr attr_of(const struct serving *s, uint64_t node)
{
    bool root = node == FUSE_ROOT_ID;

    return (struct fuse_attr){.ino = node,
                              .size = root ? 0 : s->content.len,
                              .mode = root ? S_IFDIR | 0755 : S_IFREG | 0755,
                              .nlink = 1};
}

static void answer_init(const struct serving *s)
{
    const struct fuse_init_out out = {
        .major = FUSE_KERNEL_VERSION, .minor = 31, .max_readahead = 0, .max_write = WRITE_BYTES};

    answer(s, 0, &out, sizeof(out));
}

static void answer_lookup(const struct serving *s, const char *name)
{
    uint64_t node = 2 + (uint8_t)name[0];
    const struct fuse_entry_out out = {.nodeid = node, .attr = attr_of(s, node)};

    answer(s, 0, &out, sizeof(out));
}

static void answer_getattr(const struct serving *s)
{
    const struct fuse_attr_out out = {.attr = attr_of(s, s->in->nodeid)};

    answer(s, 0, &out, sizeof(out));
}

static void answer_read(const struct serving *s, const struct fuse_read_in *in)
{
    size_t from = in->offset < s->content.len ? in->offset : s->content.len;
    size_t left = s->content.len - from;

    answer(s, 0, s->content.ptr + from, left < in->size ? left : in->size);
}

static void answer_one(const struct serving *s)
{
    const void *body = s->in + 1;

    switch (s->in->opcode) {
    case FUSE_INIT:
        answer_init(s);
        break;
    case FUSE_LOOKUP:
        answer_lookup(s, body);
        break;
    case FUSE_GETATTR:
        answer_getattr(s);
        break;
    case FUSE_OPEN:
        answer(s, 0, &(struct fuse_open_out){0}, sizeof(struct fuse_open_out));
        break;
    case FUSE_READ:
        answer_read(s, body);
        break;
    case FUSE_FLUSH:
    case FUSE_RELEASE:
        answer(s, 0, NULL, 0);
        break;
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT:
        break; /* want no answer */
    default:
        answer(s, -ENOSYS, NULL, 0);
    }
}

static void serve(struct serving *s, const _Atomic bool *hangs)
{
    static char request[REQUEST_BYTES];
    ssize_t n;

    s->in = (const struct fuse_in_header *)(const void *)request;
    while ((n = read(s->fd, request, sizeof(request))) > 0 || errno == EINTR || errno == ENOENT)
        if (n > 0 && !atomic_load(hangs))
            answer_one(s);
}

int fuse_server_start(struct fuse_server *server, const char *point, struct kiln_str content)
{
    struct serving s = {.fd = open("/dev/fuse", O_RDWR | O_CLOEXEC), .content = content};
    char options[96];
    int r = 0;

    if (s.fd < 0)
        return -errno;
    snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", s.fd);
    if (mount("kiln", point, "fuse.kiln", MS_NOSUID | MS_NODEV, options) < 0)
        r = -errno;
    server->hangs = mmap(NULL, sizeof(*server->hangs), PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    server->point = point;
    server->pid = r < 0 ? -1 : fork();
    if (server->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        serve(&s, server->hangs);
        _exit(0);
    }
    close(s.fd); /* the server's end alone: it is over with the server */
    return r;
}

void fuse_server_hang(struct fuse_server *server)
{
    atomic_store(server->hangs, true);
}

void fuse_server_stop(struct fuse_server *server)
{
    kill(server->pid, SIGKILL);
    waitpid(server->pid, NULL, 0);
    umount2(server->point, MNT_DETACH);
    munmap((void *)(uintptr_t)server->hangs, sizeof(*server->hangs));
}
