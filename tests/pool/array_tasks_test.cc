// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "drover/drover.h"

namespace {

using drover::ArrayView;
using drover::SharedArray;

double sum(ArrayView<const double, 2> rows) {
  double total = 0;
  for (const double x : rows) total += x;
  return total;
}
double largest(ArrayView<const double, 2> rows) { return *std::max_element(rows.begin(), rows.end()); }
double larger(double a, double b) { return std::max(a, b); }
std::string first_numbers(ArrayView<const double, 2> rows, std::size_t first) {
  return std::to_string(first) + "+" + std::to_string(rows.extent(0)) + " ";
}
void number_rows(ArrayView<double, 2> rows, std::size_t first) {
  for (std::size_t i = 0; i < rows.extent(0); ++i) rows.slice(i).fill(static_cast<double>(first + i));
}
void add_one(ArrayView<double, 2> rows) {
  for (double& x : rows) x += 1;
}
void fail_at_row_3(ArrayView<double, 2>, std::size_t first) {
  if (first >= 3) throw std::domain_error("row " + std::to_string(first));
}

TEST(ForRows, VisitsEachRowOnce) {
  drover::Pool pool({.workers = 2});
  const auto array = SharedArray<double, 2>::create({5'000, 300});  // twelve pieces
  drover::for_rows<number_rows>(pool, array);
  drover::for_rows<add_one>(pool, array);
  for (std::size_t i = 0; i < 5'000; ++i) {
    ASSERT_EQ(array(i, 0), static_cast<double>(i + 1));
    ASSERT_EQ(array(i, 299), static_cast<double>(i + 1));
  }
}

TEST(ForRows, TakesPartsOfArraysAndNothing) {
  drover::Pool pool({.workers = 2});
  const auto array = SharedArray<double, 2>::create({10, 10});
  drover::for_rows<add_one>(pool, array.slice(drover::Slice{2, 4}, drover::Slice{0, 10, 3}));
  double total = 0;
  for (const double x : array) total += x;
  EXPECT_EQ(total, 8);
  drover::for_rows<add_one>(pool, array.rows(0, 0));
}

TEST(ForRows, ThrowsWhatACallThrew) {
  drover::Pool pool({.workers = 2});
  const auto array = SharedArray<double, 2>::create({4, 200'000});  // a piece a row
  EXPECT_THROW(drover::for_rows<fail_at_row_3>(pool, array), std::domain_error);
}

TEST(Reduce, CombinesInTheOrderOfTheRows) {
  drover::Pool pool({.workers = 2});
  const auto array = SharedArray<double, 2>::create({4, 200'000});
  EXPECT_EQ(drover::reduce<first_numbers>(pool, array), "0+1 1+1 2+1 3+1 ");
  drover::for_rows<number_rows>(pool, array);
  EXPECT_EQ((drover::reduce<largest, larger>(pool, array)), 3);
  EXPECT_EQ(drover::reduce<sum>(pool, array), 200'000. * 6);
  EXPECT_EQ(drover::reduce<sum>(pool, array.rows(0, 0)), 0);
}

TEST(FillNormal, GivesTheSameNumbersWhateverTheNumberOfWorkers) {
  const auto one = SharedArray<double, 2>::create({777, 1'003}), four = SharedArray<double, 2>::create({777, 1'003});
  double sums[2];
  {
    drover::Pool pool({.workers = 1});
    drover::fill_normal(pool, one, 5);
    sums[0] = drover::reduce<sum>(pool, one);
  }
  {
    drover::Pool pool({.workers = 4});
    drover::fill_normal(pool, four, 5);
    sums[1] = drover::reduce<sum>(pool, four);
  }
  EXPECT_TRUE(std::ranges::equal(one.span(), four.span()));
  EXPECT_EQ(sums[0], sums[1]);  // to the last bit
  std::vector<double> alone(one.size());
  drover::normal_numbers(5, 0, alone);
  EXPECT_TRUE(std::ranges::equal(one.span(), alone));
}

TEST(FillNormal, FillsFloatsAndParts) {
  drover::Pool pool({.workers = 2});
  const auto array = SharedArray<float, 1>::create({100'001});
  drover::fill_normal(pool, array, 1);
  std::vector<double> numbers(array.size());
  drover::normal_numbers(1, 0, numbers);
  for (std::size_t i = 0; i < numbers.size(); ++i) ASSERT_EQ(array(i), static_cast<float>(numbers[i]));
  const auto matrix = SharedArray<double, 2>::create({10, 10});
  EXPECT_THROW(drover::fill_normal(pool, matrix.slice(drover::Slice{}, drover::Slice{0, 5}), 1),
               drover::InvalidArgument);
}

}  // namespace
