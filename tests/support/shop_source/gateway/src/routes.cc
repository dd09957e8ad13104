// SPDX-License-Identifier: Apache-2.0
// Which service answers which path.
#include "routes.h"

namespace gateway {

const Route *Router::match(std::string_view path) const
{
    auto exact = exact_.find(path);
    if (exact != exact_.end())
        return &exact->second;
    for (const Pattern &pattern : patterns_) {
        if (re2::RE2::PartialMatchN(path, pattern.expression, nullptr, 0))
            return &pattern.route;
    }
    return nullptr;
}

}  // namespace gateway
