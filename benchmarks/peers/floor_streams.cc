// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdint>
#include <stdexcept>

#include "benchmarks/harness/measure.h"
#include "benchmarks/peers/floors.h"
#include "benchmarks/peers/two_processes.h"

namespace bench::floors {
namespace {

struct CounterBlock {
  StartLine start;
  alignas(64) std::atomic<std::size_t> next = 0;
  alignas(64) std::atomic<int> done = 0;
  /// The results follow the block.
  double* slots() { return reinterpret_cast<double*>(this + 1); }
};

void claim_all(CounterBlock& block, std::size_t count) {
  for (std::size_t i = 0; (i = block.next.fetch_add(1, std::memory_order_relaxed)) < count;) {
    block.slots()[i] = static_cast<double>(i);
  }
  block.done.fetch_add(1);
  while (block.done.load() < 2) relax();
}

double run_counter(std::size_t count) {
  const std::size_t bytes = sizeof(CounterBlock) + count * sizeof(double);
  auto* block = shared<CounterBlock>(bytes);
  double elapsed = 0;
  const auto side = [&] {
    fault_in(block->slots(), count * sizeof(double));
    block->start.wait();
    elapsed = time_ns([&] { claim_all(*block, count); });
  };
  in_two_processes(Placement::kTwoCpus, side, side);
  verify_in_place(block->slots(), count);
  return elapsed / static_cast<double>(count);
}

using Message = std::array<std::uint64_t, 8>;
static_assert(sizeof(Message) == 64);

/// The classic ring: each side keeps the other's index in a private copy and looks again only when it has run out.
struct Ring {
  static constexpr std::uint64_t kSize = 512;
  StartLine start;
  alignas(64) std::atomic<std::uint64_t> head = 0;
  alignas(64) std::atomic<std::uint64_t> tail = 0;
  alignas(64) std::array<Message, kSize> messages{};
};

void produce(Ring& ring, std::uint64_t count) {
  std::uint64_t tail = 0;
  for (std::uint64_t head = 0; head < count; ++head) {
    while (head - tail == Ring::kSize) {
      tail = ring.tail.load(std::memory_order_acquire);
      if (head - tail == Ring::kSize) relax();
    }
    ring.messages[head % Ring::kSize].fill(head);
    ring.head.store(head + 1, std::memory_order_release);
  }
}

std::uint64_t consume(Ring& ring, std::uint64_t count) {
  std::uint64_t sum = 0;
  std::uint64_t head = 0;
  for (std::uint64_t tail = 0; tail < count; ++tail) {
    while (head == tail) {
      head = ring.head.load(std::memory_order_acquire);
      if (head == tail) relax();
    }
    for (std::uint64_t word : ring.messages[tail % Ring::kSize]) sum += word;
    ring.tail.store(tail + 1, std::memory_order_release);
  }
  return sum;
}

double run_ring(std::uint64_t count) {
  auto* ring = shared<Ring>();
  double elapsed = 0;
  std::uint64_t sum = 0;
  const auto consumer = [&] {
    fault_in(ring, sizeof *ring);
    ring->start.wait();
    elapsed = time_ns([&] { sum = consume(*ring, count); });
  };
  const auto producer = [&] {
    fault_in(ring, sizeof *ring);
    ring->start.wait();
    produce(*ring, count);
  };
  in_two_processes(Placement::kTwoCpus, consumer, producer);
  if (sum != count * (count - 1) / 2 * 8) throw std::runtime_error("the ring lost a message");
  return elapsed / static_cast<double>(count);
}

/// Tasks go one way and results the other, as a pool's must whose workers may die: each task is claimed by one locked
/// instruction on its own word, each result published at once. Nothing is counted, checked, or made for more than one
/// worker.
struct Exchange {
  static constexpr std::uint64_t kWindow = 4096;
  enum : std::uint32_t { kFree, kArmed, kClaimed };
  struct alignas(64) Task {  // or claims would take the line away from who arms the next one
    std::atomic<std::uint32_t> word = kFree;
    std::uint64_t index = 0;
  };
  struct Result {
    std::uint64_t position = 0;
    double value = 0;
  };
  StartLine start;
  alignas(64) std::atomic<std::uint64_t> armed = 0;
  alignas(64) std::atomic<std::uint64_t> published = 0;
  alignas(64) std::array<Task, kWindow> tasks{};
  alignas(64) std::array<Result, kWindow> results{};
};

void work(Exchange& exchange, std::uint64_t count) {
  std::uint64_t armed = 0;
  for (std::uint64_t next = 0; next < count; ++next) {
    while (next == armed) {
      armed = exchange.armed.load(std::memory_order_acquire);
      if (next == armed) relax();
    }
    Exchange::Task& task = exchange.tasks[next % Exchange::kWindow];
    std::uint32_t expected = Exchange::kArmed;
    if (!task.word.compare_exchange_strong(expected, Exchange::kClaimed)) throw std::runtime_error("a task is missing");
    exchange.results[next % Exchange::kWindow] = {next, static_cast<double>(task.index)};
    exchange.published.store(next + 1, std::memory_order_release);
  }
}

/// Arms a quarter of the window at a time.
double collect(Exchange& exchange, std::uint64_t count) {
  double sum = 0;
  std::uint64_t armed = 0, published = 0;
  for (std::uint64_t taken = 0; taken < count; ++taken) {
    if (armed < count && armed - taken <= Exchange::kWindow * 3 / 4) {
      for (; armed < count && armed - taken < Exchange::kWindow; ++armed) {
        Exchange::Task& task = exchange.tasks[armed % Exchange::kWindow];
        task.index = armed;
        task.word.store(Exchange::kArmed, std::memory_order_release);
      }
      exchange.armed.store(armed, std::memory_order_release);
    }
    while (taken == published) {
      published = exchange.published.load(std::memory_order_acquire);
      if (taken == published) relax();
    }
    sum += exchange.results[taken % Exchange::kWindow].value;
  }
  return sum;
}

double run_exchange(std::uint64_t count) {
  auto* exchange = shared<Exchange>();
  double elapsed = 0;
  double sum = 0;
  const auto caller = [&] {
    fault_in(exchange, sizeof *exchange);
    exchange->start.wait();
    elapsed = time_ns([&] { sum = collect(*exchange, count); });
  };
  const auto worker = [&] {
    fault_in(exchange, sizeof *exchange);
    exchange->start.wait();
    work(*exchange, count);
  };
  in_two_processes(Placement::kTwoCpus, caller, worker);
  if (sum != 0.5 * static_cast<double>(count * (count - 1))) throw std::runtime_error("the exchange lost a result");
  return elapsed / static_cast<double>(count);
}

}  // namespace

std::vector<double> counter(const std::vector<std::string>& arguments) { return {run_counter(task_count(arguments))}; }

std::vector<double> ring(const std::vector<std::string>& arguments) { return {run_ring(task_count(arguments))}; }

std::vector<double> exchange(const std::vector<std::string>& arguments) {
  return {run_exchange(task_count(arguments))};
}

}  // namespace bench::floors
