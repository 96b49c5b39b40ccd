// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/shm/array.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "benchmarks/harness/measure.h"
#include "drover/pool/array_tasks.h"

namespace bench {
namespace {

using Matrix = drover::SharedArray<double, 2>;
using Rows = drover::ArrayView<double, 2>;
using ConstRows = drover::ArrayView<const double, 2>;

constexpr std::size_t kSide = 10'000;
constexpr std::size_t kBytes = kSide * kSide * sizeof(double);

std::string name_of(const char* what) { return fmt::format("drover-bench-{}-{}", what, getpid()); }

/// With several partial sums, so that it runs at the speed of memory.
double sum_of(const double* x, std::size_t size) {
  constexpr std::size_t kLanes = 16;
  double lanes[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += x[i + lane];
  }
  double sum = 0;
  for (; i < size; ++i) sum += x[i];
  for (const double lane : lanes) sum += lane;
  return sum;
}

/// Where tasks put the sums: one array for all workers, which they open by its name.
std::string& sums_name() {
  static std::string name;
  return name;
}
void set_sums_name(const std::string& name) { sums_name() = name; }

void sum_these(ConstRows rows, std::size_t first) {
  static const auto sums = drover::SharedArray<double, 1>::open(sums_name());
  for (std::size_t i = 0; i < rows.extent(0); ++i) sums(first + i) = sum_of(&rows(i, 0), rows.extent(1));
}
void fill_these(Rows rows) { rows.fill(1.5); }

/// Calls `work(first, last)` for a part of the rows on each core.
template <class Work>
void on_threads(const Work& work) {
  const std::size_t cores = allowed_cpus().size();
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < cores; ++i) {
    threads.emplace_back([&work, i, cores] { work(kSide * i / cores, kSide * (i + 1) / cores); });
  }
  for (std::thread& thread : threads) thread.join();
}

double gb_per_s(double ns) { return static_cast<double>(kBytes) / ns; }

/// Throws unless each sum is right to 1e-14 of the sum of the absolute values.
void verify(const Matrix& matrix, std::span<const double> sums) {
  for (std::size_t row = 0; row < kSide; row += 997) {
    long double exact = 0, scale = 0;
    for (std::size_t i = 0; i < kSide; ++i) {
      exact += matrix(row, i);
      scale += std::fabs(matrix(row, i));
    }
    if (std::fabs(static_cast<double>(exact) - sums[row]) > 1e-14 * static_cast<double>(scale)) {
      throw std::runtime_error(fmt::format("the sum of row {} is wrong", row));
    }
  }
}

/// microseconds to map what exists, look at one element and unmap it, whatever its size.
double attach_us(const std::string& name) {
  constexpr int kTimes = 200;
  double seen = 0;
  const double ns = time_ns([&] {
    for (int i = 0; i < kTimes; ++i) {
      const auto array = drover::SharedArray<const double, 2>::open(name);
      seen += array(0, 0);
    }
  });
  keep(seen);
  return ns / kTimes * 1e-3;
}

double mmap_us(const std::string& path, std::size_t bytes) {
  constexpr int kTimes = 200;
  double seen = 0;
  const double ns = time_ns([&] {
    for (int i = 0; i < kTimes; ++i) {
      const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
      void* const data = mmap(nullptr, bytes + 4096, PROT_READ, MAP_SHARED, fd, 0);
      if (data == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
      seen += *reinterpret_cast<const double*>(static_cast<const std::byte*>(data) + 4096);
      munmap(data, bytes + 4096);
      close(fd);
    }
  });
  keep(seen);
  return ns / kTimes * 1e-3;
}

}  // namespace

void attach_800mb(Bench& bench) {
  // Another process has them: the one that attaches must not find them in its own list.
  auto owner = drover::Pool({.workers = 1});
  const std::string large = name_of("large"), small = name_of("small");
  const auto held = Matrix::create(large, {kSide, kSide}), little = Matrix::create(small, {kSide / 10, kSide / 10});
  const auto in_worker = [&owner](const std::string& name) {
    return [&owner, name] { return owner.submit<attach_us>(name).get(); };
  };
  bench.add({.name = "attach_800mb",
             .unit = "us",
             .drover = in_worker(large),
             .peers = {{"mmap of the same file", [&] { return mmap_us(held.path(), kBytes); }, ratio_at_most(2)},
                       {"an array of 8 MB", in_worker(small), ratio_at_most(1.2)}}});
}

void sum_rows(Bench& bench) {
  const auto matrix = Matrix::create(name_of("matrix"), {kSide, kSide});
  set_sums_name(name_of("sums"));
  const auto sums = drover::SharedArray<double, 1>::create(sums_name(), {kSide});
  drover::Pool pool({.initializer = drover::call<set_sums_name>(sums_name())});
  drover::fill_normal(pool, matrix, 1);
  PeerProcess python(kPythonArrays);
  std::vector<double> by_threads(kSide);
  bench.add({.name = "sum_rows",
             .unit = "GB/s",
             .drover =
                 [&] {
                   sums.fill(0);
                   const double ns = time_ns([&] { drover::for_rows<sum_these>(pool, matrix); });
                   verify(matrix, sums.span());
                   return gb_per_s(ns);
                 },
             .peers = {{"plain threads",
                        [&] {
                          return gb_per_s(time_ns([&] {
                            on_threads([&](std::size_t from, std::size_t to) {
                              for (std::size_t i = from; i < to; ++i) by_threads[i] = sum_of(&matrix(i, 0), kSide);
                            });
                          }));
                        },
                        ratio_at_least(0.95)},
                       {"NumPy sum(axis=1)", [&] { return gb_per_s(python.ask("sum " + matrix.path()).at(0)); },
                        ratio_at_least(1)}}});
}

void fill(Bench& bench) {
  const auto matrix = Matrix::create(name_of("matrix"), {kSide, kSide});
  drover::Pool pool;
  PeerProcess python(kPythonArrays);
  bench.add({.name = "fill",
             .unit = "GB/s",
             .drover =
                 [&] {
                   const double ns = time_ns([&] { drover::for_rows<fill_these>(pool, matrix); });
                   if (matrix(kSide - 1, kSide - 1) != 1.5) throw std::runtime_error("the array is not filled");
                   return gb_per_s(ns);
                 },
             .peers = {{"plain threads",
                        [&] {
                          return gb_per_s(time_ns([&] {
                            on_threads([&](std::size_t from, std::size_t to) {
                              std::fill(&matrix(from, 0), &matrix(from, 0) + (to - from) * kSide, 2.5);
                            });
                          }));
                        },
                        ratio_at_least(0.95)},
                       {"NumPy fill", [&] { return gb_per_s(python.ask("fill " + matrix.path()).at(0)); },
                        ratio_at_least(1)}}});
}

}  // namespace bench
