// SPDX-License-Identifier: Apache-2.0
// The reader of a map has no memory for a moment, at each of its allocations in turn, while a worker dies.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "drover/drover.h"
#include "harness/deadline.h"
#include "pool/shared_counters.h"

namespace {

thread_local int allocations = 0;  ///< of this thread since the last call of fail_at
thread_local int failing = 0;      ///< the one that fails; 0: none

void* allocate(std::size_t size) {
  if (++allocations == failing) throw std::bad_alloc();
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}

void fail_at(int number) {
  allocations = 0;
  failing = number;
}

}  // namespace

void* operator new(std::size_t size) { return allocate(size); }
void* operator new[](std::size_t size) { return allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

using namespace std::chrono_literals;
using drover_test::counters;
using drover_test::SharedCounters;

constexpr std::size_t kItems = 200;

constexpr const char* kCounters = "DROVER_TEST_COUNTERS";

/// Two items, each the last of a chunk, kill their worker, once each.
void die_twice(int item) {
  if (item != 79 && item != 139) return;
  if (counters(std::getenv(kCounters))[item == 79 ? 0 : 1].fetch_add(1) == 0) raise(SIGKILL);
}
void nothing(int item) { die_twice(item); }
int number(int item) {
  die_twice(item);
  return item;
}
std::string text(int item) {
  die_twice(item);
  return std::string(100, '.') + std::to_string(item);
}

struct Case {
  bool ordered;
  std::size_t retries;
  double timeout;
};

/// Each item comes once, as a result or lost. False when the allocation that was to fail did not happen any more.
template <auto F>
bool each_item_comes_once(drover::Pool& pool, const SharedCounters& shared, const Case& how, int failing_allocation) {
  SCOPED_TRACE("allocation " + std::to_string(failing_allocation));
  shared[0] = shared[1] = 0;
  auto results = pool.map<F>(drover::range(0, static_cast<int>(kItems)), {.ordered = how.ordered,
                                                                          .chunk = 20,
                                                                          .window = kItems,
                                                                          .timeout = drover::Duration(how.timeout),
                                                                          .retries = how.retries});
  std::vector<int> seen(kItems);
  std::size_t lost = 0;
  // So all that is finished is found at once, and stored.
  EXPECT_TRUE(drover_test::eventually(10s, [&] { return shared[0] == 1 && shared[1] == 1; }));
  fail_at(failing_allocation);
  bool over = false;
  for (int tries = 0; !over && tries < 10; ++tries) {
    try {
      auto at = results.begin();
      while (at != results.end()) {
        ++seen.at(at.index());
        try {
          static_cast<void>(*at);
        } catch (const drover::WorkerLost&) {
          ++lost;
        }
        ++at;
      }
      over = true;
    } catch (const std::bad_alloc&) {  // the loop goes on: nothing may be missing, or come twice
    }
  }
  EXPECT_TRUE(over);
  const bool failed = allocations >= failing;
  fail_at(0);
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), static_cast<std::ptrdiff_t>(kItems));
  EXPECT_EQ(lost, how.retries == 0 ? 2U : 0U);
  return failed;
}

class ShortMemory : public testing::TestWithParam<Case> {
 protected:
  template <auto F>
  static void at_each_allocation() {
    constexpr int kMost = 1'000;
    const SharedCounters shared;
    setenv(kCounters, shared.path().c_str(), 1);
    drover::Pool pool({.workers = 2});
    int allocation = 1;
    while (allocation < kMost && !HasFailure() && each_item_comes_once<F>(pool, shared, GetParam(), allocation))
      ++allocation;
    EXPECT_LT(allocation, kMost);
  }
};

TEST_P(ShortMemory, LosesNoItemWithoutAValue) { at_each_allocation<nothing>(); }
TEST_P(ShortMemory, LosesNoNumber) { at_each_allocation<number>(); }
TEST_P(ShortMemory, LosesNoText) { at_each_allocation<text>(); }

INSTANTIATE_TEST_SUITE_P(OfAMap, ShortMemory,
                         testing::Values(Case{false, 0, 20}, Case{true, 0, 0}, Case{false, 1, 0}, Case{true, 1, 20}),
                         [](const auto& named) {
                           const Case& how = named.param;
                           return std::string(how.ordered ? "Ordered" : "Unordered") +
                                  (how.retries != 0 ? "Retried" : "") + (how.timeout != 0 ? "Timed" : "");
                         });

}  // namespace
