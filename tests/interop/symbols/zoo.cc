// SPDX-License-Identifier: Apache-2.0
// Templates, lambdas, unnamed namespaces, virtual functions, constructors, what the library
// inlines.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "zoo.hpp"

namespace
{

struct Counter {
    unsigned calls = 0;
    unsigned operator()(unsigned x)
    {
        return ++calls + zoo::twist<unsigned>(x);
    }
};

unsigned hidden(unsigned x)
{
    return zoo::twist<unsigned long>(x) % 1013;
}

template <class F> unsigned apply(F f, unsigned n)
{
    unsigned sum = 0;

    for (unsigned i = 0; i < n; i++)
        sum += f(i);
    return sum;
}

} // namespace

namespace zoo
{

template <class T, int N> struct Ring {
    T slots[N] = {};
    unsigned at = 0;

    Ring() = default;
    explicit Ring(T first)
    {
        std::fill(slots, slots + N, first);
    }
    void push(T value)
    {
        slots[at++ % N] = twist<T>(value);
    }
    T sum() const
    {
        return std::accumulate(slots, slots + N, T{});
    }
};

struct Lion : Animal {
    explicit Lion(std::string name) : Animal(std::move(name))
    {
    }
    unsigned eat(unsigned meat) override
    {
        return apply([this, meat](unsigned i) { return hidden(i + meat) + size(); }, meat % 17);
    }
};

struct Bear : Animal {
    using Animal::Animal;
    unsigned eat(unsigned honey) override
    {
        Counter counter;

        return apply(counter, honey % 5) + apply([](unsigned i) { return i * i; }, honey % 3);
    }
};

} // namespace zoo

static unsigned sorted(std::vector<unsigned> numbers)
{
    std::map<unsigned, std::string> names;

    std::sort(numbers.begin(), numbers.end(),
              [](unsigned a, unsigned b) { return hidden(a) < hidden(b); });
    for (unsigned n : numbers)
        names[n % 11] += std::to_string(n);
    return names.begin()->second.size() + names.size();
}

int main(int argc, char **)
{
    std::vector<std::unique_ptr<zoo::Animal>> animals;
    zoo::Ring<unsigned, 8> ring(3);
    zoo::Ring<double, 4> doubles;
    unsigned sum = 0;

    animals.push_back(std::make_unique<zoo::Lion>("lion"));
    animals.push_back(std::make_unique<zoo::Bear>("bear"));
    for (unsigned i = 0; i < 300u * argc; i++) {
        for (auto &animal : animals)
            sum += animal->eat(i);
        ring.push(sum);
        doubles.push(i);
        sum += sorted({i, sum, i ^ sum, 7}) + zoo::elsewhere(i);
    }
    std::printf("%d\n", sum + ring.sum() + (unsigned)doubles.sum() != 0);
    return 0;
}
