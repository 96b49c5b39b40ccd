// SPDX-License-Identifier: Apache-2.0
#include "drover/shm/board.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace drover::shm {
namespace {

struct Entry {
  std::atomic<std::uint32_t> word{0};
  std::uint32_t value = 0;
};

/// A board in this process's heap.
struct Memory {
  explicit Memory(std::size_t capacity)
      : entries(new Entry[capacity]),
        board(reinterpret_cast<std::byte*>(entries.get()), sizeof(Entry), capacity, &tail) {}

  Entry& entry(std::uint64_t position) { return *reinterpret_cast<Entry*>(board.entry(position)); }
  void arm(std::uint64_t position, std::uint32_t value) {
    entry(position).value = value;
    board.arm(position);
    board.set_tail(position + 1);
  }

  std::unique_ptr<Entry[]> entries;
  std::atomic<std::uint64_t> tail{0};
  Board board;
};

TEST(Board, HasNothingToClaimAtFirst) {
  Memory memory(8);
  BoardCursor cursor;
  std::uint64_t position = 0;
  EXPECT_FALSE(cursor.claim(memory.board, 1, position));
  EXPECT_TRUE(cursor.at_end(memory.board));
}

TEST(Board, AClaimNamesItsOwner) {
  Memory memory(8);
  memory.arm(0, 5);
  BoardCursor cursor;
  EXPECT_FALSE(cursor.at_end(memory.board));
  std::uint64_t position = 99;
  ASSERT_TRUE(cursor.claim(memory.board, 0x123456, position));
  EXPECT_EQ(position, 0u);
  const std::uint32_t word = memory.board.word(0).load();
  EXPECT_EQ(state::phase(word), state::kClaimed);
  EXPECT_EQ(state::owner(word), 0x123456u);
  EXPECT_FALSE(cursor.claim(memory.board, 0x123456, position));
  EXPECT_TRUE(cursor.at_end(memory.board));
}

TEST(Board, AnEntryIsClaimedByOneOfTwo) {
  Memory memory(8);
  memory.arm(0, 0);
  BoardCursor one, two;
  std::uint64_t position = 0;
  EXPECT_TRUE(one.claim(memory.board, 1, position));
  EXPECT_FALSE(two.claim(memory.board, 2, position));
}

TEST(Board, FlagsOutliveTheClaim) {
  Memory memory(8);
  memory.arm(0, 0);
  memory.board.word(0).fetch_or(state::kFlags);
  BoardCursor cursor;
  std::uint64_t position = 0;
  ASSERT_TRUE(cursor.claim(memory.board, 3, position));
  EXPECT_EQ(memory.board.word(0).load(), state::claimed_by(3) | state::kFlags);
}

TEST(Board, PositionsThatAreNotArmedArePassed) {
  Memory memory(8);
  for (std::uint32_t i = 0; i < 6; ++i) memory.arm(i, i);
  memory.board.word(1) = state::kCancelled;
  memory.board.word(2) = state::kFree;
  memory.board.word(3) = state::claimed_by(9);
  memory.board.word(4) = state::kDone;
  BoardCursor cursor;
  std::uint64_t position = 0;
  ASSERT_TRUE(cursor.claim(memory.board, 1, position));
  EXPECT_EQ(position, 0u);
  ASSERT_TRUE(cursor.claim(memory.board, 1, position));
  EXPECT_EQ(position, 5u);
  EXPECT_FALSE(cursor.claim(memory.board, 1, position));
}

TEST(Board, ACursorFarBehindFindsAllThatIsArmed) {
  Memory memory(8);
  BoardCursor late;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    memory.arm(i, i);
    if (i < 995) memory.board.word(i) = state::kFree;  // somebody fast did them
  }
  std::vector<std::uint32_t> seen;
  std::uint64_t position = 0;
  while (late.claim(memory.board, 1, position)) seen.push_back(memory.entry(position).value);
  EXPECT_EQ(seen, (std::vector<std::uint32_t>{995, 996, 997, 998, 999}));
}

TEST(Board, ARewoundCursorFindsWhatWasArmedAgain) {
  Memory memory(8);
  for (std::uint32_t i = 0; i < 5; ++i) memory.arm(i, i);
  BoardCursor cursor;
  std::uint64_t position = 0;
  while (cursor.claim(memory.board, 1, position)) {
  }
  memory.board.arm(2);  // behind the tail
  EXPECT_FALSE(cursor.claim(memory.board, 1, position));
  cursor.rewind();
  ASSERT_TRUE(cursor.claim(memory.board, 1, position));
  EXPECT_EQ(position, 2u);
  EXPECT_FALSE(cursor.claim(memory.board, 1, position));
}

TEST(Board, ATailThatFellBackOffersNothing) {
  Memory memory(8);
  for (std::uint32_t i = 0; i < 5; ++i) memory.arm(i, i);
  BoardCursor cursor;
  std::uint64_t position = 0;
  while (cursor.claim(memory.board, 1, position)) {
  }
  memory.tail = 0;  // the board went to the next job: its workers begin with new cursors
  EXPECT_FALSE(cursor.claim(memory.board, 1, position));
  EXPECT_TRUE(cursor.at_end(memory.board));
  cursor.rewind();
  memory.arm(0, 0);
  EXPECT_TRUE(cursor.claim(memory.board, 1, position));
}

TEST(Board, AnArmedEntryAtTheCursorCanBeClaimedAheadOfTheTail) {
  Memory memory(4);
  BoardCursor cursor;
  std::uint64_t position = 99;
  EXPECT_FALSE(cursor.claim_here(memory.board, 1, position));
  memory.board.arm(0);  // and the tail not yet moved
  EXPECT_FALSE(cursor.claim(memory.board, 1, position));
  EXPECT_TRUE(cursor.armed_here(memory.board));
  ASSERT_TRUE(cursor.claim_here(memory.board, 1, position));
  EXPECT_EQ(position, 0u);
  EXPECT_TRUE(cursor.at_end(memory.board));
  memory.board.set_tail(1);
  EXPECT_FALSE(cursor.claim(memory.board, 1, position));
  memory.arm(1, 1);
  ASSERT_TRUE(cursor.claim(memory.board, 1, position));
  EXPECT_EQ(position, 1u);
}

/// One thread arms, skipping what still runs, and several claim. Each value is seen once.
void claim_each_once(std::size_t capacity, int claimers, std::uint32_t values) {
  Memory memory(capacity);
  std::vector<std::atomic<int>> seen(values);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < claimers; ++i) {
    threads.emplace_back([&, me = static_cast<std::uint32_t>(i) + 1] {
      BoardCursor cursor;
      for (;;) {
        const bool last = stop.load(std::memory_order_acquire);
        std::uint64_t position = 0;
        while (cursor.claim(memory.board, me, position)) {
          seen[memory.entry(position).value].fetch_add(1, std::memory_order_relaxed);
          memory.board.word(position).store(state::kFree, std::memory_order_release);
        }
        if (last) return;
        std::this_thread::yield();
      }
    });
  }
  std::uint64_t position = 0;
  for (std::uint32_t value = 0; value < values; ++value) {
    while (state::phase(memory.board.word(position).load(std::memory_order_acquire)) != state::kFree) {
      ++position;
      std::this_thread::yield();
    }
    memory.arm(position++, value);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  for (std::uint32_t i = 0; i < values; ++i) ASSERT_EQ(seen[i].load(), 1) << i;
}

TEST(BoardThreads, TheCheckerWorksWithOneClaimer) { claim_each_once(16, 1, 2000); }
TEST(BoardThreads, EachTaskIsClaimedOnce) { claim_each_once(64, 3, 40'000); }
TEST(BoardThreads, EachTaskIsClaimedOnceOnATinyBoard) { claim_each_once(2, 3, 10'000); }

TEST(BoardThreads, EitherTheClaimOrTheCancellationWins) {
  Memory memory(4);
  int claimed = 0, cancelled = 0;
  std::atomic<std::uint64_t> round{0}, done{0};
  constexpr std::uint64_t kRounds = 5000;
  std::thread worker([&] {
    BoardCursor cursor;
    for (std::uint64_t i = 1; i <= kRounds; ++i) {
      while (round.load(std::memory_order_acquire) < i) std::this_thread::yield();
      std::uint64_t position = 0;
      if (cursor.claim(memory.board, 1, position)) ++claimed;
      done.store(i, std::memory_order_release);
    }
  });
  for (std::uint64_t i = 1; i <= kRounds; ++i) {
    memory.arm(i - 1, 0);
    round.store(i, std::memory_order_release);
    std::uint32_t armed = state::kArmed;
    if (memory.board.word(i - 1).compare_exchange_strong(armed, state::kCancelled)) ++cancelled;
    while (done.load(std::memory_order_acquire) < i) std::this_thread::yield();
    memory.board.word(i - 1) = state::kFree;
  }
  worker.join();
  EXPECT_EQ(claimed + cancelled, static_cast<int>(kRounds));
}

}  // namespace
}  // namespace drover::shm
