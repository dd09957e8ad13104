/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that gives up system calls which no program needs, with death for whoever uses one: it
 * goes on allocating, on a stack that it made, while others come and go, and forks.  Timers are
 * among them, once it has run for long enough that whoever samples its CPU time has made some.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { STACK = 64 << 10, BEFORE_NS = 300000000 };

static sem_t over;

static char *volatile blocks[8];

static void churn(int n)
{
    char *mine[8] = {0};

    for (int i = 0; i < n; i++) {
        free(mine[i % 8]);
        mine[i % 8] = malloc((size_t)(i % 700) + 1);
        blocks[i % 8] = mine[i % 8]; /* so that nobody leaves it out */
    }
    for (int i = 0; i < 8; i++)
        free(mine[i]);
}

static void far_away(void)
{
    churn(300);
}

/* On a stack that is gone afterwards. */
static void *elsewhere(void *arg)
{
    for (int i = 0; i < 20; i++) {
        void *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ucontext_t back, there;

        getcontext(&there);
        there.uc_stack.ss_sp = stack;
        there.uc_stack.ss_size = STACK;
        there.uc_link = &back;
        makecontext(&there, far_away, 0);
        swapcontext(&back, &there);
        munmap(stack, STACK);
    }
    return arg;
}

static void churn_for(long ns)
{
    struct timespec since, now;

    clock_gettime(CLOCK_MONOTONIC, &since);
    do {
        churn(1000);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - since.tv_sec) * 1000000000 + now.tv_nsec - since.tv_nsec < ns);
}

/* From before the filter is there until after. */
static void *outlive(void *arg)
{
    churn_for(BEFORE_NS);
    while (sem_wait(&over) != 0)
        ;
    return arg;
}

static int give_up(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 5, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_timer_create, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_timer_settime, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_timer_delete, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof(code) / sizeof(*code), code};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

int main(void)
{
    pthread_t threads[3], oldest;
    int status = -1;
    pid_t pid;

    sem_init(&over, 0, 0);
    pthread_create(&oldest, NULL, outlive, NULL);
    churn_for(BEFORE_NS);
    if (!give_up())
        return 1;
    sem_post(&over);
    pthread_join(oldest, NULL);
    elsewhere(NULL);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, elsewhere, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    pid = fork();
    if (pid == 0) {
        usleep(200000);
        elsewhere(NULL);
        _exit(4);
    }
    waitpid(pid, &status, 0);
    printf("the child ends with %x\n", (unsigned)status);
    return 0;
}
