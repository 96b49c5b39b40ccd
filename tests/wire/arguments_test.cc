// SPDX-License-Identifier: Apache-2.0
#include "drover/wire/arguments.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "drover/base/errors.h"

namespace drover {
namespace {

double area(double width, double height) { return width * height; }
std::string join(const std::string& a, std::string&& b, std::string_view c) {
  return a + std::move(b) + std::string(c);
}
double sum(std::span<const double> values) {
  double total = 0;
  for (const double value : values) total += value;
  return total;
}
double sum_of(const std::vector<double>& values) { return sum(values); }
int open_box(std::unique_ptr<int> box) noexcept { return *box; }
std::unique_ptr<int> make_box(int value) { return std::make_unique<int>(value); }
int calls = 0;
void nothing() { ++calls; }
double second(std::pair<int, double> pair) { return pair.second; }
double product(int a, double b) { return a * b; }
int order(int a, const std::string& text, int b) { return a * 100 + static_cast<int>(text.size()) * 10 + b; }

bool is_aligned(std::string_view, std::span<const double> values) {
  return reinterpret_cast<std::uintptr_t>(values.data()) % alignof(double) == 0;
}

void takes_reference(int&) {}
void takes_pointer(const char*) {}
void takes_mutable_span(std::span<int>) {}
void takes_span_of_strings(std::span<const std::string>) {}
const int& gives_reference() { return calls; }
std::string_view gives_view() { return "view"; }
int* gives_pointer() { return &calls; }

struct Object {
  int method() { return 1; }
  static int function(int value) { return value; }
};

template <auto F, class... Argument>
auto call(Argument&&... argument) {
  wire::Writer writer;
  wire::encode_arguments<F>(writer, std::forward<Argument>(argument)...);
  wire::Reader reader(writer.bytes());
  return wire::apply<F>(reader);
}

template <auto F, class E>
auto call_with_element(E&& element) {
  wire::Writer writer;
  wire::encode_element<F>(writer, std::forward<E>(element));
  wire::Reader reader(writer.bytes());
  return wire::apply<F>(reader);
}

TEST(Arguments, AreConvertedToTheParameterTypes) {
  EXPECT_EQ(call<area>(2, 3.5f), 7.0);
  EXPECT_EQ(call<join>("a", "b", "c"), "abc");
  EXPECT_EQ(call<join>(std::string("a"), std::string("b"), std::string("c")), "abc");
  EXPECT_EQ(call<order>(1, "12", 3), 123);
}

TEST(Arguments, ArriveAsViewsOfTheMessage) {
  const std::vector<double> values{1, 2, 3};
  EXPECT_EQ(call<sum>(values), 6.0);
  EXPECT_EQ(call<sum>(std::vector<double>{4, 5}), 9.0);
  EXPECT_EQ(call<sum>(std::array{1.5, 2.5}), 4.0);
  EXPECT_EQ(call<sum_of>(values), 6.0);
  EXPECT_TRUE(call<is_aligned>("odd", values));
}

TEST(Arguments, MayBeMoveOnly) {
  EXPECT_EQ(call<open_box>(std::make_unique<int>(7)), 7);
  const auto kept = std::make_unique<int>(8);
  EXPECT_EQ(call<open_box>(kept), 8) << "an argument is only looked at";
  EXPECT_EQ(*call<make_box>(9), 9);
}

TEST(Arguments, MayBeNone) {
  calls = 0;
  call<nothing>();
  EXPECT_EQ(calls, 1);
}

TEST(Arguments, OfSeveralCallsMayStandInOneMessage) {
  wire::Writer writer;
  wire::encode_arguments<join>(writer, "a", "b", "c");
  wire::encode_arguments<is_aligned>(writer, "odd", std::vector{1.0});
  wire::Reader reader(writer.bytes());
  EXPECT_EQ(wire::apply<join>(reader), "abc");
  EXPECT_TRUE(wire::apply<is_aligned>(reader));
}

TEST(Arguments, HaveAFixedSizeWhenAllTravelByMemcpy) {
  EXPECT_EQ(wire::arguments_size_fixed<area>, 16u);
  EXPECT_EQ(wire::arguments_size_fixed<second>, sizeof(std::pair<int, double>));
  EXPECT_EQ(wire::arguments_size_fixed<join>, 0u);
  EXPECT_EQ(wire::arguments_size_fixed<sum>, 0u);
}

TEST(Arguments, ThatAreCutOffAreIncompatible) {
  wire::Writer writer;
  wire::encode_arguments<join>(writer, "a", "b", "c");
  wire::Reader reader(writer.bytes().first(20));
  EXPECT_THROW(wire::apply<join>(reader), Incompatible);
}

TEST(Element, IsPassedWholeWhenTheFunctionTakesIt) {
  EXPECT_EQ(call_with_element<second>(std::pair(1, 2.5)), 2.5);
  EXPECT_EQ(call_with_element<sum>(std::vector<double>{1, 2}), 3.0);
}

TEST(Element, IsSpreadOverSeveralParameters) {
  EXPECT_EQ(call_with_element<product>(std::pair(2, 2.5)), 5.0);
  EXPECT_EQ(call_with_element<product>(std::array{2, 3}), 6.0);
  EXPECT_EQ(call_with_element<join>(std::tuple("a", "b", "c")), "abc");
}

TEST(Element, ThatDoesNotFitIsKnown) {
  EXPECT_TRUE((wire::TakesElement<product, std::pair<int, int>>));
  EXPECT_FALSE((wire::TakesElement<product, int>));
  EXPECT_FALSE((wire::TakesElement<product, std::tuple<int, int, int>>));
  EXPECT_FALSE((wire::TakesElement<second, std::string>));
}

TEST(Callable, IsAFunctionWhoseTypesTravel) {
  EXPECT_TRUE(wire::Callable<area>);
  EXPECT_TRUE(wire::Callable<&join>);
  EXPECT_TRUE(wire::Callable<sum>);
  EXPECT_TRUE(wire::Callable<open_box>);
  EXPECT_TRUE(wire::Callable<nothing>);
  EXPECT_TRUE(wire::Callable<&Object::function>);
}

TEST(Callable, IsNothingElse) {
  EXPECT_FALSE(wire::Callable<takes_reference>);
  EXPECT_FALSE(wire::Callable<takes_pointer>);
  EXPECT_FALSE(wire::Callable<takes_mutable_span>);
  EXPECT_FALSE(wire::Callable<takes_span_of_strings>);
  EXPECT_FALSE(wire::Callable<gives_reference>);
  EXPECT_FALSE(wire::Callable<gives_view>);
  EXPECT_FALSE(wire::Callable<gives_pointer>);
  EXPECT_FALSE(wire::Callable<&Object::method>);
  EXPECT_FALSE(wire::Callable<[] { return 1; }>);
  EXPECT_FALSE(wire::Callable<5>);
}

}  // namespace
}  // namespace drover
