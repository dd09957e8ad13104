// SPDX-License-Identifier: Apache-2.0
#ifndef ZOO_HPP
#define ZOO_HPP

#include <string>
#include <utility>

namespace zoo
{

template <class T> inline T twist(T x)
{
    return x * 5 + (x > 100 ? x / 3 : 1);
}

class Animal
{
    std::string name;

  public:
    explicit Animal(std::string called) : name(std::move(called))
    {
    }
    virtual ~Animal();
    virtual unsigned eat(unsigned what) = 0;
    unsigned size() const
    {
        return name.size();
    }
};

unsigned elsewhere(unsigned x);

} // namespace zoo

#endif
