/* SPDX-License-Identifier: Apache-2.0 */
/* Each attempt is made by a process of its own: it must be killed for it. */
#include "symbol/confine.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <lzma.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbol/names.h"
#include "test.h"

enum { SOCKET = 60, SCRATCH, SCRATCH_BYTES = 1 << 16 };

static bool with_scratch;

static int confine(int socket)
{
    struct kiln_confinement to = {
        .fd = SOCKET, .scratch = -1, .memory_bytes = 64 << 20, .files = 16};

    if (dup2(socket, SOCKET) < 0 || dup2(memfd_create("scratch", 0), SCRATCH) < 0)
        return -1;
    if (with_scratch) {
        to.scratch = SCRATCH;
        to.scratch_bytes = SCRATCH_BYTES;
    }
    return kiln_confine(&to);
}

/* How a confined process ended that did this: its signal, or -1 - its exit code. */
static int end_of(int (*attempt)(void))
{
    int pair[2];
    int status;
    pid_t pid;

    CHECK_OK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
    pid = fork();
    if (pid == 0) {
        if (confine(pair[1]) < 0)
            _exit(99);
        _exit(attempt());
    }
    CHECK(pid > 0);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    close(pair[0]);
    close(pair[1]);
    return WIFSIGNALED(status) ? WTERMSIG(status) : -1 - WEXITSTATUS(status);
}

static int do_nothing(void)
{
    return 0;
}

static int open_file(void)
{
    return (int)syscall(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY);
}

static int open_socket(void)
{
    return (int)syscall(SYS_socket, AF_INET, SOCK_STREAM, 0);
}

static int make_process(void)
{
    return (int)syscall(SYS_fork);
}

static int run_program(void)
{
    char *const arguments[] = {"/bin/true", NULL};

    return (int)syscall(SYS_execve, "/bin/true", arguments, NULL);
}

static int read_parent(void)
{
    char byte;
    struct iovec here = {&byte, 1};
    struct iovec there = {(void *)(uintptr_t)&open_file, 1};

    return (int)syscall(SYS_process_vm_readv, getppid(), &here, 1, &there, 1, 0);
}

static int trace_parent(void)
{
    return (int)syscall(SYS_ptrace, PTRACE_ATTACH, 1, NULL, NULL);
}

static int kill_parent(void)
{
    return (int)syscall(SYS_kill, 1, 0);
}

static int map_code(void)
{
    return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
           MAP_FAILED;
}

static int protect_code(void)
{
    return (int)syscall(SYS_mprotect, 0x1000, 4096, PROT_READ | PROT_EXEC);
}

static int be_root(void)
{
    return (int)syscall(SYS_setuid, 0);
}

static int write_scratch(void)
{
    char byte = 0;

    if (pwrite(SCRATCH, "x", 1, SCRATCH_BYTES - 1) != 1 ||
        pread(SCRATCH, &byte, 1, SCRATCH_BYTES - 1) != 1 || byte != 'x')
        return 1;
    return ftruncate(SCRATCH, 0) != 0;
}

static int write_too_much(void)
{
    return (int)pwrite(SCRATCH, "x", 1, SCRATCH_BYTES);
}

static int write_socket(void)
{
    return (int)syscall(SYS_pwrite64, SOCKET, "x", 1, 0);
}

TEST(confine, only_a_scratch_file_may_be_written_and_not_without_end)
{
    CHECK_EQ(end_of(write_scratch), SIGSYS);
    with_scratch = true;
    CHECK_EQ(end_of(write_scratch), -1);
    CHECK_EQ(end_of(write_too_much), SIGXFSZ);
    CHECK_EQ(end_of(write_socket), SIGSYS);
    with_scratch = false;
}

TEST(confine, a_confined_process_can_end)
{
    CHECK_EQ(end_of(do_nothing), -1);
}

TEST(confine, whatever_else_it_tries_kills_it)
{
    CHECK_EQ(end_of(open_file), SIGSYS);
    CHECK_EQ(end_of(open_socket), SIGSYS);
    CHECK_EQ(end_of(make_process), SIGSYS);
    CHECK_EQ(end_of(run_program), SIGSYS);
    CHECK_EQ(end_of(read_parent), SIGSYS);
    CHECK_EQ(end_of(trace_parent), SIGSYS);
    CHECK_EQ(end_of(kill_parent), SIGSYS);
    CHECK_EQ(end_of(map_code), SIGSYS);
    CHECK_EQ(end_of(protect_code), SIGSYS);
    CHECK_EQ(end_of(be_root), SIGSYS);
}

static int allocate(void)
{
    for (size_t size = 16; size <= 16 << 20; size *= 4) {
        char *memory = malloc(size);

        if (!memory)
            return 1;
        memset(memory, 1, size);
        memory = realloc(memory, size * 2);
        free(memory);
    }
    return 0;
}

static int unpack(void)
{
    static uint8_t plain[1 << 16];
    static uint8_t packed[1 << 16];
    size_t n = 0;
    size_t in = 0;
    size_t out = 0;
    uint64_t memory = 1 << 26;

    if (lzma_easy_buffer_encode(1, LZMA_CHECK_CRC64, NULL, plain, sizeof(plain), packed, &n,
                                sizeof(packed)) != LZMA_OK)
        return 1;
    return lzma_stream_buffer_decode(&memory, 0, NULL, packed, &in, n, plain, &out,
                                     sizeof(plain)) != LZMA_OK;
}

static int demangle(void)
{
    struct kiln_demangler *d = NULL;
    struct kiln_str name;

    if (kiln_demangler_new(&d) < 0)
        return 1;
    name = kiln_demangle(d, kiln_str_of("_ZNSt6vectorIiSaIiEE9push_backERKi"));
    return name.ptr[0] != 's';
}

TEST(confine, what_names_need_still_works)
{
    CHECK_EQ(end_of(allocate), -1);
    CHECK_EQ(end_of(unpack), -1);
    CHECK_EQ(end_of(demangle), -1);
}
