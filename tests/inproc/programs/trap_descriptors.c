/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that knows its descriptors by number, as shells and daemons do: it closes all that it
 * has not opened itself, counts on the lowest free one to be the next, and on those it has open to
 * stay what they are, in its children too.  Prints how often that did not hold.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FIRST = 3, LAST = 64, FORKS = 40, FOR_MS = 1500 };

static int failures, at_first;

static void expect(int holds)
{
    failures += !holds;
}

static long now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void close_all(void)
{
    for (int fd = FIRST; fd <= LAST; fd++)
        close(fd);
}

/* Bytes go round in a pipe that nobody else has a hand on; its end is seen as soon as it is there.
 */
static void use_pipe(void)
{
    int ends[2];
    char byte = 'x';

    expect(pipe(ends) == 0 && ends[0] == FIRST && ends[1] == FIRST + 1);
    expect(write(ends[1], &byte, 1) == 1 && read(ends[0], &byte, 1) == 1 && byte == 'x');
    expect(close(ends[1]) == 0);
    expect(read(ends[0], &byte, 1) == 0);
    expect(close(ends[0]) == 0);
}

/* As a shell does before it executes something. */
static void replace_input(void)
{
    int kept = dup(STDIN_FILENO), null;

    expect(kept == FIRST);
    expect(close(STDIN_FILENO) == 0);
    null = open("/dev/null", O_RDONLY);
    expect(null == STDIN_FILENO);
    if (null > STDIN_FILENO)
        close(null);
    expect(dup2(kept, STDIN_FILENO) == STDIN_FILENO);
    expect(close(kept) == 0);
}

static int count_open(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int n = 0;

    while (readdir(folder))
        n++;
    closedir(folder);
    return n - 3; /* ".", "..", and the folder's own */
}

/* What the parent has open is what the child finds, and nothing else. */
static void look_in_child(void)
{
    int ends[2], status = 0;
    pid_t pid;

    expect(pipe(ends) == 0);
    pid = fork();
    if (pid == 0)
        _exit(fcntl(ends[0], F_GETFD) < 0 || fcntl(ends[1], F_GETFD) < 0 ||
              count_open() != at_first + 2);
    expect(waitpid(pid, &status, 0) == pid && status == 0);
    close(ends[0]);
    close(ends[1]);
}

static void *blocks[1024];

static void allocate(unsigned turn)
{
    free(blocks[turn % 1024]);
    blocks[turn % 1024] = malloc(turn % 4000 + 1);
}

int main(void)
{
    long until_ms = now_ms() + FOR_MS;

    close_all();
    at_first = count_open();
    for (unsigned turn = 0; now_ms() < until_ms; turn++) {
        use_pipe();
        replace_input();
        allocate(turn);
    }
    for (int i = 0; i < FORKS; i++)
        look_in_child();
    expect(count_open() == at_first);
    printf("%d failures\n", failures);
    return failures != 0;
}
