// SPDX-License-Identifier: Apache-2.0
// Templates and lambdas: std::sort and std::map called through functions that stay.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "burn.h"

template <typename T> struct Sorter {
    __attribute__((noinline)) void sort_values(std::vector<T> &values)
    {
        std::sort(values.begin(), values.end(), [](const T &a, const T &b) { return b < a; });
        STAY;
    }
};

__attribute__((noinline)) static void fill_map(std::map<std::string, int> &map, unsigned seed)
{
    for (unsigned i = 0; i < 2000; i++)
        map["key-" + std::to_string((seed + i * 7919u) % 10007u)]++;
    STAY;
}

KEPT void outer(unsigned seed)
{
    std::vector<unsigned> values(20000);
    for (auto &value : values)
        value = seed = seed * 1664525u + 1013904223u;
    Sorter<unsigned>().sort_values(values);
    std::map<std::string, int> map;
    fill_map(map, seed);
    STAY;
}

int main(int argc, char **argv)
{
    unsigned seed = 1;
    for (uint64_t end = end_ns(argc, argv); cpu_ns() < end;)
        outer(seed++);
    return 0;
}
