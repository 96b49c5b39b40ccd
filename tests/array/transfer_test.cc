// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "drover/array/shared_array.h"
#include "drover/base/errors.h"
#include "drover/pool/pool.h"
#include "drover/worker/process.h"
#include "harness/deadline.h"
#include "tests/array/unique_name.h"

namespace drover {
namespace {

using Matrix = SharedArray<double, 2>;
using View = ArrayView<double, 2>;
using ConstView = ArrayView<const double, 2>;
using test::unique_name;

static_assert(wire::Travels<Matrix> && wire::Travels<View> && wire::Travels<ConstView>);
static_assert(wire::Travels<std::vector<std::pair<std::string, SharedArray<const int, 8>>>>);

double sum_of(const ConstView& view) { return std::accumulate(view.begin(), view.end(), 0.0); }

// What runs in other processes.
double sum_array(const Matrix& array) { return sum_of(array); }
double sum_view(ConstView view) { return sum_of(view); }
void scale(const View& view, double factor) {
  for (double& element : view) element *= factor;
}
double sum_rows_of(const std::string& name, int from, int to) {
  return sum_of(SharedArray<const double, 2>::open(name).rows(from, to));
}
Matrix make(int rows, int columns, double value) {
  auto array = Matrix::create({rows, columns});
  array.fill(value);
  return array;
}
ConstView make_part(int rows, int columns) { return make(rows, columns, 3).slice(Slice{.step = 2}, Slice{1, 3}); }
std::vector<Matrix> make_many(int count) {
  std::vector<Matrix> arrays;
  for (int i = 0; i < count; ++i) arrays.push_back(make(2, 3, i));
  return arrays;
}
Matrix pass(Matrix array) { return array; }
pid_t process_number() { return getpid(); }
struct Part {
  ConstView view;
  std::string label;
};
double sum_part(const Part& part) { return sum_of(part.view); }
double sum_many(const std::vector<ConstView>& views) {
  double sum = 0;
  for (const ConstView& view : views) sum += sum_of(view);
  return sum;
}

Matrix counted(const Matrix& array) {
  std::vector<double> numbers(array.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  array.copy_from(numbers);
  return array;
}

/// An array with a name, a small one in a slab, and a large one that has a file of its own.
class ArraysInAPool : public testing::TestWithParam<const char*> {
 protected:
  Matrix array() const {
    const std::string kind = GetParam();
    if (kind == "named") return counted(Matrix::create(unique_name(), {6, 8}));
    if (kind == "fortran") return counted(Matrix::create(unique_name(), {6, 8}, {.order = Order::kFortran}));
    if (kind == "small") return counted(Matrix::create({6, 8}));
    return counted(Matrix::create({200, 800}));
  }
  static double sum_to(std::size_t n) { return static_cast<double>(n * (n - 1) / 2); }
};

TEST_P(ArraysInAPool, ArriveAsTheSameMemory) {
  Pool pool({.workers = 2});
  const Matrix mine = array();
  EXPECT_EQ(pool.submit<sum_array>(mine).get(), sum_to(mine.size()));
  pool.submit<scale>(mine, 2.0).get();
  EXPECT_EQ(mine(1, 0), 2.0 * static_cast<double>(mine.extent(1)));
  EXPECT_EQ(pool.submit<sum_view>(mine).get(), 2 * sum_to(mine.size()));
}

TEST_P(ArraysInAPool, ArriveAsViewsOfParts) {
  Pool pool({.workers = 2});
  const Matrix mine = array();
  pool.submit<scale>(mine.rows(1, 3), -1.0).get();
  EXPECT_EQ(mine(2, 1), -static_cast<double>(mine.extent(1) * 2 + 1));
  EXPECT_EQ(mine(3, 0), static_cast<double>(mine.extent(1) * 3));
  const View part = mine.slice(Slice{.from = 1, .step = 2}, Slice{.step = 3}).transpose();
  EXPECT_EQ(pool.submit<sum_view>(part).get(), sum_of(part));
  EXPECT_EQ(pool.submit<sum_part>(Part{part, "odd rows"}).get(), sum_of(part));
  EXPECT_EQ(pool.submit<sum_many>(std::vector<ConstView>{mine, part, mine.rows(0, 0)}).get(),
            sum_of(mine) + sum_of(part));
}

TEST_P(ArraysInAPool, AreElementsOfAMap) {
  Pool pool({.workers = 2});
  const Matrix mine = array();
  std::vector<ConstView> rows;
  double expected = 0, sum = 0;
  for (std::size_t i = 0; i < mine.extent(0); ++i) {
    rows.push_back(mine.rows(i, i + 1));
    expected += sum_of(rows.back());
  }
  for (const double part : pool.map<sum_view>(rows, {.ordered = false})) sum += part;
  EXPECT_EQ(sum, expected);
}

TEST_P(ArraysInAPool, LiveOnWhenTheCallerDropsThem) {
  Pool pool({.workers = 1});
  Future<double> sum;
  std::size_t size = 0;
  {
    const Matrix mine = array();
    size = mine.size();
    sum = pool.submit<sum_array>(mine);
  }
  EXPECT_EQ(sum.get(), sum_to(size));
}

TEST_P(ArraysInAPool, AreReadBySpawnedProcesses) {
  const Matrix mine = array();
  auto process = spawn<scale>(mine, 2.0);
  process.join();
  EXPECT_EQ(mine(1, 0), 2.0 * static_cast<double>(mine.extent(1)));
}

TEST_P(ArraysInAPool, ComeBackAsTheVeryMemory) {
  Pool pool({.workers = 1});
  const Matrix mine = array();
  const Matrix same = pool.submit<pass>(mine).get();
  EXPECT_EQ(same.data(), mine.data()) << "one mapping a process";
}

INSTANTIATE_TEST_SUITE_P(Kinds, ArraysInAPool, testing::Values("named", "fortran", "small", "large"),
                         [](const auto& kind) { return std::string(kind.param); });

TEST(ArraysFromAPool, AreResultsOfTasks) {
  Pool pool({.workers = 2});
  const Matrix small = pool.submit<make>(3, 4, 1.5).get();
  EXPECT_EQ(sum_of(small), 18.0);
  const Matrix large = pool.submit<make>(300, 400, 1.5).get();
  EXPECT_EQ(sum_of(large), 180'000.0);
  large(299, 399) = 0;
  EXPECT_EQ(pool.submit<sum_array>(large).get(), 179'998.5);
  EXPECT_EQ(sum_of(pool.submit<make_part>(4, 5).get()), 12.0);
  double sum = 0;
  for (const Matrix& array : pool.submit<make_many>(100).get()) sum += array(1, 2);
  EXPECT_EQ(sum, 99 * 100 / 2);
}

TEST(ArraysFromAPool, AreResultsOfAMap) {
  Pool pool({.workers = 2});
  std::vector<std::tuple<int, int, double>> inputs;
  for (int i = 0; i < 200; ++i) inputs.emplace_back(2, i % 50 == 0 ? 20'000 : 3, i);
  std::vector<Matrix> arrays = pool.map<make>(inputs).collect();
  for (std::size_t i = 0; i < 200; ++i) EXPECT_EQ(arrays[i](1, 2), static_cast<double>(i));
}

TEST(ArraysFromAPool, OutliveThePool) {
  Matrix small, large;
  {
    Pool pool({.workers = 1});
    small = pool.submit<make>(3, 4, 1.5).get();
    large = pool.submit<make>(300, 400, 1.5).get();
  }
  EXPECT_EQ(sum_of(small), 18.0);
  EXPECT_EQ(sum_of(large), 180'000.0);
}

TEST(ArraysFromAPool, OfAWorkerThatWasKilledMeanwhileAreOwnerDied) {
  Pool pool({.workers = 1});
  const pid_t worker = pool.submit<process_number>().get();
  const Matrix before = pool.submit<make>(300, 400, 1.5).get();
  Future<Matrix> lost = pool.submit<make>(300, 400, 2.5);
  ASSERT_TRUE(lost.wait_for(std::chrono::seconds(30)));
  ASSERT_EQ(kill(worker, SIGKILL), 0);
  ASSERT_TRUE(drover_test::eventually(std::chrono::seconds(10), [&] { return kill(worker, 0) != 0; }));
  EXPECT_THROW(static_cast<void>(lost.get()), OwnerDied);
  EXPECT_EQ(sum_of(before), 180'000.0) << "what has been read is here";
}

TEST(ArraysInAPool, OfSixtyFourMegabytesAreSummedByName) {
  const auto field = Matrix::create(unique_name(), {1024, 8192});
  for (std::size_t i = 0; i < field.extent(0); ++i) field.slice(i).fill(static_cast<double>(i));
  Pool pool({.workers = 2});
  std::vector<std::tuple<std::string, int, int>> parts;
  for (int from = 0; from < 1024; from += 128) parts.emplace_back(field.name(), from, from + 128);
  double sum = 0;
  for (const double part : pool.map<sum_rows_of>(parts)) sum += part;
  EXPECT_EQ(sum, 8192.0 * 1024 * 1023 / 2);
}

TEST(ViewOfOtherMemory, DoesNotTravel) {
  std::vector<double> numbers(6);
  const ConstView view(numbers.data(), {2, 3});
  wire::Writer writer;
  EXPECT_THROW(wire::encode(writer, view), InvalidArgument);
  EXPECT_THROW(wire::encode(writer, Matrix()), InvalidArgument);
  Pool pool({.workers = 1});
  try {
    static_cast<void>(pool.submit<sum_view>(view));
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("SharedArray"), std::string::npos) << error.what();
  }
}

/// A message with a view of an array that stays alive here.
std::vector<std::byte> message_of(const View& view) {
  wire::Kept kept;
  wire::Writer writer;
  writer.keep_in(&kept);
  wire::encode(writer, view);
  return {writer.bytes().begin(), writer.bytes().end()};
}

TEST(ViewMessage, WithAFalseLayoutIsIncompatible) {
  const auto array = Matrix::create({6, 8});
  const auto good = message_of(array.rows(1, 3));
  const std::size_t layout = good.size() - 5 * sizeof(std::uint64_t);  // offset, two extents, two strides
  using Changes = std::vector<std::pair<std::size_t, std::uint64_t>>;  // which number, and what it becomes
  const auto decode_with = [&](const Changes& changes) {
    auto message = good;
    for (const auto& [number, value] : changes) {
      std::memcpy(message.data() + layout + number * sizeof value, &value, sizeof value);
    }
    wire::Reader reader(message);
    return wire::decode<View>(reader);
  };
  EXPECT_EQ(decode_with({{1, 5}}).extent(0), 5u) << "up to the end";
  EXPECT_EQ(decode_with({{1, 0}}).size(), 0u);
  EXPECT_THROW(decode_with({{1, 6}}), Incompatible);
  EXPECT_THROW(decode_with({{0, 12}}), Incompatible) << "not aligned";
  EXPECT_THROW(decode_with({{0, ~std::uint64_t{7}}}), Incompatible);
  EXPECT_THROW(decode_with({{0, std::uint64_t{1} << 40}}), Incompatible);
  for (std::size_t number = 1; number < 5; ++number) {
    for (const std::uint64_t value : {~std::uint64_t{0}, std::uint64_t{1} << 63, (std::uint64_t{1} << 63) - 1,
                                      std::uint64_t{1} << 61, std::uint64_t{1} << 32, std::uint64_t{100}}) {
      EXPECT_THROW(decode_with({{number, value}}), Incompatible) << number << " " << value;
    }
  }
  EXPECT_THROW(decode_with({{1, 1'000'000}, {3, 0}}), Incompatible) << "many indices for one element";
  EXPECT_THROW(decode_with({{1, 0}, {2, ~std::uint64_t{0}}}), Incompatible) << "no elements, and no array's shape";
}

TEST(ViewMessage, OfAnotherElementTypeIsIncompatible) {
  const auto array = Matrix::create({6, 8});
  const auto message = message_of(array);
  wire::Reader reader(message);
  EXPECT_THROW((wire::decode<ArrayView<std::int64_t, 2>>(reader)), Incompatible);
}

TEST(ViewMessage, WithRandomBytesGivesAViewInsideItsBlockOrAnError) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto array = Matrix::create({6, 8});
  const auto good = message_of(array);
  double sum = 0;
  for (int round = 0; round < 20'000; ++round) {
    auto message = good;
    for (auto changes = random() % 3 + 1; changes > 0; --changes) {
      const auto value = static_cast<std::byte>(random() % 2 == 0 ? random() : random() % 9);
      message[random() % message.size()] = value;
    }
    try {
      wire::Reader reader(message);
      sum += sum_of(wire::decode<View>(reader));
    } catch (const std::exception&) {
    }
  }
  EXPECT_EQ(sum, 0.0);
}

}  // namespace
}  // namespace drover
