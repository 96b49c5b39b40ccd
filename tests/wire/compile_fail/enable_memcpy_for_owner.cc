// SPDX-License-Identifier: Apache-2.0
// expect: enable_memcpy<T> is for trivially copyable classes only
#include <string>

#include "drover/wire/memcpy_trait.h"

template <>
inline constexpr bool drover::enable_memcpy<std::string> = true;

static_assert(drover::wire::travels_by_memcpy<std::string>);
