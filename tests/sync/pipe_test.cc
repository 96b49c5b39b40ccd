// SPDX-License-Identifier: Apache-2.0
#include "drover/sync/pipe.h"

#include <gtest/gtest.h>

#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "drover/sync/queue.h"
#include "drover/worker/process.h"

using namespace std::chrono_literals;
using drover::Pipe;

namespace {

TEST(Pipe, CarriesInBothDirections) {
  auto [a, b] = Pipe<std::string>::create();
  EXPECT_FALSE(a.poll());
  a.send("to b");
  b.send("to a");
  EXPECT_TRUE(a.poll());
  EXPECT_EQ(a.recv(), "to a");
  EXPECT_EQ(b.recv(), "to b");
  EXPECT_EQ(a.try_recv(), std::nullopt);
  EXPECT_EQ(b.recv_for(1ms), std::nullopt);
  EXPECT_FALSE(a.poll(1ms));
}

TEST(Pipe, IsFullInOneDirectionOnly) {
  auto [a, b] = Pipe<int>::create({.capacity = 2});
  EXPECT_TRUE(a.try_send(1));
  EXPECT_TRUE(a.send_for(2, 1s));
  EXPECT_FALSE(a.try_send(3));
  EXPECT_FALSE(a.send_for(3, 1ms));
  EXPECT_TRUE(b.try_send(4));
}

TEST(Pipe, EndsWhenTheOtherEndIsLetGo) {
  auto ends = std::make_unique<std::pair<Pipe<int>, Pipe<int>>>(Pipe<int>::create());
  Pipe<int> a = ends->first;
  ends->second.send(1);
  ends->second.send(2);
  ends.reset();
  EXPECT_TRUE(a.poll());
  EXPECT_EQ(a.recv(), 1);
  EXPECT_EQ(a.recv(), 2);
  EXPECT_TRUE(a.poll());
  EXPECT_EQ(a.recv(), std::nullopt);
  EXPECT_TRUE(a.finished());
  EXPECT_THROW(a.send(3), drover::Cancelled);
}

TEST(Pipe, CloseWakesWhoWaits) {
  auto [a, b] = Pipe<int>::create();
  std::thread other([end = b]() mutable { EXPECT_EQ(end.recv(), std::nullopt); });
  a.close();
  other.join();
}

void echo(Pipe<std::string> pipe) {
  while (const auto text = pipe.recv()) pipe.send("echo of " + *text);
}

TEST(Pipe, AnEndTravelsToAProcessAndClosesWithIt) {
  std::optional<Pipe<std::string>> mine;
  drover::Process process = [&] {
    auto [a, b] = Pipe<std::string>::create();
    mine.emplace(a);
    return drover::spawn<echo>(b);
  }();
  const std::string large(5'000'000, 'x');
  for (const std::string& text : {std::string("one"), std::string(), large}) {
    mine->send(text);
    EXPECT_EQ(mine->recv(), "echo of " + text);
  }
  mine.reset();
  process.join();
  EXPECT_EQ(process.exit_status()->code, 0);
}

void send_and_end(Pipe<std::string> pipe, bool die) {
  pipe.send("last");
  if (die) ::raise(SIGKILL);
}

TEST(Pipe, WhatADeadProcessHadSentArrivesAndThenItsDeath) {
  auto [a, b] = Pipe<std::string>::create();
  drover::Process process = drover::spawn<send_and_end>(b, true);
  EXPECT_EQ(a.recv(), "last");
  EXPECT_THROW(static_cast<void>(a.recv()), drover::OwnerDied);  // though this process still has the other end
}

TEST(Pipe, EndsWhenAProcessThatHadTheOnlyHandleEnds) {
  std::optional<Pipe<std::string>> mine;
  drover::Process process = [&] {
    auto [a, b] = Pipe<std::string>::create();
    mine.emplace(a);
    return drover::spawn<send_and_end>(b, false);
  }();
  EXPECT_EQ(mine->recv(), "last");
  process.join();
  EXPECT_EQ(mine->recv_for(10s), std::nullopt);
  EXPECT_TRUE(mine->finished());
}

void serve(drover::Queue<Pipe<std::string>> doors) {
  for (Pipe<std::string>& door : doors) {
    while (const auto text = door.recv()) door.send(*text + "!");
  }
}

TEST(Pipe, AnEndTravelsInAQueue) {
  auto doors = drover::Queue<Pipe<std::string>>::create();
  drover::Process server = drover::spawn<serve>(doors);
  for (int i = 0; i < 3; ++i) {
    std::optional<Pipe<std::string>> mine;
    {
      auto [a, b] = Pipe<std::string>::create();
      doors.push(b);
      mine.emplace(a);
    }
    mine->send("hello");
    EXPECT_EQ(mine->recv(), "hello!");
  }
  doors.close();
  server.join();
  EXPECT_EQ(drover::shm::release_received(), 0U);
}

void take_and_let_go(drover::Queue<Pipe<std::string>> doors) { doors.pop()->send("bye"); }

TEST(Pipe, AnEndThatTravelledInAQueueEndsWithItsLastHandle) {
  auto doors = drover::Queue<Pipe<std::string>>::create();
  std::optional<Pipe<std::string>> mine;
  {
    auto [a, b] = Pipe<std::string>::create();
    doors.push(b);
    mine.emplace(a);
  }
  EXPECT_EQ(mine->try_recv(), std::nullopt);
  EXPECT_FALSE(mine->closed());  // on its way it is not gone
  drover::Process server = drover::spawn<take_and_let_go>(doors);
  EXPECT_EQ(mine->recv(), "bye");
  EXPECT_EQ(mine->recv(), std::nullopt);
  server.join();
  EXPECT_EQ(drover::shm::release_received(), 0U);
}

TEST(Pipe, ByNameTheOpenerHasTheOtherEnd) {
  auto mine = Pipe<int>::create("drover-test-pipe");
  auto other = Pipe<int>::open("drover-test-pipe");
  mine.send(1);
  EXPECT_EQ(other.recv(), 1);
  other.send(2);
  EXPECT_EQ(mine.recv(), 2);
  EXPECT_THROW(Pipe<double>::open("drover-test-pipe"), drover::Incompatible);
  EXPECT_THROW(drover::Queue<int>::open("drover-test-pipe"), drover::Incompatible);
}

}  // namespace
