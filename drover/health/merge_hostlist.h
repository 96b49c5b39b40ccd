// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace drover::inline v1::health {

inline constexpr std::size_t kMostHosts = 10'000;

/// The hosts of a list: one a line, or several with commas between them; `#` begins a comment. A host is what ssh takes
/// (`n1`, `user@n1`, `ssh://user@n1:22`), and ranges in brackets stand for many, as Slurm writes them: `n[01-03,7]`,
/// `r[1-2]n[1-4]`. Each host once, in the order of the text. Throws InvalidArgument with the line: for what may not be
/// in the name of a host (blanks, control characters, a `-` at its start), a range that makes no sense, or more hosts
/// than kMostHosts. Pure.
std::vector<std::string> parse_hosts(std::string_view text);

}  // namespace drover::inline v1::health
