/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program of one thread with a heap whose every block it checks: allocations, shared pointers,
 * forks, libraries that come and go.  It starts its first threads last, and none with a third
 * argument.
 *
 *   one_thread_heap THOUSANDS PLUGIN [guarded]
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <vector>

enum { LIVE = 4096, FORKS = 40, OPENED = 40, THREADS = 4, COUNTED = 200000 };

static unsigned char *blocks[LIVE];
static size_t sizes[LIVE];
static unsigned long long noise = 88172645463325252ull;
static long counter;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static unsigned draw()
{
    noise ^= noise << 13;
    noise ^= noise >> 7;
    noise ^= noise << 17;
    return (unsigned)(noise >> 32);
}

static void spoil(const char *what)
{
    fprintf(stderr, "%s\n", what);
    _exit(67);
}

static void check_block(unsigned i)
{
    unsigned char mark = (unsigned char)(i * 31 + sizes[i]);

    if (blocks[i][0] != mark || blocks[i][sizes[i] / 2] != mark || blocks[i][sizes[i] - 1] != mark)
        spoil("a block is not what it was");
}

static void churn(long times)
{
    for (long n = 0; n < times; n++) {
        unsigned i = draw() % LIVE;

        if (blocks[i])
            check_block(i);
        free(blocks[i]);
        sizes[i] = 1 + draw() % (n % 64 ? 300 : 9000);
        blocks[i] = (unsigned char *)malloc(sizes[i]);
        memset(blocks[i], (int)(unsigned char)(i * 31 + sizes[i]), sizes[i]);
    }
}

static void share()
{
    std::shared_ptr<long> first = std::make_shared<long>(7);
    std::vector<std::shared_ptr<long>> all;

    for (int i = 0; i < 100000; i++)
        all.push_back(first);
    printf("shared by %ld\n", first.use_count());
}

static void fork_often()
{
    for (int i = 0; i < FORKS; i++) {
        pid_t child = fork();
        int status;

        if (child == 0) {
            churn(300);
            _exit(0);
        }
        waitpid(child, &status, 0);
        if (status)
            spoil("a child is not what it should be");
        churn(1000);
    }
}

static void open_often(const char *plugin)
{
    for (int i = 0; i < OPENED; i++) {
        void *library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);

        if (!library)
            spoil(dlerror());
        churn(2000);
        dlclose(library);
    }
}

static void *count(void *arg)
{
    for (int i = 0; i < COUNTED; i++) {
        char *block = (char *)malloc(100 + (size_t)i % 100);

        block[0] = 1;
        pthread_mutex_lock(&lock);
        counter += block[0];
        pthread_mutex_unlock(&lock);
        free(block);
    }
    return arg;
}

static void begin_threads()
{
    pthread_t threads[THREADS];

    for (pthread_t &thread : threads)
        pthread_create(&thread, nullptr, count, nullptr);
    for (pthread_t &thread : threads)
        pthread_join(thread, nullptr);
    printf("%ld\n", counter);
}

int main(int argc, char **argv)
{
    long thousands = argc > 1 ? atol(argv[1]) : 1000;

    churn(thousands * 1000);
    share();
    fork_often();
    open_often(argv[2]);
    if (argc > 3)
        return 0; /* the allocator's guard takes the program's threads for ours */
    begin_threads();
    churn(10000);
    return 0;
}
