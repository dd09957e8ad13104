/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request is what to do, the path, and the text to write; an answer is base/descriptor.h's: one
 * datagram each.  The child compares the path with those that it has, and never uses the
 * requested one.
 */
#include "base/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/calls.h"
#include "base/capability.h"
#include "base/descriptor.h"
#include "base/file.h"
#include "base/path.h"

enum { CHILD_SOCKET = 3 };
enum what { OPEN, WRITE, REMOVE };

struct request {
    enum what what;
    uint32_t text_len;
    char path[PATH_MAX];
    char text[KILN_KEEPER_TEXT_MAX];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int keeper = -1; /* the socket; -1: there is no child */
static pid_t child;
static struct kiln_log *log_of_death; /* until it was said */

/* ---- the child ---- */

static int confine(void)
{
    static const uint32_t allowed[] = {
        SYS_recvfrom,
        SYS_sendmsg,
        SYS_read,
        SYS_write,
        SYS_openat,
        SYS_close,
        SYS_newfstatat,
        SYS_fstat,
        SYS_readlinkat,
        SYS_renameat,
        SYS_renameat2,
        SYS_unlinkat,
        SYS_fchmod,
        SYS_getrandom,
        SYS_clock_gettime,
        SYS_brk,
        SYS_mmap,
        SYS_munmap,
        SYS_futex,
        SYS_exit_group,
        SYS_rt_sigreturn,
        SYS_sigaltstack, /* AddressSanitizer asks at _exit(), and asks again for ever */
#if defined(__x86_64__)
        SYS_stat,
        SYS_lstat,
        SYS_open,
#endif
    };
    const struct kiln_call_filter filter = {
        .calls = allowed, .n_calls = KILN_ARRAY_LEN(allowed), .refused_errno = ENOSYS};
    int r = kiln_capabilities_keep(KILN_CAP(CAP_DAC_READ_SEARCH) | KILN_CAP(CAP_DAC_OVERRIDE));

    if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        r = -errno;
    if (r == 0)
        (void)!kiln_calls_confine(&filter); /* a kernel without filters: the rest holds */
    return r;
}

/*
 * What might block its reader is not passed on, nor a file that the user linked into a directory of
 * its own.
 */
static int check(const struct kiln_keeper_opts *opts, int dir, int fd)
{
    struct stat st, in;

    if (fstat(fd, &st) == 0 && fstat(dir, &in) == 0 &&
        (S_ISDIR(st.st_mode) ||
         (S_ISREG(st.st_mode) &&
          (st.st_nlink < 2 || in.st_uid != opts->user || st.st_uid == opts->user))))
        return fd;
    close(fd);
    return -EACCES;
}

static int open_one(const struct kiln_keeper_opts *opts, const char *path)
{
    struct kiln_path_end end;
    int r = kiln_path_resolve(path, opts->user, &end), fd;

    if (r < 0)
        return r;
    fd = openat(end.dir, end.name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);
    r = fd < 0 ? -errno : check(opts, end.dir, fd);
    close(end.dir);
    return r;
}

static int open_listed(const struct kiln_keeper_opts *opts, const char *path)
{
    for (uint32_t i = 0; i < opts->n_read; i++)
        if (strcmp(opts->read[i], path) == 0)
            return open_one(opts, opts->read[i]);
    return -EACCES;
}

/* With the mode of the file that it replaces. */
static int fill(int fd, const struct kiln_path_end *end, struct kiln_str text)
{
    struct stat st;
    int r = kiln_fd_write(fd, text);

    if (r < 0)
        return r;
    if (fstatat(end->dir, end->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    return fchmod(fd, st.st_mode & 07777) < 0 ? -errno : 0;
}

/* Devices, and what is no file, the server writes to itself. */
static bool can_be_replaced(const struct kiln_path_end *end)
{
    struct stat st;

    return fstatat(end->dir, end->name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? errno == ENOENT
                                                                      : S_ISREG(st.st_mode);
}

static int replace(const struct kiln_path_end *end, struct kiln_str text)
{
    char temporary[NAME_MAX + 16];
    uint32_t number;
    int fd, r;

    if (!can_be_replaced(end))
        return -EACCES;
    if (getrandom(&number, sizeof(number), 0) != sizeof(number))
        return -EAGAIN;
    snprintf(temporary, sizeof(temporary), "%.200s.%08x", end->name, number);
    fd = openat(end->dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0)
        return -errno;
    r = fill(fd, end, text);
    close(fd);
    if (r == 0 && renameat(end->dir, temporary, end->dir, end->name) < 0)
        r = -errno;
    if (r < 0)
        unlinkat(end->dir, temporary, 0);
    return r;
}

static int write_file(const struct kiln_keeper_opts *opts, struct kiln_str text)
{
    struct kiln_path_end end;
    int r = kiln_path_resolve(opts->write, opts->user, &end);

    if (r < 0)
        return r;
    r = replace(&end, text);
    close(end.dir);
    return r;
}

static int remove_socket(const struct kiln_keeper_opts *opts, const char *path)
{
    struct kiln_path_end end;
    struct stat st;
    int r = kiln_path_resolve(path, opts->user, &end);

    if (r < 0)
        return r;
    if (fstatat(end.dir, end.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        r = -errno;
    else if (!S_ISSOCK(st.st_mode))
        r = -EACCES;
    else if (unlinkat(end.dir, end.name, 0) < 0)
        r = -errno;
    close(end.dir);
    return r;
}

static int remove_listed(const struct kiln_keeper_opts *opts, const char *path)
{
    for (uint32_t i = 0; i < KILN_KEEPER_SOCKETS_MAX; i++)
        if (opts->remove[i] && strcmp(opts->remove[i], path) == 0)
            return remove_socket(opts, opts->remove[i]);
    return -EACCES;
}

/* A descriptor, or a negative errno; -EALREADY: done, without a descriptor. */
static int do_it(const struct kiln_keeper_opts *opts, const struct request *request)
{
    int r = -EACCES;

    if (request->what == OPEN)
        return open_listed(opts, request->path);
    if (request->what == WRITE && opts->write && strcmp(opts->write, request->path) == 0)
        r = write_file(opts, (struct kiln_str){request->text, request->text_len});
    else if (request->what == REMOVE)
        r = remove_listed(opts, request->path);
    return r < 0 ? r : -EALREADY;
}

static void serve(int fd, const struct kiln_keeper_opts *opts)
{
    static struct request request;

    while (recv(fd, &request, sizeof(request), 0) == sizeof(request)) {
        int found, r;

        request.path[sizeof(request.path) - 1] = '\0';
        if (request.text_len > sizeof(request.text))
            request.text_len = 0;
        found = do_it(opts, &request);
        r = kiln_descriptor_send(fd, found);
        if (found >= 0)
            close(found);
        if (r < 0)
            break;
    }
}

/* Signals for the group are its parent's: it ends with that. */
_Noreturn static void run_child(int fd, const struct kiln_keeper_opts *opts)
{
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    prctl(PR_SET_NAME, "kiln-files");
    if ((fd == CHILD_SOCKET || dup2(fd, CHILD_SOCKET) >= 0) &&
        kiln_descriptors_close(CHILD_SOCKET + 1, ~0U) == 0 &&
        kiln_descriptors_close(0, CHILD_SOCKET - 1) == 0 && confine() == 0)
        serve(CHILD_SOCKET, opts);
    _exit(0);
}

/* ---- the parent ---- */

int kiln_keeper_start(const struct kiln_keeper_opts *opts)
{
    int pair[2];
    pid_t pid;

    if (opts->n_read > KILN_KEEPER_FILES_MAX)
        return -E2BIG;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    pid = fork();
    if (pid == 0)
        run_child(pair[1], opts);
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        return -errno;
    }
    keeper = pair[0];
    child = pid;
    log_of_death = opts->log;
    kiln_file_open_by(kiln_keeper_open);
    return 0;
}

void kiln_keeper_forget(void)
{
    if (keeper < 0)
        return;
    kiln_file_open_by(NULL);
    close(keeper);
    keeper = -1;
}

void kiln_keeper_stop(void)
{
    if (keeper < 0)
        return;
    kiln_keeper_forget();
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* With the lock. */
static void note_death(void)
{
    if (log_of_death)
        kiln_log(log_of_death, KILN_LOG_ERROR,
                 "the process kiln-files died: tokens, certificates and rules that only root can "
                 "read are not read again; restart Kiln",
                 NULL);
    log_of_death = NULL;
}

static int request(enum what what, const char *path, struct kiln_str text)
{
    static struct request request; /* under the lock */
    int r;

    if (keeper < 0 || strlen(path) >= sizeof(request.path) || text.len > sizeof(request.text))
        return -EACCES;
    pthread_mutex_lock(&lock);
    request = (struct request){.what = what, .text_len = (uint32_t)text.len};
    memcpy(request.path, path, strlen(path));
    if (text.len)
        memcpy(request.text, text.ptr, text.len);
    r = send(keeper, &request, sizeof(request), MSG_NOSIGNAL) < 0 ? -EPIPE
                                                                  : kiln_descriptor_receive(keeper);
    if (r == -EPIPE)
        note_death();
    pthread_mutex_unlock(&lock);
    return r == -EALREADY ? 0 : r;
}

int kiln_keeper_open(const char *path)
{
    return request(OPEN, path, KILN_STR_NONE);
}

int kiln_keeper_write(const char *path, struct kiln_str text)
{
    return request(WRITE, path, text);
}

int kiln_keeper_remove(const char *path)
{
    return request(REMOVE, path, KILN_STR_NONE);
}
