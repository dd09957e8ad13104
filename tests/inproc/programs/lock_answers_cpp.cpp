/* flags: -std=c++20 */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The locks of C++, which stand on those of C: one line each, the same whatever is preloaded.
 */
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <future>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace
{

template <typename Lock> unsigned count_with(Lock &lock)
{
    std::vector<std::thread> crowd;
    unsigned n = 0;

    for (int i = 0; i < 4; i++)
        crowd.emplace_back([&] {
            for (int j = 0; j < 2000; j++) {
                std::lock_guard guard(lock);
                n++;
            }
        });
    for (auto &thread : crowd)
        thread.join();
    return n;
}

void mutexes()
{
    std::mutex plain;
    std::recursive_mutex recursive;
    std::timed_mutex timed;
    std::shared_mutex shared;
    std::shared_timed_mutex shared_timed;

    std::printf("mutex %u\n", count_with(plain));
    std::printf("recursive_mutex %u\n", count_with(recursive));
    std::printf("timed_mutex %u\n", count_with(timed));
    std::printf("shared_mutex %u\n", count_with(shared));
    std::printf("shared_timed_mutex %u\n", count_with(shared_timed));
    std::lock_guard one(timed);
    std::shared_lock two(shared_timed);
    std::thread([&] {
        std::printf("try_lock_for %d\n", timed.try_lock_for(2ms));
        std::printf("try_lock_until %d\n",
                    timed.try_lock_until(std::chrono::system_clock::now() + 2ms));
        std::printf("shared, for a writer %d\n", shared_timed.try_lock_for(2ms));
        std::printf("shared, for a reader %d\n", shared_timed.try_lock_shared_for(2ms));
        shared_timed.unlock_shared();
    }).join();
}

void conditions()
{
    std::mutex lock;
    std::condition_variable changed;
    std::condition_variable_any changed_any;
    std::unique_lock guard(lock);
    int turn = 0;

    std::printf("wait_for %d\n", changed.wait_for(guard, 2ms, [] { return false; }));
    std::printf("wait_until %d\n", changed.wait_until(guard, std::chrono::system_clock::now() +
                                                                 2ms) == std::cv_status::timeout);
    std::printf("any wait_for %d\n", changed_any.wait_for(guard, 2ms) == std::cv_status::timeout);
    std::thread other([&] {
        for (int i = 0; i < 500; i++) {
            std::unique_lock own(lock);
            changed.wait(own, [&] { return turn % 2 == 1; });
            turn++;
            changed.notify_all();
        }
    });
    for (int i = 0; i < 500; i++) {
        changed.wait(guard, [&] { return turn % 2 == 0; });
        turn++;
        changed.notify_all();
    }
    guard.unlock();
    other.join();
    std::printf("turns %d\n", turn);
}

void exceptions()
{
    std::mutex lock;
    std::once_flag once;
    int tries = 0;

    for (int i = 0; i < 100; i++) {
        try {
            std::lock_guard guard(lock);
            throw std::runtime_error("out of a lock");
        } catch (const std::runtime_error &) {
            tries++;
        }
    }
    std::printf("thrown %d, free %d\n", tries, lock.try_lock());
    try {
        std::call_once(once, [] { throw 1; });
    } catch (int) {
        std::call_once(once, [&] { tries = 0; });
    }
    std::printf("once %d\n", tries);
    auto future = std::async(std::launch::async, []() -> int { throw std::string("elsewhere"); });
    try {
        future.get();
    } catch (const std::string &text) {
        std::printf("%s\n", text.c_str());
    }
    try {
        std::thread().join();
    } catch (const std::system_error &error) {
        std::printf("%s\n", error.code().message().c_str());
    }
}

struct last_words {
    ~last_words()
    {
        std::lock_guard guard(lock);
        said++;
    }
    static inline std::mutex lock;
    static inline int said = 0;
};
thread_local last_words words;

void ends()
{
    std::vector<std::thread> crowd;

    for (int i = 0; i < 50; i++)
        crowd.emplace_back([] { (void)&words; });
    for (auto &thread : crowd)
        thread.join();
    std::printf("last words %d\n", last_words::said);
}

} // namespace

int main()
{
    mutexes();
    conditions();
    exceptions();
    ends();
    return 0;
}
