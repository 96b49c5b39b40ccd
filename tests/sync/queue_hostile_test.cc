// SPDX-License-Identifier: Apache-2.0
// Another process writes over the memory of a queue, beside its rings: counts of items, lists of parties, handles on
// their way. Calls may answer or throw, and wrong; they come back, and a queue that was emptied is usable again.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <random>
#include <string>

#include "drover/sync/pipe.h"
#include "drover/sync/queue.h"

namespace drover {
namespace {

using namespace std::chrono_literals;

constexpr double kBound = 8.0;  // seconds: a deadline, a second for closing each direction, and a busy machine

template <class T>
sync::QueueState& state_of(const T& handle) {
  return *reinterpret_cast<sync::QueueState*>(handle.core()->block().data() + sizeof(sync::SharedHeader));
}

template <class Call>
void answers_or_throws(const Call& call) {
  const auto begin = std::chrono::steady_clock::now();
  try {
    call();
  } catch (const std::exception&) {
  }
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), kBound);
}

/// Takes what is there, three times over, for a damaged queue says so once or twice before it is empty.
void empty(Queue<int>& queue) {
  for (int i = 0; i < 6; ++i) answers_or_throws([&] { static_cast<void>(queue.try_pop()); });
}

/// Carries an item within two tries: the first may hear of damage.
bool is_usable(Queue<int>& queue) {
  for (int i = 0; i < 2; ++i) {
    try {
      if (queue.push_for(7, 200ms)) return queue.pop_for(1s) == 7;
    } catch (const Incompatible&) {
      empty(queue);
    }
  }
  return false;
}

TEST(QueueHostile, WithWrongCountsItIsUsableOnceItWasEmptied) {
  constexpr std::uint32_t kCounts[] = {0, 1, 2, 3, 4, 5, 6, 5'000, 0x7FFF'FFFF, 0x8000'0000, 0xFFFF'FFFF};
  for (const bool head : {true, false}) {
    for (const bool items : {true, false}) {
      for (const std::uint32_t count : kCounts) {
        SCOPED_TRACE(std::string(head ? "head" : "tail") + (items ? " items " : " units ") + std::to_string(count));
        auto queue = Queue<int>::create(4);
        queue.push(1);
        queue.push(2);
        sync::ChannelHeader& header = state_of(queue).headers[0];
        std::atomic<std::uint64_t>& word = head ? header.head : header.tail;
        sync::Cursor cursor = sync::Cursor::from(word);
        (items ? cursor.items : cursor.units) = count;
        word = cursor.word();
        empty(queue);
        EXPECT_TRUE(is_usable(queue));
      }
    }
  }
}

/// One that waits for an item when it is damaged hears of it, and does not wait on while a producer is refused.
TEST(QueueHostile, AProducerIsToldOfAWrongCountAtOnce) {
  auto queue = Queue<int>::create(4);
  sync::ChannelHeader& header = state_of(queue).headers[0];
  header.head = sync::Cursor{.units = 0, .items = 4}.word();
  EXPECT_THROW(static_cast<void>(queue.push_for(1, 10s)), Incompatible);
  EXPECT_THROW(static_cast<void>(queue.pop_for(10s)), Incompatible);
  EXPECT_TRUE(is_usable(queue));
}

/// A process number, as it might stand there: dead, alive, none.
std::uint64_t some_party(std::mt19937_64& random) {
  switch (random() % 4) {
    case 0:
      return 0;
    case 1:
      return random();
    case 2:
      return os::current_process_id() | (random() % 4) << 22U;
    default:
      return random() % 100'000;
  }
}

template <class Handle>
void scribble(const Handle& handle, std::mt19937_64& random) {
  sync::QueueState& state = state_of(handle);
  const auto words = [&random](auto* begin, std::size_t bytes, unsigned share) {
    auto* const word = reinterpret_cast<std::atomic<std::uint64_t>*>(begin);
    for (std::size_t i = 0; i < bytes / 8; ++i) {
      if (random() % share == 0) word[i] = some_party(random);
    }
  };
  words(state.parties.data(), sizeof state.parties, 1 + static_cast<unsigned>(random() % 30));
  words(state.travels.data(), sizeof state.travels, 2);
}

TEST(QueueHostile, WhateverStandsInTheListOfPartiesEachCallEnds) {
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 60; ++round) {
    auto queue = Queue<int>::create(1);
    scribble(queue, random);
    answers_or_throws([&] { static_cast<void>(queue.pop_for(30ms)); });
    answers_or_throws([&] { static_cast<void>(queue.push_for(1, 30ms)); });
    answers_or_throws([&] { static_cast<void>(queue.push_for(2, 30ms)); });
    answers_or_throws([&] { static_cast<void>(Queue<int>::adopt(queue.core()->shared_block()).try_pop()); });
  }
  for (int round = 0; round < 60; ++round) {
    auto ends = Pipe<int>::create({.capacity = 1});
    Pipe<int>&a = ends.first, &b = ends.second;  // clang 14 captures no bindings
    scribble(a, random);
    answers_or_throws([&] { static_cast<void>(a.recv_for(30ms)); });
    answers_or_throws([&] { static_cast<void>(b.send_for(1, 30ms)); });
    answers_or_throws([&] { static_cast<void>(b.send_for(2, 30ms)); });
    answers_or_throws([&] { b.core()->received(); });
  }
}

}  // namespace
}  // namespace drover
