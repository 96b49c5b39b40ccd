// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>

#include "drover/base/errors.h"
#include "drover/health/engine.h"
#include "drover/health/report_json.h"
#include "drover/health/report_read.h"
#include "drover/health/scenario/scenario.h"

namespace {

using namespace drover::health;

Report played(const char* name) { return play(demo_scenario(name)); }

std::string problem_of(const std::string& text) {
  const std::vector<ReadReport> read = read_reports(text, "a.json");
  return read.size() == 1 && !read.front().report ? read.front().place + ": " + read.front().problem : "";
}

/// A valid report with one thing replaced.
std::string with(const std::string& from, const std::string& to) {
  std::string text = to_json(played("spinning-odd-rank-out"));
  const std::size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(ReadReport, EverySituationComesBackAsItWas) {
  for (const Situation& situation : situations()) {
    const std::string text = to_json(play(Scenario::parse(situation.name, situation.text)));
    const Report report = read_report(text);
    EXPECT_EQ(to_json(report), text) << situation.name;
  }
}

TEST(ReadReport, HostileTextsComeBack) {
  Report report = played("spinning-odd-rank-out");
  report.gpus[0].processes[0].process.command = "</script>\"\\\n\x1b[2J\xE2\x80\xA8 {\n{";
  report.unknown_counts = true;
  const std::string text = to_json(report);
  EXPECT_EQ(to_json(read_report(text)), text);
}

TEST(ReadReport, SeveralInOneFile) {
  const std::string one = to_json(played("idle-job"));
  EXPECT_EQ(read_reports(one + one + "\n\x1e" + to_json(played("gpu-lost"), -1), "a").size(), 3U);
  const std::vector<ReadReport> read = read_reports("\xef\xbb\xbf" + one + "  " + one, "all.json");
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[0].place, "all.json, line 1");
  EXPECT_EQ(read[1].place, "all.json, line " + std::to_string(std::count(one.begin(), one.end(), '\n') + 1));
  EXPECT_TRUE(read[0].report && read[1].report);
}

TEST(ReadReport, WhatIsBadBetweenGoodOnesIsNamedAndLeftOut) {
  const std::string one = to_json(played("idle-job"));
  for (const std::string& bad :
       {one.substr(0, one.size() / 2), std::string("srun: job 17 queued"), std::string("{\"schema\": 1}"),
        std::string("{\"a\": \"\x01\"}"), std::string("[[[[")}) {
    const std::vector<ReadReport> read = read_reports(one + bad + "\n" + one, "a");
    ASSERT_EQ(read.size(), 3U) << bad.substr(0, 40);
    EXPECT_TRUE(read[0].report && !read[1].report && read[2].report);
    EXPECT_FALSE(read[1].problem.empty());
  }
}

TEST(ReadReport, ErrorsNameThePlace) {
  EXPECT_EQ(problem_of(""), "a.json, line 1: it is empty");
  EXPECT_EQ(problem_of(" \n\nhello"), "a.json, line 3: this is no report of drover inspect --json: hello");
  EXPECT_EQ(problem_of("\n{\"a\":\n1"), "a.json, line 2: it ends in the middle (line 3)");
  EXPECT_EQ(problem_of("{\"a\": tru }").substr(0, 29), "a.json, line 1: it is no JSON");
  EXPECT_EQ(problem_of("{}"), "a.json, line 1: schema is not \"drover.inspect\": this is no report");
  EXPECT_NE(problem_of(with("\"version\": 1", "\"version\": 2")).find("version is 2, and this drover reads version 1"),
            std::string::npos);
  EXPECT_NE(problem_of(with("\"drover.inspect\"", "\"drover.inspect.merged\"")).find("merged report"),
            std::string::npos);
  EXPECT_NE(problem_of(with("\"uuid\": \"", "\"uuid\": [], \"old\": \"")).find("gpus[0].uuid is no text"),
            std::string::npos);
  EXPECT_NE(problem_of(with("\"pid\": 4000", "\"pid\": 4294967296")).find("findings[0].pid is too large"),
            std::string::npos);
  EXPECT_NE(problem_of(with("\"pid\": 4000", "\"pid\": -1")).find("is no whole number"), std::string::npos);
  EXPECT_NE(problem_of(with("\"rule\": \"R6\"", "\"rule\": \"R66\"")).find("'R66' is not known"), std::string::npos);
  EXPECT_NE(problem_of(with("\"window_s\": ", "\"window_s\": 1e999, \"old\": ")), "");
  EXPECT_NE(problem_of(with("\"window_s\": ", "\"window_s\": 1e30, \"old\": ")).find("window_s is too large"),
            std::string::npos);
  EXPECT_NE(problem_of(with("\"findings\": [", "\"findings\": {}, \"old\": [")).find("findings is no list"),
            std::string::npos);
}

TEST(ReadReport, NumbersOutOfRangeAreRefused) {
  const auto problem = [](const std::string& member, const std::string& value) {
    return problem_of(with("\"" + member + "\": ", "\"" + member + "\": " + value + ", \"old\": "));
  };
  EXPECT_NE(problem("power_w", "-1").find("gpus[0].power_w is less than 0"), std::string::npos);
  EXPECT_NE(problem("window_s", "-0.5").find("window_s is less than 0"), std::string::npos);
  EXPECT_NE(problem("cores_share", "1001").find("cores_share is too large"), std::string::npos);
  EXPECT_EQ(problem("cpu_share", "2048.5"), "") << "of one core: the machine has many";
  EXPECT_NE(problem("cpu_share", "65537").find("cpu_share is too large"), std::string::npos);
  EXPECT_NE(problem("busy", "1e9").find("cpu.busy is too large"), std::string::npos);
  EXPECT_NE(problem("memory_total_bytes", "1152921504606846977").find("memory_total_bytes is too large"),
            std::string::npos);
  EXPECT_EQ(problem("memory_total_bytes", "1152921504606846976"), "");
  EXPECT_EQ(problem("temperature_c", "-5"), "");
  EXPECT_EQ(problem("unix_time", "-5"), "");
}

TEST(ReadReport, SizeAndDepthAreLimited) {
  EXPECT_NE(problem_of(std::string(1'000'000, '[')), "");
  const std::string deep = "{\"a\":" + std::string(40, '[') + std::string(40, ']') + "}";
  EXPECT_NE(problem_of(deep).find("nested deeper than 32 levels"), std::string::npos);
  const std::string large = "{\"a\":\"" + std::string(kMostReportBytes, 'x') + "\"}";
  EXPECT_NE(problem_of(large).find("longer than 8 MiB"), std::string::npos);
  std::string many;
  for (std::size_t i = 0; i < kMostReports + 5; ++i) many += "{}\n";
  const std::vector<ReadReport> read = read_reports(many, "a");
  ASSERT_EQ(read.size(), kMostReports);
  EXPECT_NE(read.back().problem.find("more than 10,000"), std::string::npos);
}

TEST(ReadReport, MembersOfLaterVersionsAreIgnoredAndMissingOnesNotKnown) {
  const Report report = read_report(with("\"host\":", "\"new\": [1], \"old_host\":"));
  EXPECT_EQ(report.host, "");
  EXPECT_EQ(report.gpus.size(), 4U);
}

/// A report, or an error: whatever the bytes.
TEST(ReadReport, TakesAnyBytes) {
  std::string valid = to_json(played("spinning-odd-rank-out"), -1);
  Report small = played("idle-job");
  small.limits.clear();
  small.gpus[0].series.resize(3);
  valid = to_json(small);
  std::mt19937_64 random(5);  // fixed: a failure must come back
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  static constexpr std::string_view kPieces[] = {
      "{",    "}",    "[",      "]", "\"", "\\u0000", "null", "-1", "1e308", "\n{", ",", ":", "18446744073709551616",
      "true", "\xff", "\\ud800"};
  std::size_t reports = 0, errors = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text = valid;
    for (std::size_t edits = below(4) + 1; edits > 0; --edits) {
      const std::size_t at = below(text.size() + 1);
      const std::string_view piece = kPieces[below(std::size(kPieces))];
      switch (below(5)) {
        case 0:
          text.insert(at, piece);
          break;
        case 1:
          text.replace(at, below(12), piece);
          break;
        case 2:
          text.insert(at, text.substr(below(text.size() + 1), below(200)));
          break;
        case 3:
          if (at < text.size()) text[at] = static_cast<char>(below(256));
          break;
        default:
          text.erase(at, below(30));
      }
    }
    if (below(10) == 0) text.resize(below(text.size() + 1));
    for (const ReadReport& read : read_reports(text, "a")) {
      read.report ? ++reports : ++errors;
      EXPECT_NE(read.report.has_value(), !read.problem.empty());
      if (read.report && round % 16 == 0) {
        EXPECT_FALSE(to_json(*read.report).empty());
      }
    }
  }
  EXPECT_GT(reports, 1000U);
  EXPECT_GT(errors, 1000U);
}

}  // namespace
