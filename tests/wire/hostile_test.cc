// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <random>

#include "drover/base/errors.h"
#include "drover/wire/arguments.h"
#include "drover/wire/remote_error.h"
#include "tests/wire/round_trip.h"

namespace {

std::size_t largest_allocation = 0;

void* allocate(std::size_t size) {
  largest_allocation = std::max(largest_allocation, size);
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) { return allocate(size); }
void* operator new[](std::size_t size) { return allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace drover {
namespace {

struct Flags {
  char letter = 0;
  bool flag = false;
  double number = 0;
};

struct Record {
  std::string text;
  std::optional<Flags> flags;
  std::variant<int, std::string, std::vector<Flags>> either;
  std::map<std::string, std::vector<int>> map;
};

struct Tree {
  std::vector<Tree> children;
  std::unique_ptr<Tree> next;
};

struct Big {
  std::string texts[8];
};

struct Archived {
  template <class Archive>
  void serialize(Archive& archive) {
    archive(text, numbers);
  }
  std::string text;
  std::deque<int> numbers;
};

struct SavesNothing {
  template <class Archive>
  void serialize(Archive&) {}
};

template <class T>
class Hostile : public testing::Test {};

using Types =
    testing::Types<bool, int, Flags, Record, Tree, Archived, std::string, std::u32string, std::vector<double>,
                   std::vector<bool>, std::vector<Flags>, std::vector<long double>, std::vector<Big>,
                   std::vector<SavesNothing>, std::deque<Flags>, std::set<std::string>, std::unordered_map<int, Big>,
                   std::multimap<std::string, Tree>, std::tuple<std::string, std::optional<std::string>>,
                   std::array<std::string, 3>, std::shared_ptr<Record>, std::filesystem::path, std::bitset<70>>;
TYPED_TEST_SUITE(Hostile, Types);

template <class T>
void expect_value_or_incompatible(std::span<const std::byte> message) {
  try {
    wire::Reader reader(message);
    wire::decode<T>(reader);
  } catch (const Incompatible&) {
  }
}

/// Zeros and small numbers are likely, so that counts are often plausible.
std::vector<std::byte> random_message(std::mt19937& random, std::size_t max_size) {
  std::vector<std::byte> message(random() % max_size);
  const auto zeros = random() % 10;
  for (std::byte& byte : message) {
    if (random() % 10 < zeros) continue;
    byte = static_cast<std::byte>(random() % (random() % 4 == 0 ? 256 : 8));
  }
  return message;
}

TYPED_TEST(Hostile, RandomBytesGiveAValueOrIncompatible) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  largest_allocation = 0;
  for (int i = 0; i < 3'000; ++i) expect_value_or_incompatible<TypeParam>(random_message(random, 300));
  EXPECT_LE(largest_allocation, 10'000u);
}

TYPED_TEST(Hostile, EveryShortenedMessageIsIncompatible) {
  const auto message = test::encoded(TypeParam());
  for (std::size_t size = 0; size < message.size(); ++size) {
    std::vector<std::byte> part(message.begin(), message.begin() + static_cast<std::ptrdiff_t>(size));
    wire::Reader reader(part);
    EXPECT_THROW(wire::decode<TypeParam>(reader), Incompatible) << size << " of " << message.size() << " bytes";
  }
}

TYPED_TEST(Hostile, AHugeCountCostsNoMemory) {
  std::vector<std::byte> message(64, std::byte{0xff});
  message[7] = std::byte{0x0f};
  largest_allocation = 0;
  expect_value_or_incompatible<TypeParam>(message);
  EXPECT_LE(largest_allocation, 10'000u);
}

TYPED_TEST(Hostile, DeepNestingDoesNotOverflowTheStack) {
  for (const auto fill : {std::byte{1}, std::byte{0}}) {
    std::vector<std::byte> message(1'000'000, fill);
    for (std::size_t i = 0; i < message.size(); i += 8) message[i] = std::byte{1};
    expect_value_or_incompatible<TypeParam>(message);
  }
}

TEST(Hostile, ViewsAreCheckedToo) {
  std::mt19937 random(1);
  for (int i = 0; i < 3'000; ++i) {
    const auto message = random_message(random, 100);
    try {
      wire::Reader reader(message);
      double sum = 0;
      for (const Flags& flags : wire::load_images<Flags>(reader)) sum += flags.flag ? flags.number : 0;
      EXPECT_EQ(sum, sum) << "reads all of the view";
    } catch (const Incompatible&) {
    }
  }
}

TEST(Hostile, RandomBytesAreAnExceptionOfSomeKind) {
  std::mt19937 random(1);
  for (int i = 0; i < 3'000; ++i) EXPECT_NE(wire::decode_exception(random_message(random, 400)), nullptr);
}

TEST(Incompatible, NamesTheTypeAndTheProblem) {
  alignas(8) const std::byte message[8] = {std::byte{9}};
  wire::Reader reader(message);
  try {
    wire::decode<std::vector<std::string>>(reader);
    FAIL();
  } catch (const Incompatible& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("vector"), text.npos) << text;
    EXPECT_NE(text.find("its length does not fit the message"), text.npos) << text;
  }
}

}  // namespace
}  // namespace drover
