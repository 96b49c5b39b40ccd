// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace drover_test {

/// A parser of bytes that others wrote, with texts that it takes, from which broken ones are made. `run` returns what
/// must not be, for any bytes; empty: nothing. It throws nothing.
struct FuzzTarget {
  const char* name;
  std::vector<std::string> seeds;
  std::function<std::string(std::string_view)> run;
};

/// All that the inspector reads of the kernel, of its own files and of its helper.
const std::vector<FuzzTarget>& fuzz_targets();

/// `text` with a few changes: bytes, numbers that become extreme, lines and words that are doubled, lost or swapped, a
/// sudden end. The same for the same state of `random`.
std::string mutated(const std::string& text, std::mt19937_64& random);

}  // namespace drover_test
