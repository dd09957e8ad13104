/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that fetches one file.  It gives up privileges and everything that is not needed to
 * connect, to read what libcurl and OpenSSL read (resolv.conf, certificates), and to write into one
 * descriptor that is open already: a seccomp filter refuses to start or trace programs, to make,
 * change or remove files, and to open any for writing.
 */
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/calls.h"
#include "base/capability.h"
#include "base/file.h"
#include "naming/fetch.h"
#include "naming/fetch_int.h"

enum {
    NOBODY = 65534,
    FILES_MAX = 64,
    REDIRECTS = 3,
    CONNECT_S = 10,
    SLOW_BYTES = 1024, /* a second, for so many seconds: given up */
    SLOW_S = 30,
};

/* ---- giving up ---- */

/* Numbers of system calls that are refused. */
static const uint32_t refused[] = {
    SYS_execve,
    SYS_execveat,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_openat2,
    SYS_unlinkat,
    SYS_renameat2,
    SYS_renameat,
    SYS_linkat,
    SYS_symlinkat,
    SYS_mkdirat,
    SYS_mknodat,
    SYS_fchmod,
    SYS_fchmodat,
    SYS_fchown,
    SYS_fchownat,
    SYS_truncate,
    SYS_mount,
    SYS_umount2,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_keyctl,
    SYS_add_key,
    SYS_io_uring_setup,
    SYS_userfaultfd,
    SYS_setns,
    SYS_unshare,
    SYS_init_module,
    SYS_finit_module,
    SYS_kexec_load,
    SYS_reboot,
    SYS_chroot,
    SYS_pivot_root,
    SYS_memfd_create,
    SYS_kill,
    SYS_tkill,
    SYS_pidfd_open,
    SYS_pidfd_getfd,
#if defined(__x86_64__)
    SYS_creat,
    SYS_unlink,
    SYS_rename,
    SYS_link,
    SYS_symlink,
    SYS_mkdir,
    SYS_rmdir,
    SYS_mknod,
    SYS_chmod,
    SYS_chown,
    SYS_lchown,
    SYS_fork,
    SYS_vfork,
#endif
};

static int filter(void)
{
    const uint32_t writes = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY);
    const struct kiln_call_rule rules[] = {
        {SYS_openat, 2, KILN_CALL_IF_NONE, writes},
#if defined(__x86_64__)
        {SYS_open, 1, KILN_CALL_IF_NONE, writes},
#endif
    };
    const struct kiln_call_filter filter = {.calls = refused,
                                            .n_calls = KILN_ARRAY_LEN(refused),
                                            .rules = rules,
                                            .n_rules = KILN_ARRAY_LEN(rules),
                                            .all_but = true,
                                            .refused_errno = EPERM};

    return kiln_calls_confine(&filter);
}

static int limit(int what, uint64_t value)
{
    struct rlimit to = {value, value};

    return setrlimit((__rlimit_resource_t)what, &to) < 0 ? -errno : 0;
}

/* In a container there may be no such user, or no right to become one. */
static int drop_rights(void)
{
    kiln_capabilities_bound(0);
    if (geteuid() == 0) {
        if (setgroups(0, NULL) < 0 && errno != EPERM)
            return -errno;
        if (setresgid(NOBODY, NOBODY, NOBODY) < 0 && errno != EINVAL && errno != EPERM)
            return -errno;
        if (setresuid(NOBODY, NOBODY, NOBODY) < 0 && errno != EINVAL && errno != EPERM)
            return -errno;
    }
    return kiln_capabilities_keep(0);
}

static int give_up(uint64_t file_bytes, uint64_t seconds)
{
    int r = syscall(SYS_close_range, KILN_FETCH_FILE + 1, ~0U, 0) < 0 ? -errno : 0;

    (void)setsid();
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    if (r == 0)
        r = limit(RLIMIT_FSIZE, file_bytes);
    if (r == 0)
        r = limit(RLIMIT_CORE, 0);
    if (r == 0)
        r = limit(RLIMIT_CPU, seconds);
    if (r == 0)
        r = limit(RLIMIT_NOFILE, FILES_MAX);
    if (r == 0)
        r = drop_rights();
    if (r == 0 &&
        (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
         prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0))
        r = -errno;
    return r < 0 ? r : filter();
}

/* ---- fetching ---- */

struct fetching {
    CURL *curl;
    uint64_t received, most;
    int end; /* enum kiln_fetch_end, once that is decided */
};

/* Only what is the file itself: of a refusal, nothing. */
static size_t take(char *data, size_t size, size_t n, void *context)
{
    struct fetching *fetching = context;
    long status = 0;

    curl_easy_getinfo(fetching->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status != 200)
        return size * n;
    if (size * n > fetching->most - fetching->received) {
        fetching->end = KILN_FETCH_TOO_LARGE;
        return 0;
    }
    if (kiln_fd_write(KILN_FETCH_FILE, (struct kiln_str){data, size * n}) < 0) {
        fetching->end = KILN_FETCH_DISK;
        return 0;
    }
    fetching->received += size * n;
    return size * n;
}

static void set_options(struct fetching *fetching, const char *url, long seconds)
{
    CURL *h = fetching->curl;

    curl_easy_setopt(h, CURLOPT_URL, url);
    curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(h, CURLOPT_REDIR_PROTOCOLS_STR,
                     strncmp(url, "https:", 6) == 0 ? "https" : "http,https");
    curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(h, CURLOPT_MAXREDIRS, (long)REDIRECTS);
    curl_easy_setopt(h, CURLOPT_TIMEOUT, seconds);
    curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
    curl_easy_setopt(h, CURLOPT_LOW_SPEED_LIMIT, (long)SLOW_BYTES);
    curl_easy_setopt(h, CURLOPT_LOW_SPEED_TIME, (long)SLOW_S);
    curl_easy_setopt(h, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)fetching->most);
    curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(h, CURLOPT_USERAGENT, "kiln/" KILN_VERSION);
    curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(h, CURLOPT_WRITEDATA, fetching);
}

static int end_of(const struct fetching *fetching, CURLcode code)
{
    long status = 0;

    if (fetching->end)
        return fetching->end;
    curl_easy_getinfo(fetching->curl, CURLINFO_RESPONSE_CODE, &status);
    switch (code) {
    case CURLE_OK:
        break;
    case CURLE_OPERATION_TIMEDOUT:
        return KILN_FETCH_TIMEOUT;
    case CURLE_FILESIZE_EXCEEDED:
        return KILN_FETCH_TOO_LARGE;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
        return KILN_FETCH_TRUST;
    default:
        return KILN_FETCH_NETWORK;
    }
    if (status == 200)
        return fetching->received ? KILN_FETCH_WELL : KILN_FETCH_ABSENT;
    return status == 404 || status == 410 ? KILN_FETCH_ABSENT : KILN_FETCH_REFUSED;
}

int kiln_fetch_child(int argc, char **argv)
{
    struct fetching fetching = {.received = 0};
    uint64_t seconds;
    int end = KILN_FETCH_UNSAFE;

    if (argc != 3 || kiln_str_parse_u64(kiln_str_of(argv[1]), &fetching.most) < 0 ||
        kiln_str_parse_u64(kiln_str_of(argv[2]), &seconds) < 0 || seconds > 86400)
        return KILN_FETCH_UNSAFE;
    if (give_up(fetching.most, seconds) < 0)
        return KILN_FETCH_UNSAFE;
    curl_global_init(CURL_GLOBAL_DEFAULT);
    fetching.curl = curl_easy_init();
    if (fetching.curl) {
        set_options(&fetching, argv[0], (long)seconds);
        end = end_of(&fetching, curl_easy_perform(fetching.curl));
        curl_easy_cleanup(fetching.curl);
    }
    curl_global_cleanup();
    return end;
}
