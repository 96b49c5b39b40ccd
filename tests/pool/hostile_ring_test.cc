// SPDX-License-Identifier: Apache-2.0
// A broken worker makes others out of records that it has published.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "drover/drover.h"
#include "drover/shm/ring.h"
#include "harness/deadline.h"
#include "pool/pool_memory.h"
#include "pool/shared_counters.h"

using namespace std::chrono_literals;
using drover_test::counters;
using drover_test::SharedCounters;
using Kind = drover::shm::RecordHeader::Kind;

namespace {

constexpr int kItems = 8, kChunk = 4;

/// Where the rings of the only map of a pool with one worker lie in this process.
std::byte* rings() {
  std::byte* found = nullptr;
  for (const std::span<std::byte> memory : drover_test::pool_memory(false)) {
    if (memory.size() >= drover::detail::PoolCore::kRingCapacity) found = memory.data();
  }
  return found;
}

/// The last item, once, gives the first record another kind.
void forge(const std::string& path, int item, Kind kind) {
  if (item != kItems - 1 || counters(path)[0].fetch_add(1) != 0) return;
  std::byte* const at = rings();
  if (at == nullptr) std::abort();
  at[sizeof(drover::shm::RingHeader) + 7] = static_cast<std::byte>(kind);
  counters(path)[1] = 1;
}

int number(const std::string& path, int item, Kind kind) {
  forge(path, item, kind);
  return item * 3;
}
std::string text(const std::string& path, int item, Kind kind) {
  forge(path, item, kind);
  return std::to_string(item);
}
void nothing(const std::string& path, int item, Kind kind) { forge(path, item, kind); }

/// The last item, once, gives the first record of the second chunk as one more of the first, which is finished.
int repeated(const std::string& path, int item, Kind) {
  if (item == kItems - 1 && counters(path)[0].fetch_add(1) == 0) {
    constexpr std::size_t kRecord = sizeof(drover::shm::RecordHeader) + 8;
    std::byte* const first = rings() + sizeof(drover::shm::RingHeader);
    drover::shm::RecordHeader header;
    std::memcpy(&header, first + (kChunk - 1) * kRecord, sizeof header);
    header.item = kChunk;
    std::memcpy(first + kChunk * kRecord, &header, sizeof header);
    counters(path)[1] = 1;
  }
  return item * 3;
}

bool right(int value, std::size_t item) { return value == static_cast<int>(item) * 3; }
bool right(const std::string& value, std::size_t item) { return value == std::to_string(item); }
bool right(std::monostate, std::size_t) { return true; }

/// Each item comes once, right or lost with the worker that is not trusted any more.
template <auto F>
void expect_distrust(Kind kind) {
  SCOPED_TRACE("as kind " + std::to_string(static_cast<int>(kind)));
  SharedCounters shared;
  drover::Pool pool({.workers = 1});
  std::vector<std::tuple<std::string, int, Kind>> inputs;
  for (int i = 0; i < kItems; ++i) inputs.emplace_back(shared.path(), i, kind);
  auto results = pool.map<F>(inputs, {.chunk = kChunk, .window = kItems});
  ASSERT_TRUE(drover_test::eventually(10s, [&] { return shared[1] == 1; }));
  std::size_t good = 0, lost = 0;
  for (auto it = results.begin(); it != results.end(); ++it) {
    EXPECT_EQ(it.index(), good + lost);
    try {
      EXPECT_TRUE(right(*it, it.index())) << it.index();
      ++good;
    } catch (const drover::WorkerLost&) {
      ++lost;
    }
  }
  EXPECT_EQ(good + lost, std::size_t{kItems});
  EXPECT_GE(lost, 1u);
}

TEST(HostileRing, ResultsOfAFinishedChunkAreNotTaken) { expect_distrust<repeated>(Kind::kValue); }

TEST(HostileRing, NumbersOfOtherKindsAreNotTaken) {
  for (const Kind kind : {Kind::kRun, Kind::kSized, Kind::kSpilled}) expect_distrust<number>(kind);
}

TEST(HostileRing, TextsOfOtherKindsAreNotTaken) {
  for (const Kind kind : {Kind::kRun, Kind::kValue}) expect_distrust<text>(kind);
}

TEST(HostileRing, CountsOfOtherKindsAreNotTaken) {
  for (const Kind kind : {Kind::kValue, Kind::kSized, Kind::kSpilled}) expect_distrust<nothing>(kind);
}

}  // namespace
