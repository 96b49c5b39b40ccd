// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/shm/queue.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "benchmarks/harness/measure.h"
#include "drover/sync/queue.h"
#include "drover/worker/process.h"

namespace bench {
namespace {

using Message = std::array<std::uint64_t, 8>;
static_assert(sizeof(Message) == 64);
using Large = std::vector<std::byte>;

constexpr int kMessages = 300'000;
constexpr int kLarge = 300;
constexpr std::size_t kLargeBytes = 1'000'000;
constexpr std::size_t kRingBytes = std::size_t{4} << 20U;

/// Produces as many items as each order says, until there are no more orders.
template <class T>
void feed(drover::Queue<int> orders, drover::Queue<T> items, const T& item) {
  pin(0, 1);
  T mine = item;
  for (const int count : orders) {
    for (int i = 0; i < count; ++i) {
      if constexpr (std::is_same_v<T, Message>) mine.fill(static_cast<std::uint64_t>(i));
      items.push(mine);
    }
  }
}
void feed_messages(drover::Queue<int> orders, drover::Queue<Message> items) { feed<Message>(orders, items, {}); }
void feed_large(drover::Queue<int> orders, drover::Queue<Large> items) {
  feed<Large>(orders, items, Large(kLargeBytes));
}

double time_messages(drover::Queue<int>& orders, drover::Queue<Message>& items) {
  std::uint64_t sum = 0;
  orders.push(kMessages);
  const double elapsed = time_ns([&] {
    for (int i = 0; i < kMessages; ++i) {
      const Message message = items.pop().value();
      for (const std::uint64_t word : message) sum += word;
    }
  });
  if (sum != std::uint64_t{kMessages} * (kMessages - 1) / 2 * 8) throw std::runtime_error("the queue lost a message");
  return elapsed / kMessages;
}

/// GB/s.
double rate_of_large(drover::Queue<int>& orders, drover::Queue<Large>& items) {
  std::size_t bytes = 0;
  orders.push(kLarge);
  const double elapsed = time_ns([&] {
    for (int i = 0; i < kLarge; ++i) bytes += items.pop()->size();
  });
  if (bytes != kLarge * kLargeBytes) throw std::runtime_error("the queue lost an item");
  return static_cast<double>(bytes) / elapsed;
}

/// GB/s, into memory of the size of the ring, which has been touched before.
double rate_of_memcpy() {
  static const Large from(kLargeBytes, std::byte{1});
  static Large to(kRingBytes, std::byte{2});
  std::size_t at = 0;
  const double elapsed = time_ns([&] {
    for (int i = 0; i < kLarge; ++i) {
      std::memcpy(to.data() + at, from.data(), kLargeBytes);
      keep(to[at]);
      at = at + 2 * kLargeBytes <= kRingBytes ? at + kLargeBytes : 0;
    }
  });
  return kLarge * static_cast<double>(kLargeBytes) / elapsed;
}

}  // namespace

void queue_64b(Bench& bench) {
  auto orders = drover::Queue<int>::create(4);
  auto items = drover::Queue<Message>::create(512);
  drover::Process producer = drover::spawn<feed_messages>(orders, items);
  PeerProcess python(kPythonQueue);
  const Pinned here(0);
  bench.add(
      {.name = "queue_64b",
       .unit = "ns/item",
       .drover = [&] { return time_messages(orders, items); },
       .peers = {{"ring of 64 B, publish each", bench.floor("ring " + std::to_string(kMessages)), ratio_at_most(2)},
                 {"Python multiprocessing.Queue", [&] { return python.ask("items 20000 64").at(0); }, shown()}}});
  orders.close();
  producer.join();
}

void queue_1mb(Bench& bench) {
  auto orders = drover::Queue<int>::create(4);
  auto items = drover::Queue<Large>::create({.capacity = 64, .bytes = kRingBytes});
  drover::Process producer = drover::spawn<feed_large>(orders, items);
  PeerProcess python(kPythonQueue);
  const auto python_rate = [&] {
    return static_cast<double>(kLargeBytes) / python.ask("items 100 " + std::to_string(kLargeBytes)).at(0);
  };
  const Pinned here(0);
  bench.add({.name = "queue_1mb",
             .unit = "GB/s",
             .drover = [&] { return rate_of_large(orders, items); },
             .peers = {{"warm memcpy", rate_of_memcpy, ratio_at_least(0.6)},
                       {"Python multiprocessing.Queue", python_rate, shown()}}});
  orders.close();
  producer.join();
}

}  // namespace bench
