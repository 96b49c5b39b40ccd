// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "drover/drover.h"
#include "harness/deadline.h"
#include "pool/shared_counters.h"

/// Functions to map, ranges to map them over, and a pool for each test.
namespace map_test {

using drover_test::counters;

inline int square(int x) { return x * x; }
inline std::int64_t twice(std::int64_t x) { return 2 * x; }
inline std::size_t half(std::size_t x) { return x / 2; }
inline std::string repeat(int n) { return std::string(static_cast<std::size_t>(n), static_cast<char>('a' + n % 26)); }
inline std::string louder(const std::string& text) { return text + "!"; }
inline std::size_t length(std::string_view text) { return text.size(); }
inline std::vector<double> scaled(const std::vector<double>& values) {
  std::vector<double> result = values;
  for (double& value : result) value *= 2;
  return result;
}
inline double weighted(int count, double weight) { return count * weight; }
inline int held(std::unique_ptr<int> number) { return *number; }
inline void nothing(int) {}
inline std::array<double, 3> three(int i) { return {i + 0.0, i + 0.5, i + 0.75}; }
inline std::array<double, 12'000> ninety_six_kb(int i) {
  std::array<double, 12'000> result{};
  result.front() = result.back() = i;
  return result;
}
inline std::array<char, 300'000> larger_than_a_ring(int i) {
  std::array<char, 300'000> result{};
  result.front() = result.back() = static_cast<char>(i);
  return result;
}
inline int throw_at_seven(int i) {
  if (i == 7) throw std::out_of_range("seven");
  return i;
}
inline int count_start(const std::string& path) { return static_cast<int>(counters(path)[0].fetch_add(1)); }
inline int gated(const std::string& path) {
  counters(path)[0].fetch_add(1);
  drover_test::pass_gate(counters(path)[1]);
  counters(path)[2].fetch_add(1);
  return 1;
}
inline int nested_sum(int n) {
  drover::Pool inner({.workers = 2});
  int sum = 0;
  for (const int value : inner.map<square>(drover::range(0, n))) sum += value;
  return sum;
}

/// Counts upwards for ever; notes how far it was read.
struct Naturals {
  struct Iterator {
    using value_type = int;
    using difference_type = std::ptrdiff_t;
    int* next;
    int operator*() const { return *next; }
    Iterator& operator++() {
      ++*next;
      return *this;
    }
    void operator++(int) { ++*next; }
    bool operator==(std::default_sentinel_t) const { return false; }
  };
  Iterator begin() { return {&next}; }
  static std::default_sentinel_t end() { return {}; }
  int next = 0;
};

/// Counts upwards and throws at `bad`.
struct Breaking {
  struct Iterator {
    using value_type = int;
    using difference_type = std::ptrdiff_t;
    int at, bad;
    int operator*() const {
      if (at == bad) throw std::domain_error("the input is broken here");
      return at;
    }
    Iterator& operator++() {
      ++at;
      return *this;
    }
    void operator++(int) { ++at; }
    bool operator==(std::default_sentinel_t) const { return false; }
  };
  Iterator begin() const { return {0, bad}; }
  static std::default_sentinel_t end() { return {}; }
  int bad;
};

/// A pool for each test: what is left behind is then seen by the harness.
class Map : public testing::Test {
 protected:
  drover::Pool pool{{.workers = 3}};
};

inline std::vector<int> numbers(int from, int to) {
  std::vector<int> result(static_cast<std::size_t>(std::max(0, to - from)));
  std::iota(result.begin(), result.end(), from);
  return result;
}

template <class T>
std::vector<T> sorted(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  return values;
}

}  // namespace map_test
