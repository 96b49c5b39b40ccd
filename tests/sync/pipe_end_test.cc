// SPDX-License-Identifier: Apache-2.0
// How the end of a pipe ends: whatever its holders do, and wherever they are killed, nobody waits for ever at the
// other.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "drover/sync/pipe.h"
#include "drover/sync/queue.h"
#include "drover/worker/process.h"
#include "sync/child.h"

using namespace std::chrono_literals;
using drover::Pipe;
using drover_test::Child;
using drover_test::Common;

namespace {

/// What recv() would give in the end: "closed", "died", or "nothing" after ten seconds.
std::string end_of(Pipe<int>& pipe) {
  try {
    const auto item = pipe.recv_for(10s);
    return item ? "an item" : pipe.finished() ? "closed" : "nothing";
  } catch (const drover::OwnerDied&) {
    return "died";
  }
}

TEST(PipeEnd, ItsLastHolderIsKilledAtAnyPointOfLettingGo) {
  const std::string name = "drover-test-pipe-end-" + std::to_string(getpid());
  for (int point = 0; point < 100; ++point) {
    SCOPED_TRACE("killed at point " + std::to_string(point));
    auto mine = Pipe<int>::create(name);
    Child child(
        [&] {
          drover::os::set_fault_role("nobody");
          std::optional<Pipe<int>> other(Pipe<int>::open(name));
          other->send(1);
          drover::os::set_fault_role("child");
          other.reset();
          drover::os::set_fault_role("nobody");
          return true;
        },
        point);
    EXPECT_EQ(mine.recv_for(10s), 1);
    const std::string end = end_of(mine);
    const bool killed = child.was_killed();
    EXPECT_TRUE(end == "closed" || (killed && end == "died")) << end;
    if (HasFailure()) return;
    if (!killed) {
      std::printf("killed at %d points\n", point);
      EXPECT_GT(point, 1);
      return;
    }
  }
  FAIL() << "there is no end of points";
}

/// The same of one who never came: that is no end.
TEST(PipeEnd, NobodyYetIsNotNobodyAnyMore) {
  auto mine = Pipe<int>::create("drover-test-pipe-alone-" + std::to_string(getpid()));
  EXPECT_EQ(mine.recv_for(150ms), std::nullopt);
  EXPECT_FALSE(mine.closed());
}

/// As if the one who should have closed it had been killed; waiting in short slices finds it, too.
TEST(PipeEnd, IsClosedByWhoWaitsWhenTheCloserDied) {
  for (const auto slice : {std::chrono::milliseconds(1), std::chrono::milliseconds(10'000)}) {
    auto [a, b] = Pipe<int>::create();
    auto& state =
        *reinterpret_cast<drover::sync::QueueState*>(a.core()->block().data() + sizeof(drover::sync::SharedHeader));
    state.parties[1].leave(0);
    EXPECT_EQ(a.recv_for(slice), std::nullopt);
    EXPECT_TRUE(a.closed());
    EXPECT_EQ(a.recv(), std::nullopt);
  }
}

/// Awake, so that both come at once, unless the other one does not run.
void wait_a_little(int looks) {
  drover::os::pause();
  if (looks % 1000 == 999) std::this_thread::yield();
}

TEST(PipeEnd, OfTwoThatLetGoAtOnceOneSeesThatItIsTheLast) {
  auto parties = std::make_unique<drover::sync::Parties>();
  const auto end = std::chrono::steady_clock::now() + 1s;
  std::atomic<long> round{0}, done{0};
  std::size_t places[2] = {};
  bool saw_empty[2] = {};
  const auto leave = [&](int who) {
    parties->leave(places[who]);
    saw_empty[who] = parties->empty();
  };
  std::thread other([&] {
    for (long next = 1;; ++next) {
      long seen = 0;
      for (int looks = 0; (seen = round.load()) < next && seen >= 0; ++looks) wait_a_little(looks);
      if (seen < 0) return;
      leave(1);
      done = next;
    }
  });
  long missed = 0, rounds = 0;
  while (std::chrono::steady_clock::now() < end) {
    for (std::size_t& place : places) place = parties->join();
    round = ++rounds;
    for (long i = 0; i < rounds % 64; ++i) drover::os::pause();
    leave(0);
    for (int looks = 0; done != rounds; ++looks) wait_a_little(looks);
    missed += saw_empty[0] || saw_empty[1] ? 0 : 1;
  }
  round = -1;
  other.join();
  std::printf("%ld rounds\n", rounds);
  EXPECT_EQ(missed, 0);
}

void look_at_ends(drover::Queue<Pipe<int>> doors, drover::Queue<bool> closed) {
  while (const auto end = doors.pop()) closed.push(end->closed());
}

/// From process to process, each of which lets it go at once, and while the other end waits.
TEST(PipeEnd, IsNotClosedOnItsWay) {
  auto doors = drover::Queue<Pipe<int>>::create(4);
  auto closed = drover::Queue<bool>::create(4);
  drover::Process process = drover::spawn<look_at_ends>(doors, closed);
  for (int i = 0; i < 300; ++i) {
    std::optional<Pipe<int>> mine;
    {
      auto [a, b] = Pipe<int>::create();
      mine.emplace(a);
      doors.push(b);
    }
    EXPECT_EQ(closed.pop(), false) << i;
    EXPECT_EQ(mine->recv_for(10s), std::nullopt);
    EXPECT_TRUE(mine->finished());
    if (HasFailure()) break;
  }
  doors.close();
  process.join();
  EXPECT_EQ(drover::shm::release_received(), 0U);
}

}  // namespace
