/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent can no longer do once it has started, tried in a child that confines itself. */
#include "cli/agent_confine.h"

#include <errno.h>
#include <linux/bpf.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

/* What a call says where the filter lets nobody have it. */
#define REFUSED ENOSYS

static int bpf(enum bpf_cmd command)
{
    union bpf_attr attr = {0};

    return syscall(SYS_bpf, command, &attr, sizeof(attr)) < 0 ? errno : 0;
}

static int load_program(void)
{
    return bpf(BPF_PROG_LOAD);
}

static int make_map(void)
{
    return bpf(BPF_MAP_CREATE);
}

static int load_types(void)
{
    return bpf(BPF_BTF_LOAD);
}

static int read_map(void)
{
    return bpf(BPF_MAP_LOOKUP_ELEM);
}

static int trace(void)
{
    return syscall(SYS_ptrace, PTRACE_ATTACH, getppid(), 0, 0) < 0 ? errno : 0;
}

static int mount_something(void)
{
    return mount("none", "/", NULL, MS_PRIVATE, NULL) < 0 ? errno : 0;
}

static int load_module(void)
{
    return syscall(SYS_finit_module, -1, "", 0) < 0 ? errno : 0;
}

static int set_clock(void)
{
    return syscall(SYS_clock_settime, CLOCK_MONOTONIC, NULL) < 0 ? errno : 0;
}

static int write_memory(void)
{
    return syscall(SYS_process_vm_writev, getppid(), NULL, 0, NULL, 0, 0) < 0 ? errno : 0;
}

/* The error of a call in a child that did as the agent does at its start; -1: it could not. */
static int confined(int (*call)(void))
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        if (kiln_agent_give_up(NULL, NULL) < 0)
            _exit(255);
        kiln_agent_confine(NULL);
        _exit(prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 2 ? call() : 255);
    }
    CHECK(child > 0);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status) == 255 ? -1 : WEXITSTATUS(status);
}

TEST(agent_confine, programs_for_the_kernel_are_loaded_at_the_start_alone)
{
    CHECK(load_program() != REFUSED);
    CHECK_EQ(confined(load_program), REFUSED);
    CHECK_EQ(confined(make_map), REFUSED);
    CHECK_EQ(confined(load_types), REFUSED);
    CHECK(confined(read_map) > 0);
    CHECK(confined(read_map) != REFUSED);
}

TEST(agent_confine, other_processes_and_the_machine_are_left_alone)
{
    if (!KILN_SANITIZED) /* which look for leaks by that */
        CHECK_EQ(confined(trace), REFUSED);
    CHECK_EQ(confined(write_memory), REFUSED);
    CHECK_EQ(confined(mount_something), REFUSED);
    CHECK_EQ(confined(load_module), REFUSED);
    CHECK_EQ(confined(set_clock), REFUSED);
}
