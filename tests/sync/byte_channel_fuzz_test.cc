// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "sync/byte_channel_memory.h"

namespace drover_test {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

/// A deadline of 5 ms, a second for a record that stalls in the middle, a second for a lock, and a busy machine.
constexpr std::chrono::seconds kLongestCall(6);

void scribble(const Memory& memory, std::mt19937& random) {
  const bool header = random() % 2 == 0;
  auto* const bytes = header ? reinterpret_cast<std::byte*>(memory.header.get()) : memory.ring.get();
  const std::size_t size = header ? sizeof(sync::ChannelHeader) : memory.bytes;
  // What is plausible does more harm than what is not.
  constexpr std::uint32_t kWords[] = {0, 1, 8, 0x4452'0000, 0x4452'0001, 0x4452'0002, 0x4452'0003, 0x4452'0004, ~0U};
  const std::uint32_t word = random() % 2 == 0 ? static_cast<std::uint32_t>(random()) : kWords[random() % 9];
  auto* const place = reinterpret_cast<std::uint32_t*>(bytes) + random() % (size / 4);
  std::atomic_ref<std::uint32_t>(*place).store(word, std::memory_order_relaxed);
}

TEST(ByteChannelFuzz, WhateverStandsInItEachCallEnds) {
  const std::uint32_t seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  for (std::uint32_t round = 0; round < 300; ++round) {
    std::mt19937 random(seed + round);
    const Memory memory(std::size_t{256} << round % 4, 1 + round % 7);
    for (int i = 0; i < 30; ++i) {
      static_cast<void>(put(memory.view(), std::string(random() % 300, 'x'), at_once()));
      if (random() % 3 == 0) scribble(memory, random);
      const auto begin = Clock::now();
      static_cast<void>(get(memory.view()));
      static_cast<void>(memory.view().size());
      ASSERT_LT(Clock::now() - begin, kLongestCall) << "seed " << seed << ", round " << round;
    }
  }
}

TEST(ByteChannelFuzz, WhoeverWritesOverItMeanwhileEachCallKeepsItsDeadline) {
  const std::uint32_t seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  const auto end = Clock::now() + std::chrono::seconds(3);
  for (std::uint32_t round = 0; Clock::now() < end; ++round) {
    const Memory memory(1024, 10);
    const auto stop = Clock::now() + milliseconds(50);
    std::vector<std::thread> sides;
    const auto repeat = [&sides, stop](auto call) {
      sides.emplace_back([call, stop] {
        while (Clock::now() < stop) {
          const auto begin = Clock::now();
          call();
          ASSERT_LT(Clock::now() - begin, kLongestCall);
        }
      });
    };
    repeat([&] { static_cast<void>(put(memory.view(), std::string(40, 'x'), for_some(milliseconds(5)))); });
    repeat([&] { static_cast<void>(put(memory.view(), std::string(3'000, 'y'), for_some(milliseconds(5)))); });
    repeat([&] { static_cast<void>(get(memory.view(), for_some(milliseconds(5)))); });
    std::mt19937 random(seed + round);
    while (Clock::now() < stop) {
      for (int i = 0; i < 10; ++i) scribble(memory, random);
      std::this_thread::yield();
    }
    for (std::thread& side : sides) side.join();
    if (HasFailure()) break;
  }
}

}  // namespace
}  // namespace drover_test
