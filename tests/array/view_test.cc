// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <complex>
#include <iterator>
#include <list>
#include <numeric>
#include <random>
#include <ranges>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "drover/array/array_view.h"
#include "drover/base/errors.h"

namespace drover {
namespace {

using View = ArrayView<int, 2>;
using View3 = ArrayView<int, 3>;

static_assert(std::ranges::random_access_range<View> && std::ranges::sized_range<View>);
static_assert(std::random_access_iterator<ArrayView<const double, 4>::iterator>);
static_assert(std::convertible_to<View, ArrayView<const int, 2>>);
static_assert(!std::convertible_to<ArrayView<const int, 2>, View>);
static_assert(std::convertible_to<ArrayView<int, 1>&, std::span<int>>);
static_assert(std::convertible_to<ArrayView<int, 1>&, std::span<const int>>);
static_assert(!std::convertible_to<ArrayView<int, 1>, std::span<const int>>, "the view would be gone");
static_assert(!std::convertible_to<View&, std::span<int>>);
template <class V>
concept HasSpan = requires(V&& view) {
  std::forward<V>(view).span();
};
template <class V>
concept HasBegin = requires(V&& view) {
  std::forward<V>(view).begin();
};
static_assert(HasSpan<View&> && HasSpan<const View&> && !HasSpan<View> && !HasSpan<const View>);
static_assert(HasBegin<View&> && !HasBegin<View>);

/// 0, 1, 2, ... in the order of the indices.
struct Counted {
  explicit Counted(std::size_t size) : values(size) { std::iota(values.begin(), values.end(), 0); }
  std::vector<int> values;
};

std::vector<int> elements_of(const auto& view) { return {view.begin(), view.end()}; }

template <class Call>
std::string what_of(const Call& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing thrown";
}

TEST(Shape, TakesAnyIntegersAndRefusesWhatNoArrayHas) {
  const std::size_t n = 3;
  const Shape<3> shape{n, 4L, static_cast<short>(5)};
  EXPECT_EQ(shape.size(), 60u);
  EXPECT_EQ(shape, (Shape<3>(std::array{3, 4, 5})));
  EXPECT_THROW((Shape<2>{3, -1}), InvalidArgument);
  EXPECT_THROW((Shape<2>{1L << 32, 1L << 31}), InvalidArgument);
  EXPECT_THROW((Shape<2>{0, ~0UL}), InvalidArgument);
  EXPECT_NO_THROW((Shape<2>{0, 1L << 62}));
  EXPECT_EQ(what_of([] { Shape<2>{3, -1}; }), "an array cannot have an extent of -1: it must not be negative");
  EXPECT_NE(what_of([] { Shape<2>{1L << 32, 1L << 31}; }).find("(4294967296, 2147483648)"), std::string::npos);
}

TEST(ElementType, IsNumPysNameOfTheType) {
  enum class Colour : std::uint16_t {};
  struct Sample {
    double time;
    int level;
  };
  const auto descr = []<class T>(T) { return detail::element_type<T>().descr; };
  EXPECT_EQ(descr(true), "|b1");
  EXPECT_EQ(descr('a'), "|S1");
  EXPECT_EQ(descr(std::byte{}), "|u1");
  EXPECT_EQ(descr(std::int8_t{}), "|i1");
  EXPECT_EQ(descr(std::uint8_t{}), "|u1");
  EXPECT_EQ(descr(short{}), "<i2");
  EXPECT_EQ(descr(char16_t{}), "<u2");
  EXPECT_EQ(descr(1), "<i4");
  EXPECT_EQ(descr(1L), "<i8");
  EXPECT_EQ(descr(1LL), "<i8");
  EXPECT_EQ(descr(std::size_t{}), "<u8");
  EXPECT_EQ(descr(1.0F), "<f4");
  EXPECT_EQ(descr(1.0), "<f8");
  EXPECT_EQ(descr(1.0L), "<f16");
  EXPECT_EQ(descr(std::complex<float>()), "<c8");
  EXPECT_EQ(descr(std::complex<double>()), "<c16");
  EXPECT_EQ(descr(Colour{}), "<u2");
  EXPECT_EQ(descr(Sample{}), "|V16");
  EXPECT_EQ(descr(std::array<float, 3>{}), "|V12");
  EXPECT_EQ(descr(std::pair<int, float>()), "|V8");
}

TEST(ArrayView, FindsElementsByIndexInRowMajorOrder) {
  Counted data(12);
  const View view(data.values.data(), {3, 4});
  EXPECT_EQ(view.extent(0), 3u);
  EXPECT_EQ(view.extent(1), 4u);
  EXPECT_EQ(view.stride(0), 4);
  EXPECT_EQ(view.stride(1), 1);
  EXPECT_EQ(view.size(), 12u);
  EXPECT_EQ(View::rank(), 2u);
  EXPECT_EQ(view(2, 1), 9);
  EXPECT_EQ(view(2UL, short{1}), 9);
  view(2, 1) = 100;
  EXPECT_EQ(data.values[9], 100);
}

TEST(ArrayView, ChecksIndicesInAt) {
  Counted data(12);
  const View view(data.values.data(), {3, 4});
  EXPECT_EQ(view.at(2, 3), 11);
  EXPECT_THROW(view.at(3, 0), std::out_of_range);
  EXPECT_THROW(view.at(0, -1), std::out_of_range);
  EXPECT_THROW(view.at(~0UL, 0), std::out_of_range);
  EXPECT_EQ(what_of([&] { view.at(2, 12); }), "index 12 of axis 1 is outside of the array: the extent is 4");
}

TEST(ArrayView, GoesThroughItsElementsInTheOrderOfIndices) {
  Counted data(24);
  const View3 all(data.values.data(), {2, 3, 4});
  EXPECT_EQ(elements_of(all), data.values);
  const auto part = all.slice(Slice{}, Slice{.from = 1}, Slice{.step = 3});
  EXPECT_EQ(elements_of(part), (std::vector{4, 7, 8, 11, 16, 19, 20, 23}));
  EXPECT_EQ(elements_of(all.slice(0).transpose()), (std::vector{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}));
  int sum = 0;
  for (const int value : all.slice(1)) sum += value;
  EXPECT_EQ(sum, 12 * (12 + 23) / 2);
}

TEST(ArrayView, HasIteratorsThatJump) {
  Counted data(24);
  const View3 all(data.values.data(), {2, 3, 4});
  for (const View3& view : {all, all.transpose(), all.slice(Slice{}, Slice{.step = 2}, Slice{.to = 3})}) {
    const std::vector<int> expected = elements_of(view);
    const auto begin = view.begin(), end = view.end();
    ASSERT_EQ(end - begin, static_cast<std::ptrdiff_t>(expected.size()));
    for (std::ptrdiff_t i = 0; i < end - begin; ++i) {
      EXPECT_EQ(begin[i], expected[static_cast<std::size_t>(i)]);
      EXPECT_EQ(*(end - (end - begin - i)), begin[i]);
      EXPECT_LT(begin + i, end);
    }
    EXPECT_TRUE(std::ranges::equal(std::reverse_iterator(end), std::reverse_iterator(begin), expected.rbegin(),
                                   expected.rend()));
  }
  const View3 turned = all.transpose();
  std::ranges::sort(turned, std::greater());
  EXPECT_TRUE(std::ranges::is_sorted(turned, std::greater()));
  EXPECT_EQ(turned(0, 0, 0), 23);
}

TEST(ArrayView, OfNothingHasNoElements) {
  for (const View& view : {View(), View(nullptr, {0, 5}), View(nullptr, {5, 0})}) {
    EXPECT_TRUE(view.empty());
    EXPECT_EQ(view.begin(), view.end());
    EXPECT_EQ(view.span().size(), 0u);
    EXPECT_EQ(view.transpose().size(), 0u);
    view.fill(1);
  }
}

TEST(ArrayView, GivesRows) {
  Counted data(12);
  const View view(data.values.data(), {3, 4});
  const View rows = view.rows(1, 3);
  EXPECT_EQ(rows.extent(0), 2u);
  EXPECT_EQ(rows(0, 0), 4);
  EXPECT_EQ(rows.span().size(), 8u);
  EXPECT_EQ(view.rows(3, 3).size(), 0u);
  EXPECT_THROW(view.rows(2, 4), std::out_of_range);
  EXPECT_THROW(view.rows(2, 1), std::out_of_range);
  EXPECT_THROW(view.rows(-1, 1), InvalidArgument);
}

TEST(ArrayView, SlicesLikeNumPy) {
  Counted data(12);
  const View view(data.values.data(), {3, 4});
  EXPECT_EQ(elements_of(view.slice(1)), (std::vector{4, 5, 6, 7}));
  EXPECT_EQ(elements_of(view.slice(-1)), (std::vector{8, 9, 10, 11}));
  EXPECT_EQ(elements_of(view.slice(Slice{}, 2)), (std::vector{2, 6, 10}));
  EXPECT_EQ(elements_of(view.slice(Slice{0, 3, 2}, Slice{1, -1})), (std::vector{1, 2, 9, 10}));
  EXPECT_EQ(elements_of(view.slice(Slice{-2, Slice::kEnd}, Slice{.step = 4})), (std::vector{4, 8}));
  EXPECT_EQ(view.slice(Slice{.from = 3}).size(), 0u);
  EXPECT_EQ(view.slice(Slice{.step = ~0UL}).size(), 4u);
  const std::size_t n = 2;
  EXPECT_EQ(elements_of(view.slice(n, Slice{n, n + 1})), (std::vector{10}));
  EXPECT_THROW(view.slice(3), std::out_of_range);
  EXPECT_THROW(view.slice(-4), std::out_of_range);
  EXPECT_THROW(view.slice(Slice{0, 4}), std::out_of_range);
  EXPECT_THROW(view.slice(Slice{2, 1}), std::out_of_range);
  EXPECT_THROW(view.slice(Slice{~0UL, 1}), std::out_of_range);
  EXPECT_THROW(view.slice(Slice{.step = 0}), InvalidArgument);
  EXPECT_EQ(what_of([&] {
              view.slice(Slice{}, Slice{1, 9});
            }),
            "the slice from 1 to 9 of axis 1 is not inside of the array: the extent is 4");
}

TEST(ArrayView, SlicesOfSlicesAddUp) {
  Counted data(100);
  const View view(data.values.data(), {10, 10});
  const View odd = view.slice(Slice{.from = 1, .step = 2}, Slice{.from = 1, .step = 2});
  EXPECT_EQ(elements_of(odd.slice(Slice{.step = 2}, Slice{3, 5})), (std::vector{17, 19, 57, 59, 97, 99}));
}

TEST(ArrayView, ReshapesWhatIsContiguous) {
  Counted data(12);
  const View view(data.values.data(), {3, 4});
  EXPECT_EQ(view.reshape(2, 3, 2)(1, 2, 1), 11);
  EXPECT_EQ(elements_of(view.reshape(12)), data.values);
  EXPECT_EQ(view.rows(1, 3).reshape(Shape<2>{4, 2})(0, 1), 5);
  EXPECT_THROW(view.reshape(5, 2), InvalidArgument);
  EXPECT_THROW(view.transpose().reshape(12), InvalidArgument);
  EXPECT_EQ(what_of([&] { view.reshape(5, 2); }), "cannot reshape (3, 4) to (5, 2): the number of elements differs");
}

TEST(ArrayView, HasASpanWhenThereAreNoGaps) {
  Counted data(12);
  const View view(data.values.data(), {3, 4});
  EXPECT_EQ(view.span().data(), data.values.data());
  const View turned = view.transpose();
  EXPECT_EQ(turned.span().size(), 12u);
  const View gaps = view.slice(Slice{}, Slice{0, 2});
  EXPECT_THROW(static_cast<void>(gaps.span()), InvalidArgument);
  const auto column = view.slice(Slice{}, 1);
  EXPECT_THROW(static_cast<void>(std::span<int>(column)), InvalidArgument);
  const auto row = view.slice(1);
  const std::span<const int> span = row;
  EXPECT_EQ(span.data(), &view(1, 0));
  const std::vector<int> copy = column;
  EXPECT_EQ(copy, (std::vector{1, 5, 9}));
  const View one = view.slice(Slice{1, 2}, Slice{.step = 4});
  EXPECT_EQ(one.span().size(), 1u) << "strides of axes with one element do not matter";
}

TEST(ArrayView, FillsExactlyItsElements) {
  Counted data(12);
  const View view(data.values.data(), {3, 4});
  view.slice(Slice{.step = 2}, Slice{1, 3}).fill(-1);
  EXPECT_EQ(data.values, (std::vector{0, -1, -1, 3, 4, 5, 6, 7, 8, -1, -1, 11}));
  view.transpose().fill(7);
  EXPECT_EQ(data.values, std::vector<int>(12, 7));
}

TEST(ArrayView, CopiesBetweenAnyStrides) {
  Counted from(24);
  const View3 source(from.values.data(), {2, 3, 4});
  std::vector<int> to(24);
  const View3 target(to.data(), {4, 3, 2});
  target.copy_from(source.transpose());
  EXPECT_EQ(elements_of(target.transpose()), from.values);
  target.transpose().copy_from(source);
  EXPECT_EQ(elements_of(target.transpose()), from.values);
  const ArrayView<const int, 3> constant = source;
  target.reshape(2, 3, 4).copy_from(constant);
  EXPECT_EQ(to, from.values);
  EXPECT_THROW(target.copy_from(source), InvalidArgument);
  EXPECT_EQ(what_of([&] { target.copy_from(source); }),
            "cannot copy an array of shape (2, 3, 4) into one of shape (4, 3, 2): slice or reshape one of them");
}

TEST(ArrayView, CopiesFromRanges) {
  std::vector<double> to(6);
  const ArrayView<double, 2> target(to.data(), {2, 3});
  target.copy_from(std::list<int>{1, 2, 3, 4, 5, 6});
  EXPECT_EQ(to, (std::vector<double>{1, 2, 3, 4, 5, 6}));
  target.transpose().copy_from(std::vector<float>{1, 2, 3, 4, 5, 6});
  EXPECT_EQ(to, (std::vector<double>{1, 3, 5, 2, 4, 6}));
  EXPECT_THROW(target.copy_from(std::vector<double>(5)), InvalidArgument);
  EXPECT_THROW(target.copy_from(std::vector<double>(7)), InvalidArgument);
  struct Input {
    explicit Input(std::istream& from) : first(from) {}
    std::istream_iterator<double> begin() const { return first; }
    std::istream_iterator<double> end() const { return {}; }
    std::istream_iterator<double> first;
  };
  std::istringstream few("1 2 3"), many("1 2 3 4 5 6 7");
  std::vector<double> expected{1, 2, 3, 4, 5, 6};
  EXPECT_THROW(target.copy_from(Input(few)), InvalidArgument);
  EXPECT_THROW(target.copy_from(Input(many)), InvalidArgument);
  EXPECT_EQ(to, expected) << "what there was room for";
}

TEST(ArrayView, KeepsItsMemoryAlive) {
  auto memory = std::make_shared<std::vector<int>>(std::vector{1, 2, 3, 4});
  const std::weak_ptr<std::vector<int>> watched = memory;
  ArrayView<const int, 1> part;
  {
    int* data = memory->data();
    const View view(data, {2, 2}, std::move(memory));
    part = view.slice(1);
  }
  EXPECT_FALSE(watched.expired());
  EXPECT_EQ(part(1), 4);
  part = {};
  EXPECT_TRUE(watched.expired());
}

/// One random part of an array, by views and by a list of the indices of its elements.
TEST(ArrayView, AgreesWithIndexArithmeticOnRandomSlices) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto below = [&random](std::size_t end) { return static_cast<std::size_t>(random() % end); };
  for (int round = 0; round < 2'000; ++round) {
    const std::array extents{below(5) + 1, below(5) + 1, below(5) + 1};
    Counted data(Shape<3>(extents).size());
    const View3 view(data.values.data(), Shape<3>(extents));
    std::array<Slice, 3> slices;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const std::size_t from = below(extents[axis] + 1);
      slices[axis] = {from, from + below(extents[axis] - from + 1), below(4) + 1};
    }
    std::vector<int> expected;
    const auto indices = [&](std::size_t axis) {
      std::vector<int> list;
      for (auto i = slices[axis].from.value(); i < slices[axis].to.value(); i += static_cast<long>(slices[axis].step)) {
        list.push_back(static_cast<int>(i));
      }
      return list;
    };
    for (const int i : indices(0)) {
      for (const int j : indices(1)) {
        for (const int k : indices(2)) expected.push_back(view(i, j, k));
      }
    }
    EXPECT_EQ(elements_of(view.slice(slices[0], slices[1], slices[2])), expected);
  }
}

}  // namespace
}  // namespace drover
