/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that end with a jump: into malloc(), operator new and pthread_mutex_unlock(). */
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <unistd.h>

struct order {
    char text[3000];
};

static void *volatile kept;
static std::mutex lock;
static std::atomic<bool> over;

extern "C" {
__attribute__((noinline)) void *wrap_malloc()
{
    return malloc(2000);
}

__attribute__((noinline)) order *make_order()
{
    return new order;
}

__attribute__((noinline)) void *take_note()
{
    void *volatile note = malloc(1000);

    return note;
}

__attribute__((noinline)) void write_journal()
{
    std::lock_guard<std::mutex> guard(lock);

    usleep(5000);
}

__attribute__((noinline)) void read_balance()
{
    std::lock_guard<std::mutex> guard(lock);
}
}

int main()
{
    std::thread reader([] {
        while (!over) {
            read_balance();
            usleep(100);
        }
    });

    for (int i = 0; i < 1000; i++) {
        kept = wrap_malloc();
        kept = make_order();
        kept = take_note();
        if (i % 50 == 0)
            usleep(1000); /* nobody shall have to hurry */
    }
    for (int i = 0; i < 50; i++) {
        write_journal();
        usleep(1000);
    }
    over = true;
    reader.join();
    return 0;
}
