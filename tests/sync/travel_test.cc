// SPDX-License-Identifier: Apache-2.0
// Primitives by name, and as arguments of tasks and processes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "drover/drover.h"
#include "drover/sync/barrier.h"
#include "drover/sync/condition.h"
#include "drover/sync/event.h"
#include "drover/sync/mutex.h"
#include "drover/sync/semaphore.h"
#include "drover/sync/shared_mutex.h"
#include "drover/sync/shared_value.h"

namespace drover {
namespace {

using namespace std::chrono_literals;

std::string unique_name(const char* what) {
  return "drover-test-" + std::string(what) + "-" + std::to_string(getpid());
}

template <class T, class... Argument>
void goes_by_name(const char* what, Argument... argument) {
  const std::string name = unique_name(what);
  EXPECT_THROW(T::open(name), Error);
  {
    T made = T::create(name, argument...);
    EXPECT_EQ(made.name(), name);
    EXPECT_THROW(T::create(name, argument...), Error);
    const T opened = T::open(name);
    EXPECT_EQ(opened.name(), name);
    const T either = T::open_or_create(name, argument...);
    EXPECT_EQ(either.name(), name);
    made.unlink();
    EXPECT_THROW(T::open(name), Error);
    const T again = T::open_or_create(name, argument...);
    EXPECT_EQ(again.name(), name);
  }
  EXPECT_THROW(T::open(name), Error) << "the name went with its creator";
}

TEST(Named, EveryPrimitiveGoesByName) {
  goes_by_name<Mutex>("mutex");
  goes_by_name<SharedMutex>("shared-mutex");
  goes_by_name<Semaphore>("semaphore", 3);
  goes_by_name<Event>("event");
  goes_by_name<Condition>("condition");
  goes_by_name<Barrier>("barrier", 2);
  goes_by_name<SharedValue<int>>("value", 5);
  goes_by_name<SharedValue<std::array<double, 9>>>("wide");
}

template <class T>
std::string complaint_of_open(const std::string& name) {
  try {
    static_cast<void>(T::open(name));
  } catch (const Incompatible& error) {
    return error.what();
  }
  return "";
}

TEST(Named, WhatIsSomethingElseIsNamedAsBoth) {
  const std::string name = unique_name("kind");
  const Mutex mutex = Mutex::create(name);
  const std::string complaint = complaint_of_open<Semaphore>(name);
  EXPECT_NE(complaint.find("is a Mutex, not a Semaphore"), std::string::npos) << complaint;
  EXPECT_NE(complaint.find(name), std::string::npos) << complaint;

  const std::string number = unique_name("number");
  const auto value = SharedValue<int>::create(number, 3);
  const std::string types = complaint_of_open<SharedValue<double>>(number);
  EXPECT_NE(types.find("is a SharedValue<int>, not a SharedValue<double>"), std::string::npos) << types;
}

TEST(Named, WhatIsNoPrimitiveIsRefused) {
  const std::string name = unique_name("raw");
  const auto block = shm::Block::create(name, {.descr = "|u1", .shape = {8}}, "bytes");
  EXPECT_NE(complaint_of_open<Mutex>(name), "");
  const std::string numbers = unique_name("numbers");
  const auto array = shm::Block::create(numbers, {.descr = "<f8", .shape = {1000}}, "SharedArray<double, 1>");
  EXPECT_NE(complaint_of_open<Mutex>(numbers).find("holds no lock"), std::string::npos);
  const std::string damaged = unique_name("damaged");
  const Mutex mutex = Mutex::create(damaged);
  std::fill_n(mutex.block()->data(), sizeof(sync::SharedHeader::kind), std::byte{0xAB});
  EXPECT_NE(complaint_of_open<Mutex>(damaged), "");
}

int use_mutex(Mutex mutex, const SharedValue<int>& count) {
  for (int i = 0; i < 100; ++i) {
    const std::scoped_lock lock(mutex);
    SharedValue<int>(count).store(count.load() + 1);
  }
  return count.load();
}

TEST(Travel, TasksOfAPoolShareAMutex) {
  Pool pool({.workers = 2});
  Mutex mutex;
  SharedValue<int> count(0);
  std::vector<Future<int>> futures;
  for (int i = 0; i < 20; ++i) futures.push_back(pool.submit<use_mutex>(mutex, count));
  for (Future<int>& future : futures) EXPECT_GT(future.get(), 0);
  EXPECT_EQ(count.load(), 2000);
}

void meet(Barrier barrier, SharedValue<int> sum, Event done) {
  for (int i = 0; i < 50; ++i) {
    sum.fetch_add(1);
    barrier.arrive_and_wait();
  }
  done.set();
}

TEST(Travel, SpawnedProcessesMeetAtABarrier) {
  Barrier barrier(3);
  SharedValue<int> sum(0);
  Event done;
  Process a = spawn<meet>(barrier, sum, done), b = spawn<meet>(barrier, sum, done);
  for (int i = 1; i <= 50; ++i) {
    sum.fetch_add(1);
    ASSERT_TRUE(barrier.wait_for(20s));
    EXPECT_GE(sum.load(), 3 * i);
  }
  done.wait();
  a.join();
  b.join();
  EXPECT_EQ(sum.load(), 150);
}

using Matrix = SharedArray<double, 2>;
using View = ArrayView<double, 2>;

/// Adds one to each element that arrives, and sends the sum back.
template <class Array>
double add_one(const Array& array) {
  double sum = 0;
  for (double& element : array) sum += ++element;
  return sum;
}

void serve_arrays(Queue<Matrix> arrays, Queue<View> views, Queue<double> sums) {
  while (const auto array = arrays.pop()) sums.push(add_one(*array));
  while (const auto view = views.pop()) sums.push(add_one(*view));
}

TEST(Travel, ArraysAndViewsGoThroughQueues) {
  auto arrays = Queue<Matrix>::create();
  auto views = Queue<View>::create();
  auto sums = Queue<double>::create();
  Process server = spawn<serve_arrays>(arrays, views, sums);
  const auto small = Matrix::create({2, 3});  // part of a slab, memory of its own, a name
  const auto large = Matrix::create({100, 200});
  const auto named = Matrix::create(unique_name("in-queue"), {4, 5});
  for (const Matrix& array : {small, large, named}) {
    arrays.push(array);
    EXPECT_EQ(sums.pop(), static_cast<double>(array.size()));
    EXPECT_EQ(array(1, 1), 1.0) << "the same memory";
  }
  arrays.push(Matrix::create({10, 10}));  // nobody here keeps it
  EXPECT_EQ(sums.pop(), 100.0);
  arrays.close();
  views.push(large.rows(0, 10));
  EXPECT_EQ(sums.pop(), 2.0 * 2'000);
  views.push(large.transpose());
  EXPECT_EQ(sums.pop(), 3.0 * 2'000 + 2.0 * 18'000);
  EXPECT_THROW(views.push(View(nullptr, {0, 0})), InvalidArgument);
  views.close();
  server.join();
  EXPECT_EQ(shm::release_received(), 0U);
}

void echo_views(Pipe<View> pipe) {
  while (const auto view = pipe.recv()) {
    add_one(*view);
    pipe.send(*view);
  }
}

TEST(Travel, ViewsGoThroughPipesAndBack) {
  auto [mine, other] = Pipe<View>::create();
  Process server = spawn<echo_views>(other);
  const auto array = Matrix::create({100, 200});
  mine.send(array.rows(3, 5));
  const std::optional<View> back = mine.recv();
  ASSERT_TRUE(back);
  EXPECT_EQ(back->element_data(), &array(3, 0)) << "the very block of this process";
  EXPECT_EQ(array(4, 199), 1.0);
  EXPECT_EQ(array(5, 0), 0.0);
  mine.close();
  server.join();
  EXPECT_EQ(shm::release_received(), 0U);
}

/// What the codec of a Parcel does at its end.
enum class Mishap { kNone, kNoMemoryOnce, kDieOnce, kRefuse };
Mishap mishap = Mishap::kNone;

/// A handle, and more than fits a small ring.
template <class Handle>
struct Parcel {
  std::optional<Handle> handle;
  std::vector<char> more;

  template <class Archive>
  void save(Archive& archive) const {
    archive(handle, more);
    if (mishap == Mishap::kRefuse) throw std::runtime_error("refused");
  }
  template <class Archive>
  void load(Archive& archive) {
    archive(handle, more);
    const Mishap now = std::exchange(mishap, Mishap::kNone);
    if (now == Mishap::kNoMemoryOnce) throw std::bad_alloc();
    if (now == Mishap::kDieOnce) raise(SIGKILL);
  }
};

using ArrayParcel = Parcel<Matrix>;
using PipeParcel = Parcel<Pipe<int>>;

void die_reading(Queue<ArrayParcel> queue) {
  mishap = Mishap::kDieOnce;
  static_cast<void>(queue.pop());
}

/// An item that is decoded twice counts as received once: what another item holds stays.
TEST(Travel, AnItemThatIsReadTwiceIsReceivedOnce) {
  for (const bool dies : {false, true}) {
    SCOPED_TRACE(dies);
    auto queue = Queue<ArrayParcel>::create(8);
    {
      const auto array = Matrix::create({100, 200});
      for (int i = 0; i < 2; ++i) queue.push({array, {}});
    }
    if (dies) {
      Process reader = spawn<die_reading>(queue);
      reader.join();
      EXPECT_EQ(reader.exit_status()->signal, SIGKILL);
    } else {
      mishap = Mishap::kNoMemoryOnce;
      EXPECT_THROW(static_cast<void>(queue.pop()), std::bad_alloc);
    }
    EXPECT_TRUE(queue.pop().has_value());
    EXPECT_GT(shm::release_received(), 0U) << "the second item needs it";
    EXPECT_TRUE(queue.pop().has_value());
    EXPECT_EQ(shm::release_received(), 0U);
  }
}

TEST(Travel, APipeEndOnItsWayIsOpenThoughAnotherWasReadTwice) {
  auto queue = Queue<PipeParcel>::create(8);
  std::optional<Pipe<int>> here;
  {
    auto [mine, other] = Pipe<int>::create();
    for (int i = 0; i < 2; ++i) queue.push({other, {}});
    here.emplace(mine);
  }
  mishap = Mishap::kNoMemoryOnce;
  EXPECT_THROW(static_cast<void>(queue.pop()), std::bad_alloc);
  EXPECT_TRUE(queue.pop().has_value());  // and let go
  EXPECT_FALSE(here->closed());
  {
    auto second = queue.pop();
    second->handle->send(5);
    EXPECT_EQ(here->recv_for(10s), 5);
  }
  EXPECT_EQ(here->recv_for(10s), std::nullopt);
  EXPECT_TRUE(here->finished());
  EXPECT_EQ(shm::release_received(), 0U);
}

/// There is room for a part of an item: it is encoded, and then not added.
TEST(Travel, WhatWasPushedInVainIsNotKept) {
  auto queue = Queue<ArrayParcel>::create({.capacity = 100, .bytes = 4096});
  int refused = 0;
  for (int i = 0; i < 20; ++i) {
    if (!queue.try_push({Matrix::create({100, 200}), std::vector<char>(1200)})) ++refused;
  }
  EXPECT_GT(refused, 10);
  {
    const ArrayParcel late{Matrix::create({100, 200}), std::vector<char>(1200)};
    for (int i = 0; i < 5; ++i) EXPECT_FALSE(queue.push_for(late, 1ms));
  }
  while (queue.try_pop()) {
  }
  EXPECT_EQ(shm::release_received(), 0U);
}

TEST(Travel, WhatCouldNotBeEncodedIsNotKept) {
  auto queue = Queue<ArrayParcel>::create(8);
  mishap = Mishap::kRefuse;
  EXPECT_THROW(queue.push({Matrix::create({100, 200}), {}}), std::runtime_error);
  mishap = Mishap::kNone;
  EXPECT_FALSE(queue.try_pop().has_value());
  EXPECT_EQ(shm::release_received(), 0U);
}

TEST(Travel, APipeEndThatWasSentInVainCanBeClosed) {
  auto queue = Queue<PipeParcel>::create({.capacity = 100, .bytes = 4096});
  std::optional<Pipe<int>> here;
  {
    auto [mine, other] = Pipe<int>::create();
    here.emplace(mine);
    int refused = 0;
    for (int i = 0; i < 5; ++i) refused += queue.try_push({other, std::vector<char>(1200)}) ? 0 : 1;
    EXPECT_GT(refused, 0);
    while (queue.try_pop()) {
    }
  }
  EXPECT_EQ(here->recv_for(10s), std::nullopt);
  EXPECT_TRUE(here->finished());
  EXPECT_EQ(shm::release_received(), 0U);
}

void die_at_barrier(Barrier, Event here) {
  here.set();
  for (;;) pause();
}

TEST(Travel, AKilledProcessBreaksTheBarrier) {
  Barrier barrier(2);
  Event here;
  Process party = spawn<die_at_barrier>(barrier, here);
  ASSERT_TRUE(here.wait_for(20s));
  EXPECT_FALSE(barrier.wait_for(50ms)) << "it lives";
  party.kill();
  try {
    EXPECT_FALSE(barrier.wait_for(10s));
    FAIL() << "nobody says that it died";
  } catch (const OwnerDied& error) {
    EXPECT_NE(std::string(error.what()).find("process " + std::to_string(party.pid())), std::string::npos)
        << error.what();
  }
  party.join();
}

void hold_by_name(std::string name, Event here) {
  Mutex mutex = Mutex::open(name);
  mutex.lock();
  here.set();
  for (;;) pause();
}

TEST(Travel, AKilledHolderOfANamedMutexIsReported) {
  Mutex mutex = Mutex::create(unique_name("held"));
  Event here;
  Process holder = spawn<hold_by_name>(mutex.name(), here);
  ASSERT_TRUE(here.wait_for(20s));
  EXPECT_FALSE(mutex.try_lock_for(50ms));
  holder.kill();
  try {
    static_cast<void>(mutex.try_lock_for(10s));
    FAIL() << "nobody says that it died";
  } catch (const OwnerDied& error) {
    EXPECT_NE(std::string(error.what()).find(std::to_string(holder.pid())), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find(mutex.name()), std::string::npos) << error.what();
  }
  holder.join();
}

Mutex give_back(Mutex mutex) { return mutex; }

TEST(Travel, AHandleThatComesBackIsTheSameMutex) {
  Pool pool({.workers = 1});
  Mutex mutex;
  Mutex same = pool.submit<give_back>(mutex).get();
  mutex.lock();
  std::thread([&] { EXPECT_FALSE(same.try_lock()); }).join();
  same.unlock();
}

}  // namespace
}  // namespace drover
