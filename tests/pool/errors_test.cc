// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "drover/drover.h"
#include "drover/os/throw_trace.h"

namespace science {

struct Diverged : std::runtime_error {
  explicit Diverged(int step) : std::runtime_error("diverged at step " + std::to_string(step)), at(step) {}
  int at;
};

}  // namespace science

namespace {

struct NoException {
  int x;
};
struct CopyThrows : std::exception {
  CopyThrows() = default;
  CopyThrows(const CopyThrows&) { throw std::runtime_error("the copy failed"); }
  const char* what() const noexcept override { return "hard to copy"; }
};
struct WhatIsNull : std::exception {
  const char* what() const noexcept override { return nullptr; }
};

int throw_kind(int kind) {
  switch (kind) {
    case 0:
      throw std::out_of_range("index 7 of 3");
    case 1:
      throw std::invalid_argument("no such model");
    case 2:
      throw std::bad_alloc();
    case 3:
      throw std::system_error(ENOENT, std::generic_category(), "open data");
    case 4:
      throw std::filesystem::filesystem_error("read", "/a/b", std::make_error_code(std::errc::permission_denied));
    case 5:
      throw science::Diverged(12);
    case 6:
      throw 42;
    case 7:
      throw std::string("thrown text");
    case 8:
      throw NoException{1};
    case 9:
      throw WhatIsNull();
    case 10:
      throw drover::Timeout("my own limit");
    default:
      return kind;
  }
}
int throw_uncopyable() {
  throw CopyThrows();  // NOLINT
}
int throw_huge_text(std::size_t size) { throw std::domain_error("head " + std::string(size, 'x')); }

/// Encodes and decodes as told to.
struct Picky {
  int number = 0;
  std::string text;

  template <class Archive>
  void save(Archive& archive) const {
    archive(number);
    if (number == 13) throw std::domain_error("13 does not encode");
    archive(text);
  }
  template <class Archive>
  void load(Archive& archive) {
    archive(number);
    if (number == 17) throw std::domain_error("17 does not decode");
    archive(text);
  }
};
int number_of(const Picky& picky) { return picky.number; }
Picky make_picky(int number) { return {number, std::string(static_cast<std::size_t>(number), '.')}; }
int check(int value, const Picky&) { return value; }

class Errors : public testing::Test {
 protected:
  drover::Pool pool{{.workers = 2}};

  template <class X>
  void expect(int kind, const std::string& type, const std::string& message) {
    try {
      pool.submit<throw_kind>(kind).get();
      FAIL() << "no exception for " << kind;
    } catch (const X& error) {
      const drover::RemoteTrace* trace = drover::remote_trace(error);
      ASSERT_NE(trace, nullptr);
      EXPECT_EQ(trace->type_name(), type);
      EXPECT_EQ(trace->message(), message);
      EXPECT_NE(trace->where().find("pid "), std::string::npos) << trace->where();
      EXPECT_NE(trace->where().find("throw_kind"), std::string::npos) << trace->where();
    }
  }
};

TEST_F(Errors, StandardTypesArriveAsThemselves) {
  expect<std::out_of_range>(0, "std::out_of_range", "index 7 of 3");
  expect<std::logic_error>(1, "std::invalid_argument", "no such model");
  expect<std::bad_alloc>(2, "std::bad_alloc", "std::bad_alloc");
  expect<std::system_error>(3, "std::system_error", "open data: No such file or directory");
  expect<drover::Timeout>(10, "drover::v1::Timeout", "my own limit");
  try {
    pool.submit<throw_kind>(3).get();
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code(), std::errc::no_such_file_or_directory);
    EXPECT_STREQ(error.what(), "open data: No such file or directory");
  }
  try {
    pool.submit<throw_kind>(4).get();
  } catch (const std::filesystem::filesystem_error& error) {
    EXPECT_EQ(error.path1(), "/a/b");
    EXPECT_EQ(error.code(), std::errc::permission_denied);
  }
}

TEST_F(Errors, AllElseArrivesAsRemoteErrorWithItsTypeName) {
  expect<drover::RemoteError>(5, "science::Diverged", "diverged at step 12");
  expect<drover::RemoteError>(6, "int", "42");
  expect<drover::RemoteError>(7, "std::string", "thrown text");
  expect<drover::RemoteError>(8, "(anonymous namespace)::NoException", "");
  expect<drover::RemoteError>(9, "(anonymous namespace)::WhatIsNull", "");
}

TEST_F(Errors, SaysWhereInItsText) {
  try {
    pool.submit<throw_kind>(5).get();
    FAIL();
  } catch (const std::exception& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("diverged at step 12"), std::string::npos) << text;
    EXPECT_NE(text.find("science::Diverged"), std::string::npos) << text;
  }
}

TEST_F(Errors, HasTheStackOfTheThrow) {
  if (!drover::os::throw_trace_available()) GTEST_SKIP() << "built without the throw hook";
  for (int i = 0; i < 2; ++i) {  // the trace is of each throw, not of the first
    try {
      pool.submit<throw_kind>(5).get();
    } catch (const drover::RemoteError& error) {
      EXPECT_NE(error.stack().find("#0"), std::string::npos) << error.stack();
      EXPECT_GE(std::count(error.stack().begin(), error.stack().end(), '#'), 2) << error.stack();
    }
  }
}

TEST_F(Errors, OneWhoseCopyThrowsStillArrives) {
  try {
    pool.submit<throw_uncopyable>().get();
    FAIL();
  } catch (const drover::RemoteError& error) {
    EXPECT_EQ(error.message(), "hard to copy");
  }
  EXPECT_EQ(pool.submit<throw_kind>(99).get(), 99);
}

TEST_F(Errors, AHugeTextArrivesFromSubmit) {
  try {
    pool.submit<throw_huge_text>(std::size_t{3} << 20).get();
    FAIL();
  } catch (const std::domain_error& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("head xxx"));
  }
}

TEST_F(Errors, AHugeTextArrivesFromAMapAtLeastInPart) {
  auto results = pool.map<throw_huge_text>(std::vector<std::size_t>{10, 100'000, 3 << 20});
  int seen = 0;
  for (auto it = results.begin(); it != results.end(); ++it) {
    try {
      static_cast<void>(*it);
    } catch (const std::domain_error& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with("head xxx"));
      ++seen;
    } catch (const std::exception& error) {
      ADD_FAILURE() << "item " << it.index() << " arrived as: " << error.what();
    }
  }
  EXPECT_EQ(seen, 3);
}

template <class Results, class Check>
void expect_one_error(Results results, std::size_t bad, std::size_t count, const Check& check_value) {
  std::size_t good = 0, errors = 0;
  for (auto it = results.begin(); it != results.end(); ++it) {
    try {
      check_value(it.index(), *it);
      EXPECT_NE(it.index(), bad);
      ++good;
    } catch (const std::exception& error) {
      EXPECT_EQ(it.index(), bad) << error.what();
      ++errors;
    }
  }
  EXPECT_EQ(good, count - 1);
  EXPECT_EQ(errors, 1u);
}

TEST_F(Errors, AResultThatDoesNotEncodeSpoilsItsItemAlone) {
  expect_one_error(pool.map<make_picky>(drover::range(0, 17), {.chunk = 6}), 13, 17,
                   [](std::size_t i, const Picky& value) { EXPECT_EQ(value.number, static_cast<int>(i)); });
  EXPECT_THROW(pool.submit<make_picky>(13).get(), std::domain_error);
  EXPECT_EQ(pool.submit<make_picky>(14).get().number, 14);
}

TEST_F(Errors, AResultThatDoesNotDecodeSpoilsItsItemAlone) {
  std::vector<int> inputs;
  for (int i = 14; i < 30; ++i) inputs.push_back(i);
  expect_one_error(pool.map<make_picky>(inputs, {.chunk = 5}), 3, inputs.size(),
                   [](std::size_t i, const Picky& value) { EXPECT_EQ(value.number, static_cast<int>(i) + 14); });
  EXPECT_THROW(pool.submit<make_picky>(17).get(), std::domain_error);
}

TEST_F(Errors, AnArgumentThatDoesNotDecodeSpoilsItsItemAlone) {
  std::vector<Picky> inputs;
  for (int i = 14; i < 30; ++i) inputs.push_back({i, std::string(static_cast<std::size_t>(i) / 3, 'p')});
  for (const int chunk : {1, 5}) {
    expect_one_error(pool.map<number_of>(inputs, {.chunk = chunk}), 3, inputs.size(),
                     [](std::size_t i, int value) { EXPECT_EQ(value, static_cast<int>(i) + 14); });
  }
  EXPECT_THROW(pool.submit<number_of>(Picky{17, "x"}).get(), std::domain_error);
  EXPECT_EQ(pool.submit<number_of>(Picky{18, "x"}).get(), 18);
  EXPECT_EQ(pool.submit<check>(1, Picky{}).get(), 1);
}

TEST_F(Errors, AnArgumentThatDoesNotEncodeIsAnErrorOfTheCaller) {
  EXPECT_THROW(static_cast<void>(pool.submit<number_of>(Picky{13, ""})), std::domain_error);
  std::vector<Picky> inputs = {{1, ""}, {2, ""}, {13, ""}, {4, ""}};
  auto results = pool.map<number_of>(inputs);
  int seen = 0;
  EXPECT_THROW(for ([[maybe_unused]] const int value : results)++ seen, std::domain_error);
  EXPECT_EQ(seen, 2) << "all before it arrive";
}

}  // namespace
