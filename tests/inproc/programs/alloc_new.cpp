/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every form of operator new and delete, in ways that matter; exits with 1 if something was not as
 * it should be.  With ROUNDS as an argument instead: make_objects() makes a known number of
 * objects, of which all are kept, and it prints
 *
 *   make_objects 200 20000 20000
 */
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

static int failures;

#define EXPECT(condition) expect((condition), #condition, __LINE__)

static void expect(bool holds, const char *what, int line)
{
    if (!holds) {
        std::fprintf(stderr, "line %d: not so: %s\n", line, what);
        failures++;
    }
}

template <std::size_t Alignment> struct alignas(Alignment) Aligned {
    char bytes[3 * Alignment];
};

template <std::size_t Alignment> static void check_aligned()
{
    using T = Aligned<Alignment>;
    std::unique_ptr<T> one(new T);
    std::unique_ptr<T[]> many(new T[5]);
    T *quiet = new (std::nothrow) T;

    EXPECT(reinterpret_cast<std::uintptr_t>(one.get()) % Alignment == 0);
    EXPECT(reinterpret_cast<std::uintptr_t>(many.get()) % Alignment == 0);
    EXPECT(quiet && reinterpret_cast<std::uintptr_t>(quiet) % Alignment == 0);
    std::memset(static_cast<void *>(one.get()), 1, sizeof(T));
    delete quiet;
}

/* The volatile keeps compilers from knowing that nobody can have so much. */
static volatile std::size_t too_much = static_cast<std::size_t>(1) << 62;

static void check_failures()
{
    bool thrown = false, thrown_aligned = false;

    try {
        delete[] new char[too_much];
    } catch (const std::bad_alloc &) {
        thrown = true;
    }
    try {
        ::operator delete(::operator new(too_much, std::align_val_t(256)), std::align_val_t(256));
    } catch (const std::bad_alloc &) {
        thrown_aligned = true;
    }
    EXPECT(thrown && thrown_aligned);
    EXPECT(!::operator new(too_much, std::nothrow));
    EXPECT(!::operator new[](too_much, std::nothrow));
}

static void check_forms()
{
    for (std::size_t size = 0; size < 1 << 20; size = size * 3 + 1) {
        void *blocks[] = {::operator new(size), ::operator new[](size),
                          ::operator new(size, std::nothrow), ::operator new[](size, std::nothrow)};

        for (void *block : blocks)
            std::memset(block, 7, size);
        ::operator delete(blocks[0]);
        ::operator delete[](blocks[1]);
        ::operator delete(blocks[2], std::nothrow);
        ::operator delete[](blocks[3], std::nothrow);
        ::operator delete(::operator new(size), size);
        ::operator delete[](::operator new[](size), size);
    }
}

static void check_all()
{
    for (int i = 0; i < 200; i++) {
        std::vector<std::string> texts(100, std::string(100 + i, 'x'));

        check_forms();
        check_failures();
        check_aligned<64>();
        check_aligned<4096>();
        EXPECT(texts.back().size() == static_cast<std::size_t>(100 + i));
    }
}

struct Object {
    char bytes[200];
};

__attribute__((noinline)) static void make_objects(int n)
{
    for (int i = 0; i < n; i++) {
        Object *volatile one = new Object;
        one->bytes[0] = 1;
    }
}

/* At a pace that the library's thread follows with ease. */
static void make_rounds(long rounds)
{
    for (long i = 0; i < rounds; i++) {
        make_objects(10000);
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
    }
    std::printf("make_objects 200 %ld %ld\n", rounds * 10000, rounds * 10000);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        make_rounds(std::strtol(argv[1], nullptr, 10));
        return 0;
    }
    std::thread other(check_all);
    check_all();
    other.join();
    return failures != 0;
}
