// SPDX-License-Identifier: Apache-2.0
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "benchmarks/harness/measure.h"
#include "benchmarks/peers/floors.h"
#include "benchmarks/peers/two_processes.h"

namespace bench::floors {
namespace {

/// One word that both sides write in turn: odd is a question, even its answer.
struct PingPong {
  StartLine start;
  alignas(64) std::atomic<std::uint32_t> word = 0;
  std::atomic<std::uint32_t> sleepers = 0;  ///< on the same line: it travels with the word
};

bool has(const PingPong& block, std::uint32_t value) { return block.word.load(std::memory_order_acquire) == value; }

struct Spin {
  static void publish(PingPong& block, std::uint32_t value) { block.word.store(value, std::memory_order_release); }
  static void await(PingPong& block, std::uint32_t value) {
    while (!has(block, value)) relax();
  }
};

struct Yield {
  static void publish(PingPong& block, std::uint32_t value) { block.word.store(value, std::memory_order_release); }
  static void await(PingPong& block, std::uint32_t value) {
    while (!has(block, value)) sched_yield();
  }
};

/// Wakes only a registered sleeper.
struct Futex {
  static void publish(PingPong& block, std::uint32_t value) {
    block.word.store(value);
    if (block.sleepers.load() != 0) syscall(SYS_futex, &block.word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  }
  static void await(PingPong& block, std::uint32_t value) {
    while (!has(block, value)) {
      block.sleepers.fetch_add(1);
      if (!has(block, value)) syscall(SYS_futex, &block.word, FUTEX_WAIT, value - 1, nullptr, nullptr, 0);
      block.sleepers.fetch_sub(1);
    }
  }
};

template <class Way>
void answer_all(PingPong& block, std::uint32_t count) {
  block.start.wait();
  for (std::uint32_t i = 0; i < count; ++i) {
    Way::await(block, 2 * i + 1);
    Way::publish(block, 2 * i + 2);
  }
}

template <class Way>
void round_trip(PingPong& block, std::uint32_t i) {
  Way::publish(block, 2 * i + 1);
  Way::await(block, 2 * i + 2);
}

/// The mean of `count` round trips, after a tenth as many to warm up.
template <class Way>
std::vector<double> mean_round_trip(Placement placement, const std::vector<std::string>& arguments) {
  auto* block = shared<PingPong>();
  const auto count = static_cast<std::uint32_t>(task_count(arguments));
  const std::uint32_t warm = count / 10;
  double elapsed = 0;
  const auto ask_all = [&] {
    block->start.wait();
    for (std::uint32_t i = 0; i < warm; ++i) round_trip<Way>(*block, i);
    elapsed = time_ns([&] {
      for (std::uint32_t i = warm; i < warm + count; ++i) round_trip<Way>(*block, i);
    });
  };
  in_two_processes(placement, ask_all, [&] { answer_all<Way>(*block, warm + count); });
  return {elapsed / count};
}

}  // namespace

std::vector<double> spin_two_cpus(const std::vector<std::string>& arguments) {
  return mean_round_trip<Spin>(Placement::kTwoCpus, arguments);
}

std::vector<double> futex_one_cpu(const std::vector<std::string>& arguments) {
  return mean_round_trip<Futex>(Placement::kOneCpu, arguments);
}

std::vector<double> yield_one_cpu(const std::vector<std::string>& arguments) {
  return mean_round_trip<Yield>(Placement::kOneCpu, arguments);
}

std::vector<double> futex_parked(const std::vector<std::string>& arguments) {
  auto* block = shared<PingPong>();
  const auto count = static_cast<std::uint32_t>(task_count(arguments));
  std::vector<double> times;
  const auto ask_all = [&] {
    block->start.wait();
    for (std::uint32_t i = 0; i < count; ++i) {
      pause_for_us(200);
      times.push_back(time_ns([&] { round_trip<Futex>(*block, i); }));
    }
  };
  in_two_processes(Placement::kTwoCpus, ask_all, [&] { answer_all<Futex>(*block, count); });
  return {median(times)};
}

}  // namespace bench::floors
