// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <complex>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "drover/array/shared_array.h"
#include "drover/base/errors.h"
#include "harness/subprocess.h"
#include "tests/array/unique_name.h"

namespace drover {
namespace {

using test::unique_name;

drover_test::Command python(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), DROVER_NUMPY_SIDE);
  return {.program = "/usr/bin/python3", .arguments = std::move(arguments)};
}

/// What numpy_side.py prints. Fails the test when it fails, for example because there is no NumPy.
std::string numpy(const std::vector<std::string>& arguments) {
  const drover_test::Outcome outcome = drover_test::run(python(arguments));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return outcome.out;
}

class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "array-test-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name + ".npy"; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// The k-th element of a test array, as in numpy_side.py.
template <class T>
T value_of(std::size_t k) {
  if constexpr (std::is_same_v<T, bool>) {
    return k % 3 == 0;
  } else if constexpr (std::is_same_v<T, char>) {
    return static_cast<char>('A' + k % 26);
  } else if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(k % 100);
  } else {
    using Number = typename T::value_type;
    return {static_cast<Number>(k % 100), static_cast<Number>(k % 7)};
  }
}

constexpr std::array<std::size_t, 8> kExtents{3, 2, 4, 1, 2, 3, 2, 2};

template <std::size_t Rank>
Shape<Rank> test_shape() {
  std::array<std::size_t, Rank> extents{};
  std::copy_n(kExtents.begin(), Rank, extents.begin());
  return extents;
}

template <class T, std::size_t Rank>
void expect_test_array(const ArrayView<const T, Rank>& array, const std::string& what) {
  EXPECT_EQ(array.extents(), test_shape<Rank>()) << what;
  std::size_t k = 0;
  for (const T& element : array) {
    if (element != value_of<T>(k++)) FAIL() << what << ": element " << k - 1;
  }
}

template <class T, std::size_t Rank>
void expect_saved(const Folder& folder) {
  for (const std::string order : {"C", "F"}) {
    const std::string descr = detail::element_type<T>().descr.substr(1);
    const std::string file = folder.file(descr + "_" + std::to_string(Rank) + "_" + order);
    const auto array = SharedArray<const T, Rank>::from_npy(file);
    expect_test_array<T, Rank>(array, file);
    EXPECT_EQ(array.stride(0) == 1, Rank == 1 || order == "F") << file;
    EXPECT_NO_THROW(static_cast<void>(array.span()));
  }
}

template <class... T>
void expect_all_saved(const Folder& folder) {
  (expect_saved<T, 2>(folder), ...);
  const auto all_ranks = [&]<std::size_t... I>(std::index_sequence<I...>) {
    (expect_saved<double, I + 1>(folder), ...);
  };
  all_ranks(std::make_index_sequence<8>{});
}

template <class Array>
std::string refusal(const std::string& file) {
  try {
    static_cast<void>(Array::from_npy(file));
    return "not refused";
  } catch (const Incompatible& error) {
    return error.what();
  }
}

TEST(NumPy, SavesWhatFromNpyReads) {
  const Folder folder;
  numpy({"save", folder.path()});
  expect_all_saved<bool, std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t, std::uint32_t,
                   std::int64_t, std::uint64_t, float, double, long double, std::complex<float>, std::complex<double>,
                   char>(folder);
  for (const char* version : {"version_1", "version_2", "version_3"}) {
    EXPECT_EQ((SharedArray<const double, 2>::from_npy(folder.file(version))(2, 3)), 11.0);
  }
  EXPECT_EQ((SharedArray<const double, 1>::from_npy(folder.file("f8_0_C"))(0)), 0.0);
  EXPECT_EQ((SharedArray<double, 2>::from_npy(folder.file("empty")).extent(1)), 5u);
}

TEST(NumPy, SavesMuchThatIsRefusedWithTheReason) {
  const Folder folder;
  numpy({"save", folder.path()});
  using Vector = SharedArray<const double, 1>;
  const auto expect_reason = [&](const std::string& name, const std::string& reason) {
    const std::string text = refusal<Vector>(folder.file(name));
    EXPECT_NE(text.find(reason), text.npos) << text;
    EXPECT_NE(text.find(folder.file(name)), text.npos) << text;
  };
  expect_reason("big_endian", "big-endian");
  expect_reason("object", "Python objects");
  expect_reason("structured", "structured");
  expect_reason("half", "holds <f2 (3,), not <f8 with 1 dimension");
  expect_reason("time", "holds <M8[ns] (3,), not <f8");
  expect_reason("f8_2_F", "holds <f8 (3, 2) in Fortran order, not <f8 with 1 dimension");
}

TEST(NumPy, SeesWhatIsWrittenToItsFileAndTheOtherWayRound) {
  const Folder folder;
  numpy({"save", folder.path()});
  const auto array = SharedArray<double, 2>::from_npy(folder.file("f8_2_C"));
  const auto reader = SharedArray<const double, 2>::from_npy(folder.file("f8_2_C"));
  for (double& element : array) element -= 1;
  numpy({"add", folder.file("f8_2_C"), "1"});
  expect_test_array<double, 2>(reader, "changed twice");
}

/// Arrays of many types stay open until Python has looked at them all.
template <class T, std::size_t Rank>
auto test_array(std::vector<std::string>& paths, std::string& expected, Order order) {
  const auto array = SharedArray<T, Rank>::create(unique_name(), test_shape<Rank>(), {.order = order});
  std::size_t k = 0;
  for (T& element : array) element = value_of<T>(k++);
  paths.push_back(array.path());
  expected += array.path() + " " + detail::element_type<T>().descr + " " + detail::text_of(array.extents()) +
              (order == Order::kC || Rank == 1 ? " C\n" : " F\n");
  return array;
}

template <class... T>
void expect_read_by_numpy() {
  std::vector<std::string> arguments{"check"};
  std::string expected;
  const std::tuple arrays{
      test_array<T, 3>(arguments, expected, Order::kC)..., test_array<T, 3>(arguments, expected, Order::kFortran)...,
      test_array<T, 1>(arguments, expected, Order::kFortran)..., test_array<T, 8>(arguments, expected, Order::kC)...};
  EXPECT_EQ(numpy(arguments), expected);
}

TEST(NumPy, ReadsArraysOfEveryTypeAndOrder) {
  expect_read_by_numpy<bool, char, std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t, std::uint32_t,
                       std::int64_t, std::uint64_t, float, double, long double, std::complex<float>,
                       std::complex<double>>();
}

TEST(NumPy, ChangesAnArrayInPlace) {
  const auto array = SharedArray<double, 2>::create(unique_name(), {3, 4});
  array(2, 3) = 1;
  numpy({"add", array.path(), "2.5"});
  EXPECT_EQ(array(2, 3), 3.5);
  EXPECT_EQ(array(0, 0), 2.5);
}

struct Sample {
  double time;
  int level;
};

TEST(NumPy, SeesStructsAsRecords) {
  const auto array = SharedArray<Sample, 1>::create(unique_name(), {2});
  array(0) = {0.5, 3};
  array(1) = {1.5, 4};
  EXPECT_EQ(numpy({"record", array.path()}), "[(0.5, 4), (1.5, 5)]\n");
  EXPECT_EQ(array(1).level, 5);
}

TEST(SharedMemoryOfPython, IsAttachedAndChanged) {
  const std::string name = unique_name();
  drover_test::Subprocess holder(python({"hold", name, "6"}));
  ASSERT_TRUE(holder.wait_for_output("ready"));
  {
    const auto array = SharedArray<double, 2>::attach_raw(name, {2, 3});
    EXPECT_EQ((std::vector<double>(array.begin(), array.end())), (std::vector<double>{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(array.name(), name);
    array(1, 2) = 50;
    const auto columns = SharedArray<const double, 2>::attach_raw(name, {2, 3}, {.order = Order::kFortran});
    EXPECT_EQ(columns(1, 0), 1.0);
    EXPECT_THROW((SharedArray<double, 1>::attach_raw(name, {7'000})), Incompatible);
    EXPECT_THROW((SharedArray<double, 2>::open(name)), Incompatible);
  }
  EXPECT_TRUE(std::filesystem::exists("/dev/shm/" + name)) << "whoever attaches never unlinks";
  holder.send(SIGUSR1);
  const drover_test::Outcome outcome = holder.finish();
  EXPECT_EQ(outcome.out, "ready\n[0.0, 1.0, 2.0, 3.0, 4.0, 50.0]\n") << outcome.err;
}

TEST(SharedMemoryOfPython, OpensABlockOfOursAtOffset4096) {
  const auto array = SharedArray<double, 1>::create(unique_name(), {3});
  array.copy_from(std::vector{1.0, 2.0, 3.0});
  EXPECT_EQ(numpy({"attach", array.name(), "3"}), "[1.0, 2.0, 3.0]\n");
  EXPECT_EQ((std::vector<double>(array)), (std::vector{2.0, 4.0, 6.0}));
}

}  // namespace
}  // namespace drover
