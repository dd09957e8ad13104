// SPDX-License-Identifier: Apache-2.0
// Allocations before main and after it: constructors of each priority, .preinit_array, static
// objects, exceptions, thread_local objects, atexit, destructors that print.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static char *first, *early;

static void before_everything(int, char **, char **)
{
    first = strdup("preinit");
}
__attribute__((section(".preinit_array"),
               used)) static void (*preinit)(int, char **, char **) = before_everything;

__attribute__((constructor(101))) static void before_most()
{
    early = static_cast<char *>(calloc(1, 100000));
    strcpy(early, "constructor 101");
}

struct Book {
    std::map<std::string, std::vector<int>> pages;
    Book()
    {
        for (int i = 0; i < 1000; i++)
            pages["page " + std::to_string(i)].resize(i);
    }
    ~Book()
    {
        pages.erase("page 7");
        printf("book of %zu\n", pages.size());
    }
};
static Book book;
static thread_local std::vector<std::string> notes;

static int throws(int depth)
{
    std::string held(100, 'x');

    if (depth == 0)
        throw std::runtime_error("thrown " + held.substr(0, 3));
    return throws(depth - 1) + static_cast<int>(held.size());
}

struct alignas(256) Wide {
    char bytes[1000];
};

static void at_exit()
{
    delete new std::string(5000, 'e');
    puts("atexit");
}

int main()
{
    int caught = 0;

    printf("%s, %s\n", first, early);
    free(first);
    free(early);
    atexit(at_exit);
    for (int i = 0; i < 2000; i++) {
        try {
            throws(i % 30);
        } catch (const std::exception &e) {
            caught += strcmp(e.what(), "thrown xxx") == 0;
        }
    }
    printf("caught %d\n", caught);
    for (int t = 0; t < 20; t++)
        std::thread([] {
            for (int i = 0; i < 100; i++)
                notes.push_back(std::string(i * 10, 'n'));
        }).join();
    std::vector<std::unique_ptr<Wide>> wide;
    size_t aligned = 0;
    for (int i = 0; i < 300; i++) {
        wide.push_back(std::make_unique<Wide>());
        aligned += reinterpret_cast<size_t>(wide.back().get()) % 256 == 0;
    }
    printf("aligned %zu\n", aligned);
    try {
        volatile size_t many = static_cast<size_t>(1) << 62;
        wide.resize(many / sizeof(Wide) / 16 + many % 2);
    } catch (const std::exception &) {
        puts("no memory");
    }
    return 0;
}
