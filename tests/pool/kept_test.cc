// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "drover/drover.h"
#include "harness/deadline.h"

using namespace std::chrono_literals;
using drover_test::eventually;

namespace {

/// Refers to something in the process that made it.
struct Token {
  std::shared_ptr<int> owner;
  int value = 0;
};

}  // namespace

template <>
struct drover::wire::Codec<Token> {
  static void encode(Writer& writer, const Token& token) {
    EXPECT_TRUE(writer.keep(token.owner));
    writer.put(token.value);
  }
  static Token decode(Reader& reader) { return {nullptr, reader.get<int>("Token")}; }
};

namespace {

int value_when(const Token& token, drover::Event event) {
  event.wait();
  return token.value;
}
int value_of(const Token& token) { return token.value; }
int killed_once(const Token& token, drover::SharedValue<int> runs) {
  if (runs.fetch_add(1) == 0) std::abort();
  return token.value;
}
void wait_for(const Token& token, drover::Event event) {
  event.wait();
  std::exit(token.value);
}
int prepared = 0;
void prepare(const Token& token) { prepared = token.value; }
int what_was_prepared() { return prepared; }

struct Watched {
  std::shared_ptr<int> owner = std::make_shared<int>(0);
  std::weak_ptr<int> watch = owner;
  Token take(int value) { return {std::move(owner), value}; }
  bool alive() const { return !watch.expired(); }
};

TEST(Kept, UntilASubmittedTaskIsDone) {
  drover::Pool pool({.workers = 1});
  drover::Event event;
  Watched thing;
  auto future = pool.submit<value_when>(thing.take(7), event);
  EXPECT_TRUE(thing.alive());
  event.set();
  EXPECT_EQ(future.get(), 7);
  EXPECT_FALSE(thing.alive());
}

TEST(Kept, WhileATaskMayHaveToRunAgain) {
  drover::Pool pool({.workers = 1});
  drover::SharedValue<int> runs;
  Watched thing;
  auto future = pool.with({.retries = 1}).submit<killed_once>(thing.take(8), runs);
  EXPECT_TRUE(eventually(5s, [&] { return runs.load() == 2; }));
  EXPECT_TRUE(thing.alive());
  EXPECT_EQ(future.get(), 8);
  EXPECT_FALSE(thing.alive());
}

TEST(Kept, NotForLongAfterAFutureWasDropped) {
  drover::Pool pool({.workers = 1});
  Watched dropped;
  static_cast<void>(pool.submit<value_of>(dropped.take(1)));
  EXPECT_TRUE(eventually(5s, [&] {
    Watched other;
    return pool.submit<value_of>(other.take(2)).get() == 2 && !dropped.alive();
  }));
}

TEST(Kept, UntilTheLastOfAChunkIsDone) {
  drover::Pool pool({.workers = 2});
  std::vector<Watched> things(100);
  std::vector<Token> tokens;
  for (int i = 0; i < 100; ++i) tokens.push_back(things[static_cast<std::size_t>(i)].take(i));
  int sum = 0;
  {
    auto results = pool.map<value_of>(std::move(tokens), {.ordered = false});
    for (const int value : results) sum += value;
  }
  EXPECT_EQ(sum, 4950);
  for (const Watched& thing : things) EXPECT_FALSE(thing.alive());
}

TEST(Kept, WhileASpawnedProcessRuns) {
  drover::Event event;
  Watched thing;
  drover::Process process = drover::spawn<wait_for>(thing.take(5), event);
  EXPECT_TRUE(thing.alive());
  event.set();
  process.join();
  EXPECT_EQ(process.exit_status()->code, 5);
  EXPECT_FALSE(thing.alive());
}

TEST(Kept, ForTheInitializerAsLongAsThePool) {
  Watched thing;
  {
    drover::Pool pool({.workers = 1, .initializer = drover::call<prepare>(thing.take(9))});
    EXPECT_EQ(pool.submit<what_was_prepared>().get(), 9);
    EXPECT_TRUE(thing.alive());
  }
  EXPECT_FALSE(thing.alive());
}

}  // namespace
