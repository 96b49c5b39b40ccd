// SPDX-License-Identifier: Apache-2.0
#include "drover/array/shared_array.h"

#include <gtest/gtest.h>

#include <complex>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <latch>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

#include "drover/base/errors.h"
#include "tests/array/unique_name.h"

namespace drover {
namespace {

using Matrix = SharedArray<double, 2>;
using test::unique_name;

struct Sample {
  double time;
  int level;
  bool operator==(const Sample&) const = default;
};

/// The text of the error that `call` throws; fails the test when it throws none of that type.
template <class E, class Call>
std::string error_of(const Call& call) {
  try {
    static_cast<void>(call());
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << "no such error";
  return "";
}

void expect_parts(const std::string& text, std::initializer_list<std::string> parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), text.npos) << '"' << text << "\" does not say \"" << part << '"';
  }
}

std::size_t open_descriptors() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator()));
}

TEST(SharedArray, BeginsWithZerosAndIsSharedByItsCopies) {
  const auto array = Matrix::create({3, 4});
  for (const double value : array) EXPECT_EQ(value, 0.0);
  const Matrix copy = array;
  copy(2, 3) = 5;
  EXPECT_EQ(array(2, 3), 5.0);
  EXPECT_EQ(array.name(), "");
  EXPECT_EQ(array.path(), "");
  array.unlink();
}

TEST(SharedArray, IsFoundByItsName) {
  const std::string name = unique_name();
  const auto array = Matrix::create(name, {3, 4});
  array(1, 2) = 7;
  const auto same = Matrix::open(name);
  EXPECT_EQ(same.extents(), array.extents());
  EXPECT_EQ(same(1, 2), 7.0);
  same(0, 0) = 1;
  EXPECT_EQ(array(0, 0), 1.0);
  EXPECT_EQ(same.name(), name);
  EXPECT_TRUE(std::filesystem::exists(array.path()));
  EXPECT_EQ(std::filesystem::path(array.path()).filename(), name);
}

TEST(SharedArray, LosesItsNameWithItsLastHandleOrByUnlink) {
  const std::string name = unique_name();
  std::optional<ArrayView<double, 1>> row;
  {
    const auto array = Matrix::create(name, {3, 4});
    array.fill(2);
    row = array.slice(1);
  }
  EXPECT_NO_THROW(Matrix::open(name)) << "the view holds it";
  EXPECT_EQ((*row)(3), 2.0);
  row.reset();
  EXPECT_THROW(Matrix::open(name), Error);

  const auto array = Matrix::create(name, {2, 2});
  array.unlink();
  array.unlink();
  EXPECT_THROW(Matrix::open(name), Error);
  const auto next = Matrix::create(name, {5, 5});
  array.fill(1);
  EXPECT_EQ(next(0, 0), 0.0) << "other memory";
}

TEST(SharedArray, CanBeOpenedForReadingOnly) {
  const std::string name = unique_name();
  const auto array = Matrix::create(name, {3, 4});
  const auto reader = SharedArray<const double, 2>::open(name);
  array(2, 2) = 4;
  EXPECT_EQ(reader(2, 2), 4.0);
  static_assert(std::is_same_v<decltype(reader(0, 0)), const double&>);
  std::ifstream maps("/proc/self/maps");
  std::string line, found;
  while (std::getline(maps, line)) {
    std::uintptr_t begin = 0, end = 0;
    char dash = 0;
    std::istringstream(line) >> std::hex >> begin >> dash >> end;
    const auto at = reinterpret_cast<std::uintptr_t>(reader.data());
    if (begin <= at && at < end) found = line;
  }
  EXPECT_NE(found.find(" r--s "), found.npos) << found;
  const SharedArray<const double, 2> narrowed = array;
  EXPECT_EQ(narrowed(2, 2), 4.0);
}

TEST(SharedArray, AnyHandleOfTheProcessThatMadeItHasTheName) {
  const std::string name = unique_name();
  auto array = Matrix::create(name, {3, 4});
  auto view = SharedArray<const double, 2>::open(name);
  array = Matrix();
  EXPECT_TRUE(std::filesystem::exists(view.path())) << "a handle is left";
  array = Matrix::open(name);
  view = SharedArray<const double, 2>();
  EXPECT_TRUE(std::filesystem::exists(array.path()));
  view = SharedArray<const double, 2>::open(name);
  view.unlink();
  EXPECT_FALSE(std::filesystem::exists(array.path()));
  EXPECT_NO_THROW(array.unlink()) << "removed before";
}

TEST(SharedArray, LosesItsNameWithTheLastOfSeveralHandles) {
  const std::string name = unique_name();
  auto array = Matrix::create(name, {3, 4});
  const std::string path = array.path();
  {
    const auto view = SharedArray<const double, 2>::open(name);
    array = Matrix();
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(SharedArray, HasItsNameAlsoWhenTheFileWasOpenedByItsPathBefore) {
  const std::string name = unique_name();
  const auto array = Matrix::create(name, {3, 4});
  const auto by_path = SharedArray<const double, 2>::from_npy(array.path());
  const auto by_name = SharedArray<const double, 2>::open(name);
  EXPECT_EQ(by_name.name(), name);
  EXPECT_EQ(by_name.path(), array.path());
  EXPECT_NO_THROW(by_name.unlink());
}

TEST(SharedArray, HasNoElementsWhenItWasMovedFrom) {
  auto array = Matrix::create({3, 4});
  auto view = array.rows(0, 2);
  const Matrix moved = std::move(array);
  EXPECT_EQ(moved.size(), 12u);
  EXPECT_TRUE(array.empty());  // NOLINT(bugprone-use-after-move): it is what is tested
  EXPECT_EQ(array.element_data(), nullptr);
  EXPECT_EQ(array.name(), "");
  EXPECT_EQ(array.begin(), array.end());
  ArrayView<double, 2> other;
  other = std::move(view);
  EXPECT_EQ(other.size(), 8u);
  EXPECT_TRUE(view.empty());  // NOLINT(bugprone-use-after-move): likewise
  array = moved;
  EXPECT_EQ(array.size(), 12u);
}

TEST(SharedArray, SaysBothSidesWhenItIsOpenedAsSomethingElse) {
  const std::string name = unique_name();
  const auto array = SharedArray<float, 2>::create(name, {10, 20});
  const std::string path = array.path();
  EXPECT_EQ(error_of<Incompatible>([&] { return Matrix::open(name); }),
            path + " holds <f4 (10, 20), not <f8 with 2 dimensions");
  EXPECT_EQ(error_of<Incompatible>([&] { return SharedArray<float, 1>::open(name); }),
            path + " holds <f4 (10, 20), not <f4 with 1 dimension");
  using Floats = SharedArray<float, 2>;
  EXPECT_EQ(error_of<Incompatible>([&] {
              return Floats::open_or_create(name, {10, 21});
            }),
            path + " holds <f4 (10, 20), not <f4 (10, 21)");
  EXPECT_EQ(error_of<Incompatible>([&] {
              return Floats::open_or_create(name, {10, 20}, {.order = Order::kFortran});
            }),
            path + " holds <f4 (10, 20), not <f4 (10, 20) in Fortran order");
  EXPECT_NO_THROW(Floats::open_or_create(name, {10, 20}));
}

TEST(SharedArray, OpensOrCreatesOnceAmongManyThreads) {
  for (int round = 0; round < 50; ++round) {
    const std::string name = unique_name();
    const Shape<2> shape{4, 5};
    std::vector<Matrix> arrays(8);
    std::latch all_here(static_cast<std::ptrdiff_t>(arrays.size()));
    {
      std::vector<std::jthread> threads;
      for (Matrix& array : arrays) {
        threads.emplace_back([&] {
          all_here.arrive_and_wait();
          array = Matrix::open_or_create(name, shape);
        });
      }
    }
    arrays.front()(1, 1) = 3;
    for (const Matrix& array : arrays) ASSERT_EQ(array(1, 1), 3.0) << round;
  }
}

TEST(SharedArray, RefusesNamesThatAreTakenOrCannotBe) {
  const std::string name = unique_name();
  const auto array = Matrix::create(name, {1, 1});
  expect_parts(error_of<Error>([&] { return Matrix::create(name, {1, 1}); }), {name});
  expect_parts(error_of<Error>([&] { return Matrix::open(name + "_not"); }), {name + "_not"});
  for (const std::string& bad : {std::string(), std::string("a/b"), std::string(".."), std::string(300, 'x')}) {
    EXPECT_THROW(Matrix::create(bad, {1, 1}), InvalidArgument) << bad;
    EXPECT_THROW(Matrix::open(bad), InvalidArgument) << bad;
    EXPECT_THROW(Matrix::open_or_create(bad, {1, 1}), InvalidArgument) << bad;
  }
}

TEST(SharedArray, RefusesShapesThatCannotBe) {
  EXPECT_THROW(Matrix::create({-1, 4}), InvalidArgument);
  expect_parts(error_of<InvalidArgument>([] {
                 return Matrix::create({1L << 31, 1L << 30});
               }),
               {"(2147483648, 1073741824)", "8 bytes"});
  EXPECT_THROW(Matrix::create(unique_name(), {1L << 31, 1L << 30}), InvalidArgument);
  EXPECT_THROW(Matrix::create({1L << 31, 1L << 28}), OutOfMemory);
  EXPECT_THROW(Matrix::create(unique_name(), {1L << 31, 1L << 28}), OutOfMemory);
}

TEST(SharedArray, MayHaveNoElements) {
  const std::string name = unique_name();
  const auto named = Matrix::create(name, {0, 5});
  EXPECT_EQ(Matrix::open(name).extent(1), 5u);
  EXPECT_EQ(Matrix::create({5, 0}).size(), 0u);
  EXPECT_TRUE(Matrix().empty());
}

TEST(SharedArray, CanLieInFortranOrder) {
  const std::string name = unique_name();
  const auto array = Matrix::create(name, {3, 4}, {.order = Order::kFortran});
  EXPECT_EQ(array.stride(0), 1);
  EXPECT_EQ(array.stride(1), 3);
  std::vector<double> numbers(12);
  std::iota(numbers.begin(), numbers.end(), 0);
  array.copy_from(numbers);
  EXPECT_EQ(array(1, 0), 4.0) << "ranges are in the order of indices";
  EXPECT_EQ(array.span()[1], 4.0) << "spans in that of memory";
  const auto same = Matrix::open(name);
  EXPECT_EQ(same.stride(1), 3);
  EXPECT_EQ(same(2, 3), 11.0);
  const auto rows = Matrix::create({3, 4});
  rows.copy_from(array);
  EXPECT_EQ((std::vector<double>(rows.begin(), rows.end())), numbers);
}

template <class T>
class Elements : public testing::Test {};
using ElementTypes = testing::Types<bool, char, std::byte, std::int8_t, std::uint64_t, float, long double,
                                    std::complex<float>, std::complex<double>, Sample, std::array<short, 3>>;
TYPED_TEST_SUITE(Elements, ElementTypes);

TYPED_TEST(Elements, AreKeptInNamedAndUnnamedArraysOfEveryRank) {
  using T = TypeParam;
  const auto check = []<std::size_t Rank>(const Shape<Rank>& shape) {
    const std::string name = unique_name();
    T value{};
    if constexpr (std::is_floating_point_v<T>) {
      value = T(1.25);
    } else {
      std::memset(static_cast<void*>(&value), 1, sizeof value);
    }
    for (const auto& array : {SharedArray<T, Rank>::create(name, shape), SharedArray<T, Rank>::create(shape)}) {
      array.fill(value);
      for (const T& element : array) EXPECT_TRUE(element == value);
    }
    const auto kept = SharedArray<T, Rank>::create(name, shape);
    EXPECT_TRUE((SharedArray<T, Rank>::open(name).extents() == shape));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(kept.data()) % 4096, 0u);
  };
  check(Shape<1>{5});
  check(Shape<2>{2, 3});
  check(Shape<8>{1, 2, 1, 2, 1, 2, 1, 2});
}

TEST(SharedArray, IsAliveTenThousandTimesWithFewDescriptors) {
  const std::size_t before = open_descriptors();
  std::vector<SharedArray<int, 1>> arrays;
  for (int i = 0; i < 10'000; ++i) {
    arrays.push_back(SharedArray<int, 1>::create({100}));
    arrays.back().fill(i);
  }
  for (int i = 0; i < 10'000; ++i) {
    for (const int value : arrays[static_cast<std::size_t>(i)]) ASSERT_EQ(value, i);
  }
  EXPECT_LE(open_descriptors(), before + 50);
}

}  // namespace
}  // namespace drover
