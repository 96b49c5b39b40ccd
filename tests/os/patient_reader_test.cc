// SPDX-License-Identifier: Apache-2.0
#include "drover/os/patient_reader.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "harness/deadline.h"

namespace {

using Reader = drover::os::PatientReader<int, int>;

std::promise<void>* gate = nullptr;

int square_unless_closed(const int& number) {
  if (number < 0) gate->get_future().wait();
  if (number == 0) throw std::bad_alloc();
  return number * number;
}

}  // namespace

TEST(PatientReader, AnswersInTheOrderOfTheSubjects) {
  const auto requests = Reader().ask({3, 0, 5}, square_unless_closed);
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_EQ(*requests[0].answer(), 9);
  EXPECT_EQ(*requests[1].answer(), 0);
  EXPECT_EQ(*requests[2].answer(), 25);
  EXPECT_TRUE(Reader().ask({}, square_unless_closed).empty());
  EXPECT_FALSE(Reader::Request().pending());
}

TEST(PatientReader, OneThatHangsHoldsUpNoOther) {
  std::promise<void> open;
  gate = &open;
  const auto requests = Reader().ask({3, -2, 5}, square_unless_closed);
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_EQ(*requests[0].answer(), 9);
  EXPECT_TRUE(requests[1].pending());
  EXPECT_EQ(requests[1].answer(), nullptr);
  EXPECT_EQ(*requests[2].answer(), 25);
  open.set_value();
  EXPECT_TRUE(drover_test::eventually(std::chrono::seconds(5), [&] { return !requests[1].pending(); }));
  EXPECT_EQ(*requests[1].answer(), 4);
}

namespace {

using Shared = std::shared_ptr<int>;

int wait_if_negative(const Shared& number) {
  if (*number < 0) gate->get_future().wait();
  return *number;
}

}  // namespace

TEST(PatientReader, KeepsOnlyTheSubjectThatHangs) {
  std::promise<void> open;
  gate = &open;
  std::vector<Shared> subjects;
  for (const int number : {3, -2, 5}) subjects.push_back(std::make_shared<int>(number));
  std::vector<std::weak_ptr<int>> seen(subjects.begin(), subjects.end());
  const auto requests = drover::os::PatientReader<Shared, int>().ask(std::exchange(subjects, {}), wait_if_negative);
  EXPECT_TRUE(seen[0].expired());
  EXPECT_FALSE(seen[1].expired());
  EXPECT_TRUE(seen[2].expired());
  open.set_value();
  EXPECT_TRUE(drover_test::eventually(std::chrono::seconds(5), [&] { return !requests[1].pending(); }));
  EXPECT_TRUE(seen[1].expired());
}
