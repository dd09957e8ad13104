// SPDX-License-Identifier: Apache-2.0
// Another file with an unnamed namespace and a function hidden() in it; exceptions and cold code.
#include <stdexcept>

#include "zoo.hpp"

namespace
{

__attribute__((noinline)) unsigned hidden(unsigned x)
{
    if (x == 4000000000u)
        throw std::runtime_error("too much");
    return zoo::twist(x) - 1;
}

} // namespace

namespace zoo
{

Animal::~Animal() = default;

unsigned elsewhere(unsigned x)
{
    try {
        return hidden(x) + twist<unsigned>(x);
    } catch (const std::exception &e) {
        return e.what()[0];
    }
}

} // namespace zoo
