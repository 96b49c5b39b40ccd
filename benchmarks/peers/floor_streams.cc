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

}  // namespace

std::vector<double> counter(const std::vector<std::string>& arguments) { return {run_counter(task_count(arguments))}; }

std::vector<double> ring(const std::vector<std::string>& arguments) { return {run_ring(task_count(arguments))}; }

}  // namespace bench::floors
