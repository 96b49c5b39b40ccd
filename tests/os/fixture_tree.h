// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace drover_test {

/// A folder of files that stands for "/"; removed at the end.
class FixtureTree {
 public:
  FixtureTree() {
    // Not "drover": unit tests run at the same time, and one of them looks for what has that name.
    std::string name = (std::filesystem::temp_directory_path() / "os-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp " + name);
    root_ = name;
  }
  ~FixtureTree() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  FixtureTree(const FixtureTree&) = delete;
  FixtureTree& operator=(const FixtureTree&) = delete;

  void write(const std::string& path, std::string_view content) const {
    const std::filesystem::path full = root_ + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full, std::ios::binary) << content;
  }

  const std::string& root() const { return root_; }

 private:
  std::string root_;
};

/// Calls `parse` with `rounds` broken variants of `seed_text` and with as many random texts; the same ones in every
/// run. The check is that nothing throws and, in sanitizer builds, that nothing is read out of bounds.
template <class Parse>
void fuzz(std::string_view seed_text, const Parse& parse, int rounds = 3000) {
  std::mt19937_64 random(20240607);  // fixed: a failure must come back
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  for (int round = 0; round < rounds; ++round) {
    std::string broken(seed_text);
    for (std::size_t edits = 1 + below(8); edits > 0 && !broken.empty(); --edits) {
      const std::size_t at = below(broken.size());
      switch (below(4)) {
        case 0:
          broken[at] = static_cast<char>(below(256));
          break;
        case 1:
          broken.erase(at, 1 + below(6));
          break;
        case 2:
          broken.insert(at, broken.substr(below(broken.size()), below(20)));
          break;
        default:
          broken.resize(at);
      }
    }
    parse(std::string_view(std::string(broken)));
    std::string noise(below(200), '\0');
    for (char& c : noise) c = static_cast<char>(below(256));
    parse(std::string_view(noise));
  }
}

}  // namespace drover_test
