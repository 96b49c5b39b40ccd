// SPDX-License-Identifier: Apache-2.0
#include "drover/shm/npy_header.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>

#include "drover/base/errors.h"

namespace drover {
namespace {

using shm::NpyHeader;

/// A file's beginning of the given format, as NumPy writes it: the literal as it is, no padding.
std::vector<std::byte> file_of(std::string_view literal, int major = 1) {
  std::string text = "\x93NUMPY";
  text += static_cast<char>(major);
  text += '\0';
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i) text += static_cast<char>(literal.size() >> 8 * i & 0xff);
  text += literal;
  text.resize(std::max<std::size_t>(text.size(), 12), '\0');
  const auto bytes = std::as_bytes(std::span<const char>(text));
  return {bytes.begin(), bytes.end()};
}

NpyHeader parse(std::string_view literal, int major = 1) {
  return shm::parse_npy_header(file_of(literal, major), "a.npy");
}

/// What is said about bytes that are refused; empty when they are not.
std::string problem_of(const std::vector<std::byte>& bytes) {
  try {
    static_cast<void>(shm::parse_npy_header(bytes, "a.npy"));
    return "";
  } catch (const Incompatible& error) {
    return error.what();
  }
}
std::string problem_of(std::string_view literal, int major = 1) { return problem_of(file_of(literal, major)); }

void expect_text(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), text.npos) << '"' << text << "\" does not say \"" << part << '"';
}

std::string literal_of(const std::string& descr, const std::string& shape) {
  return "{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + ", }";
}

TEST(NpyHeader, IsAPageThatReadsBackAsItWasWritten) {
  for (const auto& header : {NpyHeader{"<f8", false, {10'000, 10'000}, 4096}, NpyHeader{"|V24", true, {3}, 4096},
                             NpyHeader{"|u1", false, {}, 4096}, NpyHeader{"<c16", false, {0, 5}, 4096},
                             NpyHeader{"<f4", true, std::vector<std::uint64_t>(32, 1), 4096}}) {
    const auto page = shm::format_npy_header(header);
    EXPECT_EQ(page.size(), 4096u);
    EXPECT_EQ(page.back(), std::byte{'\n'});
    EXPECT_EQ(shm::parse_npy_header(page, "page"), header) << header.descr;
  }
}

TEST(NpyHeader, KnowsItsSizes) {
  EXPECT_EQ((NpyHeader{"<f8", false, {3, 4}, 0}.data_size()), 96u);
  EXPECT_EQ((NpyHeader{"<f8", false, {}, 0}.data_size()), 8u);
  EXPECT_EQ((NpyHeader{"<f8", false, {0, 7}, 0}.data_size()), 0u);
  EXPECT_EQ((NpyHeader{"<U5", false, {2}, 0}.item_size()), 20u);
  EXPECT_EQ((NpyHeader{"<M8[ns]", false, {2}, 0}.item_size()), 8u);
  EXPECT_THROW((NpyHeader{"|O", false, {2}, 0}.item_size()), Incompatible);
  EXPECT_THROW((NpyHeader{"<f8", false, {std::uint64_t{1} << 60}, 0}.data_size()), InvalidArgument);
  EXPECT_THROW((NpyHeader{"<f8", false, {0, std::uint64_t{1} << 60}, 0}.data_size()), InvalidArgument);
  EXPECT_EQ((NpyHeader{"|u1", false, {(std::uint64_t{1} << 63) - 1}, 0}.data_size()), (std::uint64_t{1} << 63) - 1);
}

TEST(NpyHeader, RefusesToWriteWhatNobodyCanRead) {
  EXPECT_THROW(shm::format_npy_header({"<f8", false, {std::uint64_t{1} << 61}, 0}), InvalidArgument);
  EXPECT_THROW(shm::format_npy_header({"<f8", false, std::vector<std::uint64_t>(33, 1), 0}), InvalidArgument);
  EXPECT_THROW(shm::format_npy_header({"<f8', 'x': '", false, {1}, 0}), InvalidArgument);
}

TEST(NpyHeader, ReadsWhatAnyNumPyWrites) {
  const NpyHeader expected{"<f8", true, {3, 4}, 0};
  for (const char* text : {
           "{'descr': '<f8', 'fortran_order': True, 'shape': (3, 4), }          \n",
           "{'descr': '<f8', 'fortran_order': True, 'shape': (3, 4)}\n",
           "{'shape': (3L, 4L), 'fortran_order': True, 'descr': '<f8'}",
           "{\"fortran_order\":True,\"shape\":(3,4,),\"descr\":\"<f8\",}",
           " \t{ 'descr' : '<f8' ,\n'fortran_order' : True , 'shape' : ( 3 , 4 , ) , } \n",
       }) {
    for (const int major : {1, 2, 3}) {
      NpyHeader header = parse(text, major);
      EXPECT_EQ(header.data_offset, std::strlen(text) + (major == 1 ? 10 : 12));
      header.data_offset = 0;
      EXPECT_EQ(header, expected) << text;
    }
  }
  EXPECT_EQ(parse(literal_of("'<f8'", "()")).shape, std::vector<std::uint64_t>());
  EXPECT_EQ(parse(literal_of("'<f8'", "(7,)")).shape, std::vector<std::uint64_t>{7});
  EXPECT_EQ(parse(literal_of("'<f8'", "(0, 3)")).data_size(), 0u);
}

TEST(NpyHeader, SaysWhyATypeIsRefused) {
  expect_text(problem_of(literal_of("'>f8'", "(3,)")), "big-endian");
  expect_text(problem_of(literal_of("'|O'", "(3,)")), "Python objects");
  expect_text(problem_of(literal_of("'|O8'", "(3,)")), "Python objects");
  expect_text(problem_of(literal_of("[('a', '<f8'), ('b', '<i4')]", "(3,)")), "structured");
  expect_text(problem_of(literal_of("('<f8', (2,))", "(3,)")), "structured");
  for (const char* descr :
       {"''", "'<'", "'<f'", "'f8'", "'<x8'", "'<f8[ns]'", "'<f-8'", "'<f99999999999999999999'", "'|V4294967296'"}) {
    expect_text(problem_of(literal_of(descr, "(3,)")), "none of NumPy's");
  }
  expect_text(problem_of(literal_of("'|V0'", "(3,)")), "no size");
  expect_text(problem_of(literal_of("'>f8'", "(3,)")), "a.npy");
}

TEST(NpyHeader, SaysWhatIsWrongWithAShape) {
  expect_text(problem_of(literal_of("'<f8'", "(3)")), "not a tuple");
  expect_text(problem_of(literal_of("'<f8'", "(-3,)")), "negative");
  expect_text(problem_of(literal_of("'<f8'", "(2, 3.5)")), "is missing");
  expect_text(problem_of(literal_of("'<f8'", "(99999999999999999999,)")), "too large");
  expect_text(problem_of(literal_of("'<f8'", "(4294967296, 4294967296)")), "63 bits");
  expect_text(problem_of(literal_of("'<f8'", "(0, 4294967296, 4294967296)")), "63 bits");
  std::string many = "(";
  for (int i = 0; i < 33; ++i) many += "1, ";
  expect_text(problem_of(literal_of("'<f8'", many + ")")), "32 dimensions");
}

TEST(NpyHeader, SaysWhatIsWrongWithTheText) {
  const std::string good = literal_of("'<f8'", "(3,)");
  expect_text(problem_of("{'descr': '<f8', 'shape': (3,), }"), "lacks");
  expect_text(problem_of("{'descr': '<f8', 'descr': '<f8', }"), "twice");
  expect_text(problem_of("{'colour': '<f8', }"), "unknown");
  expect_text(problem_of(good + "x"), "follows");
  expect_text(problem_of(good + std::string(1, '\0')), "follows");
  expect_text(problem_of("{'descr': '<f8\\x00', }"), "unusual");
  expect_text(problem_of("{'descr': '<f8, }"), "no end");
  expect_text(problem_of("{'fortran_order': 1, }"), "neither True nor False");
  expect_text(problem_of(""), "missing");
}

TEST(NpyHeader, SaysWhatIsWrongWithTheFile) {
  const auto good = file_of(literal_of("'<f8'", "(3,)"));
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_NE(problem_of({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)}), "") << size;
  }
  auto bytes = good;
  bytes[0] = std::byte{'N'};
  expect_text(problem_of(bytes), "is no .npy file");
  bytes = good;
  bytes[6] = std::byte{4};
  expect_text(problem_of(bytes), "format 4.0");
  bytes = file_of(literal_of("'<f8'", "(3,)"), 2);
  for (std::size_t i = 8; i < 12; ++i) bytes[i] = std::byte{0xff};
  expect_text(problem_of(bytes), "4294967295 bytes");
}

/// Parses a copy that has exactly its size, so that the sanitizer sees one byte too far. True when it was a header.
bool survives(const std::vector<std::byte>& bytes) {
  const std::unique_ptr<std::byte[]> exact(new std::byte[bytes.size()]);
  std::copy(bytes.begin(), bytes.end(), exact.get());
  try {
    const NpyHeader header = shm::parse_npy_header({exact.get(), bytes.size()}, "fuzz");
    EXPECT_LE(header.shape.size(), 32u);
    EXPECT_LE(header.data_offset, bytes.size());
    EXPECT_LE(header.data_size(), std::uint64_t{1} << 63);
    return true;
  } catch (const Incompatible& error) {
    EXPECT_LT(std::strlen(error.what()), 1000u);
    return false;
  }
}

TEST(NpyHeader, MutatedBytesGiveAHeaderOrIncompatible) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::string_view letters = "{}()[]'\",: \n0123456789L<>|TrueFalsdcipth_-\\\0";
  int accepted = 0;
  for (int round = 0; round < 100'000; ++round) {
    auto bytes = file_of(literal_of(round % 2 == 0 ? "'<f8'" : "\"|V24\"", "(3, 40, 5)"), 1 + round % 3);
    for (auto changes = random() % 4; changes > 0 && bytes.size() > 1; --changes) {
      const auto place = static_cast<std::ptrdiff_t>(random() % bytes.size());
      const auto letter = std::byte(random() % 2 == 0 ? random() : letters[random() % letters.size()]);
      switch (random() % 4) {
        case 0:
          bytes.erase(bytes.begin() + place);
          break;
        case 1:
          bytes.insert(bytes.begin() + place, letter);
          break;
        case 2:
          bytes.resize(static_cast<std::size_t>(place) + 1);
          break;
        default:
          bytes[static_cast<std::size_t>(place)] = letter;
      }
    }
    accepted += survives(bytes) ? 1 : 0;
  }
  EXPECT_GT(accepted, 10'000) << "the mutations leave nothing to accept";
}

TEST(NpyHeader, RandomBytesBehindTheMarkAreIncompatible) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 50'000; ++round) {
    auto bytes = file_of("{'descr': ");
    bytes.resize(12 + random() % 200);
    for (std::size_t i = 12; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(random());
    bytes[8] = static_cast<std::byte>(bytes.size() - 10);
    survives(bytes);
  }
}

}  // namespace
}  // namespace drover
