// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "drover/wire/memcpy_trait.h"
#include "tests/wire/round_trip.h"

namespace drover {
namespace {

using test::encoded;
using test::round_trip;
using wire::travels_by_memcpy;

enum class Color : std::uint8_t { kRed, kGreen };

struct Padded {
  char letter;
  double number;
  std::pair<short, long> pair;
  long double wide;
  bool flag;
};

struct Nested {
  Padded items[2];
  std::array<std::complex<float>, 3> points;
  Color color;
  std::chrono::seconds time;
  std::tuple<char, int> tuple;
};

class Opaque {
 public:
  explicit Opaque(int number) : number_(number) {}
  int number() const { return number_; }

 private:
  int number_;
};

struct HoldsOpaque {
  char letter;
  Opaque opaque;
};

struct NotThisWay {
  int number;
};

struct HoldsPointer {
  int* pointer;
};
struct HoldsView {
  std::span<int> view;
};
struct HoldsReference {
  int& reference;
};
struct Derived : NotThisWay {
  int more;
};

}  // namespace

template <>
inline constexpr bool enable_memcpy<Opaque> = true;
template <>
inline constexpr bool enable_memcpy<NotThisWay> = false;

namespace {

TEST(TravelsByMemcpy, IsTrueForPlainDataLookedAtMemberByMember) {
  EXPECT_TRUE(travels_by_memcpy<int>);
  EXPECT_TRUE(travels_by_memcpy<Color>);
  EXPECT_TRUE(travels_by_memcpy<std::complex<double>>);
  EXPECT_TRUE(travels_by_memcpy<std::chrono::system_clock::time_point>);
  EXPECT_TRUE(travels_by_memcpy<double[3][4]>);
  EXPECT_TRUE((travels_by_memcpy<std::array<std::pair<int, double>, 3>>));
  EXPECT_TRUE((travels_by_memcpy<std::tuple<char, double>>));
  EXPECT_TRUE(travels_by_memcpy<Nested>);
}

TEST(TravelsByMemcpy, IsFalseForPointersViewsAndOwners) {
  EXPECT_FALSE(travels_by_memcpy<int*>);
  EXPECT_FALSE(travels_by_memcpy<int&>);
  EXPECT_FALSE(travels_by_memcpy<std::nullptr_t>);
  EXPECT_FALSE(travels_by_memcpy<HoldsPointer>);
  EXPECT_FALSE(travels_by_memcpy<HoldsView>);
  EXPECT_FALSE(travels_by_memcpy<HoldsReference>);
  EXPECT_FALSE(travels_by_memcpy<std::string_view>);
  EXPECT_FALSE(travels_by_memcpy<std::string>);
  EXPECT_FALSE((travels_by_memcpy<std::pair<int, int*>>));
  EXPECT_FALSE(travels_by_memcpy<Derived>);
}

TEST(TravelsByMemcpy, IsUpToTheUserForOtherClasses) {
  EXPECT_TRUE(travels_by_memcpy<Opaque>);
  EXPECT_TRUE(travels_by_memcpy<HoldsOpaque>);
  EXPECT_FALSE(travels_by_memcpy<NotThisWay>);
  EXPECT_EQ(round_trip(HoldsOpaque{'a', Opaque(5)}).opaque.number(), 5);
  EXPECT_EQ(round_trip(NotThisWay{6}).number, 6);
}

TEST(EncodedSize, IsFixedForWhatTravelsByMemcpy) {
  EXPECT_EQ(wire::encoded_size_fixed<double>, 8u);
  EXPECT_EQ(wire::encoded_size_fixed<Nested>, sizeof(Nested));
  EXPECT_EQ(encoded(Nested{}).size(), sizeof(Nested));
  EXPECT_EQ(wire::encoded_size_fixed<std::string>, 0u);
}

template <class T>
std::vector<std::byte> encoded_over(unsigned char garbage, auto fill) {
  alignas(T) std::byte place[sizeof(T)];
  std::memset(place, garbage, sizeof place);
  T* value = new (place) T;  // default-initialised: the padding keeps the garbage
  fill(*value);
  return encoded(*value);
}

TEST(Image, HasZerosForPadding) {
  const auto fill = [](Nested& value) {
    for (Padded& item : value.items) {
      item.letter = 'a';
      item.number = 1.5;
      item.pair.first = 2;
      item.pair.second = 3;
      item.wide = 4.5L;
      item.flag = true;
    }
    for (auto& point : value.points) point = {1, 2};
    value.color = Color::kGreen;
    value.time = std::chrono::seconds(7);
    std::get<0>(value.tuple) = 'b';
    std::get<1>(value.tuple) = 8;
  };
  EXPECT_EQ(encoded_over<Nested>(0xff, fill), encoded_over<Nested>(0x55, fill));
}

TEST(Image, KeepsEveryMember) {
  Nested value{};
  value.items[1] = {'a', 1.5, {2, 3}, 4.5L, true};
  value.points[2] = {5, 6};
  value.color = Color::kGreen;
  value.tuple = {'b', 8};
  const Nested copy = round_trip(value);
  EXPECT_EQ(copy.items[1].letter, 'a');
  EXPECT_EQ(copy.items[1].pair, std::pair(short{2}, 3L));
  EXPECT_EQ(copy.items[1].wide, 4.5L);
  EXPECT_TRUE(copy.items[1].flag);
  EXPECT_EQ(copy.points[2], std::complex<float>(5, 6));
  EXPECT_EQ(copy.color, Color::kGreen);
  EXPECT_EQ(copy.tuple, std::tuple('b', 8));
  EXPECT_EQ(round_trip(std::vector<Nested>(3, value))[2].items[1].wide, 4.5L);
}

}  // namespace
}  // namespace drover
