// SPDX-License-Identifier: Apache-2.0
#include "fault/damage.h"

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <random>
#include <tuple>

#include "drover/drover.h"

namespace drover_test {
namespace {

struct Piece {
  char* begin;
  std::size_t size;
  unsigned long offset;
};

std::vector<Piece> shared_pieces() {
  std::vector<Piece> pieces;
  std::FILE* const maps = std::fopen("/proc/self/maps", "r");
  char line[512];
  while (std::fgets(line, sizeof line, maps) != nullptr) {
    unsigned long from = 0, to = 0, offset = 0;
    if (std::strstr(line, "drover-pool") == nullptr) continue;
    if (std::sscanf(line, "%lx-%lx %*s %lx", &from, &to, &offset) != 3) continue;
    pieces.push_back({reinterpret_cast<char*>(from), to - from, offset});
  }
  std::fclose(maps);
  return pieces;
}

int damage(const std::string& where, unsigned seed, int i) {
  if (i != 20) return i;
  std::minstd_rand random(seed);
  std::size_t n = 0;
  for (const Piece& piece : shared_pieces()) {
    const bool header = piece.offset == 0;
    if (where != "all" && header != (where == "header" || where == "sparse-header")) continue;
    const bool sparse = where.starts_with("sparse");
    for (std::size_t at = 0; at < piece.size; at += sparse ? 1 + random() % 4096 : 1, ++n) {
      piece.begin[at] = static_cast<char>(random());
    }
  }
  if (seed % 2 == 1) _exit(9);
  return i;
}

}  // namespace

std::string damaged(const std::vector<std::string>& arguments) {
  const std::string& where = arguments.at(0);
  const auto seed = static_cast<unsigned>(std::stoul(arguments.at(1)));
  int answers = 0, errors = 0;
  std::string ended;
  try {
    drover::Pool pool({.workers = 2, .grace = drover::Duration(0.2)});
    if (arguments.at(2) == "submit") {
      std::vector<drover::Future<int>> futures;
      for (int i = 0; i < 100; ++i) futures.push_back(pool.submit<damage>(where, seed, i));
      for (auto& future : futures) {
        try {
          future.get();
          ++answers;
        } catch (const std::exception&) {
          ++errors;
        }
      }
    } else {
      std::vector<std::tuple<std::string, unsigned, int>> inputs;
      for (int i = 0; i < 100; ++i) inputs.emplace_back(where, seed, i);
      auto results = pool.map<damage>(inputs);
      for (auto it = results.begin(); it != results.end(); ++it) {
        try {
          static_cast<void>(*it);
          ++answers;
        } catch (const std::exception&) {
          ++errors;
        }
      }
    }
  } catch (const std::exception& error) {
    ended = std::string("the pool ended: ") + error.what() + "\n";
  }
  return ended + "over: " + std::to_string(answers) + " answers, " + std::to_string(errors) + " errors";
}

}  // namespace drover_test
