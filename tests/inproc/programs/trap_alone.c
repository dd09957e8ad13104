/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program of one thread that gives up being root as such programs do: it keeps its capabilities
 * over the change of the user, takes them up again, on its only thread, and changes the group with
 * them.  A child of it enters namespaces that only a process of one thread may enter.
 */
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534, TURNS = 500 };

int capset(void *header, const void *data);

static char *volatile last;

static void churn(int turns)
{
    for (int i = 0; i < turns; i++) {
        for (int j = 0; j < 100; j++) {
            last = malloc((size_t)j * 20 + 1);
            free(last);
        }
        usleep(1000);
    }
}

static void tell(const char *what, int r)
{
    printf("%s: %s\n", what, r == 0 ? "well" : strerrorname_np(errno));
    fflush(stdout);
}

static int take_up(unsigned capabilities)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{capabilities, capabilities, 0}, {0, 0, 0}};

    return capset(&header, data);
}

/* Late enough for libkiln to go on in a child. */
static void enter_namespaces(void)
{
    churn(150);
    tell("users", unshare(CLONE_NEWUSER));
    tell("mounts", unshare(CLONE_NEWNS));
    churn(5);
}

int main(void)
{
    int status;
    pid_t child;

    churn(20);
    child = fork();
    if (child == 0) {
        enter_namespaces();
        return 0;
    }
    waitpid(child, &status, 0);
    printf("child %x\n", (unsigned)status);
    tell("keep", prctl(PR_SET_KEEPCAPS, 1));
    tell("user", setresuid(NOBODY, NOBODY, NOBODY));
    tell("capabilities", take_up(1u << CAP_SETGID | 1u << CAP_SETUID));
    tell("group", setresgid(NOBODY, NOBODY, NOBODY));
    tell("groups", setgroups(0, NULL));
    tell("no capabilities", take_up(0));
    tell("root again", setuid(0));
    churn(TURNS);
    printf("%d %d\n", (int)getuid(), (int)getegid());
    return 0;
}
