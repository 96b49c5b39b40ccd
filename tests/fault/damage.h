// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace drover_test {

/// A worker writes garbage over what it shares with others. Arguments: where ("all", "header", "sparse" ...), a seed,
/// "map" or "submit". What became of it, for people and tests.
std::string damaged(const std::vector<std::string>& arguments);

}  // namespace drover_test
