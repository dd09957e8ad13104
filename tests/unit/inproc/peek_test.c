/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is there, that is not, and in a process that has given up system calls. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inproc/thread/line.h"
#include "inproc/unwind/peek.h"
#include "test.h"

/* Two pages, of which the second is gone: what is at the end of the first. */
static uint64_t brink(void)
{
    uint8_t *pages = mmap(NULL, (size_t)KILN_IN_PAGE * 2, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(pages != MAP_FAILED);
    memset(pages, 'k', KILN_IN_PAGE);
    CHECK_OK(munmap(pages + KILN_IN_PAGE, KILN_IN_PAGE));
    return (uintptr_t)pages + KILN_IN_PAGE - 16;
}

static bool reads_what_is_there(uint64_t at)
{
    char got[64] = "";

    return kiln_in_peek(at, got, 16) == 16 && memcmp(got, "kkkkkkkkkkkkkkkk", 16) == 0 &&
           kiln_in_peek(at, got, 64) == 16 && kiln_in_peek(at + 16, got, 8) == 0 &&
           kiln_in_peek(8, got, 8) == 0 && kiln_in_peek(UINT64_MAX - 4, got, 8) == 0 &&
           kiln_in_peek(UINT64_MAX / 2, got, 8) == 0;
}

TEST(peek, reads_what_is_there_and_nothing_else)
{
    CHECK(reads_what_is_there(brink()));
}

TEST(peek, tells_whether_a_word_is_there)
{
    uint64_t at = brink();

    CHECK(kiln_in_peek_is_there(at));
    CHECK(!kiln_in_peek_is_there(at + 16));
    CHECK(!kiln_in_peek_is_there(0));
}

/* From now on one system call ends like this. */
static bool forbid(uint32_t action)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, action),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(code) / sizeof(*code), code};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static bool reads_nothing(uint64_t at)
{
    char got[16];

    return kiln_in_peek(at, got, sizeof(got)) == 0;
}

/* How a child ends that lives so, and reads in a helper or in a hook. */
static int child_with(uint32_t action, bool in_hook, bool (*is_good)(uint64_t at), uint64_t at)
{
    static char block;
    pid_t child = fork();
    int status;

    if (child == 0) {
        if (!forbid(action))
            _exit(2);
        kiln_in_line.thread = in_hook ? (void *)&block : NULL;
        kiln_in_peek_look_around();
        _exit(is_good(at) ? 0 : 1);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    return status;
}

TEST(peek, does_without_the_call_where_a_sandbox_refuses_or_kills)
{
    uint64_t at = brink();

    CHECK_EQ(child_with(SECCOMP_RET_ERRNO | 1, false, reads_what_is_there, at), 0);
    CHECK_EQ(child_with(SECCOMP_RET_KILL_PROCESS, false, reads_what_is_there, at), 0);
}

TEST(peek, leaves_threads_of_the_program_alone_there)
{
    uint64_t at = brink();

    CHECK_EQ(child_with(SECCOMP_RET_ERRNO | 1, true, reads_nothing, at), 0);
    CHECK_EQ(child_with(SECCOMP_RET_KILL_PROCESS, true, reads_nothing, at), 0);
}

TEST(peek, uses_the_call_where_a_filter_lets_it_pass)
{
    CHECK_EQ(child_with(SECCOMP_RET_ALLOW, true, reads_what_is_there, brink()), 0);
}

/* The second look finds a filter that was not there at the first. */
static bool is_careful_with_a_new_one(uint64_t at)
{
    return reads_what_is_there(at) && forbid(SECCOMP_RET_ALLOW) &&
           (kiln_in_peek_look_around(), reads_nothing(at));
}

TEST(peek, tries_no_filter_that_came_later)
{
    CHECK_EQ(child_with(SECCOMP_RET_ALLOW, true, is_careful_with_a_new_one, brink()), 0);
}
