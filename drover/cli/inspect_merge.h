// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "drover/cli/command.h"

namespace drover::inline v1::cli {

/// Adds `drover inspect merge`.
void add_inspect_merge(CLI::App& inspect, Action& action);

/// Standard input to its end, at most `most` bytes. The descriptor stays open. Throws std::system_error.
std::string read_input(std::size_t most);

}  // namespace drover::inline v1::cli
