// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <span>
#include <vector>

namespace drover_test {

/// What this process has mapped of the memory of its pool, which is the only one: its header, or all but that.
inline std::vector<std::span<std::byte>> pool_memory(bool header) {
  std::vector<std::span<std::byte>> found;
  std::FILE* const maps = std::fopen("/proc/self/maps", "r");
  char line[512];
  while (std::fgets(line, sizeof line, maps) != nullptr) {
    unsigned long from = 0, to = 0, at = 0;
    if (std::strstr(line, "drover-pool") == nullptr) continue;
    if (std::sscanf(line, "%lx-%lx %*s %lx", &from, &to, &at) != 3 || (at == 0) != header) continue;
    found.emplace_back(reinterpret_cast<std::byte*>(from), to - from);
  }
  std::fclose(maps);
  return found;
}

}  // namespace drover_test
