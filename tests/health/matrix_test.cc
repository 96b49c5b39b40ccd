// SPDX-License-Identifier: Apache-2.0
#include "drover/health/scenario/matrix.h"

#include <gtest/gtest.h>

#include <cctype>
#include <map>
#include <set>
#include <tuple>

#include "drover/base/errors.h"
#include "drover/health/engine.h"

namespace {

using namespace drover::health;

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += "\n  " + part;
  return text;
}

/// Played once: it takes long under sanitizers.
const std::vector<Outcome>& outcomes() {
  static const std::vector<Outcome> all = play_all();
  return all;
}

struct Played {
  std::string name;
  Scenario scenario;
  Report report;
};
const std::vector<Played>& played() {
  static const std::vector<Played> all = [] {
    std::vector<Played> result;
    for (const Situation& situation : situations()) {
      const Scenario scenario = Scenario::parse(situation.name, situation.text);
      result.push_back({situation.name, scenario, play(scenario)});
    }
    return result;
  }();
  return all;
}

TEST(Matrix, EverySituationLeadsToWhatItWasMadeFor) {
  for (const Outcome& outcome : outcomes()) EXPECT_TRUE(outcome.wrong.empty()) << outcome.name << joined(outcome.wrong);
}

TEST(Matrix, NoProblemIsMissedAndNothingElseRaisesAnAlarm) {
  Confusion ours, naive;
  for (const Outcome& outcome : outcomes()) {
    ours.add(outcome.problem, outcome.alarm);
    naive.add(outcome.problem, outcome.naive);
  }
  EXPECT_EQ(ours.misses, 0);
  EXPECT_EQ(ours.false_alarms, 0);
  EXPECT_GE(ours.hits + ours.rests, 60);
  EXPECT_GT(naive.misses + naive.false_alarms, 20) << "then the rules would not be worth their while";
  std::cout << "ours: " << ours.hits << " hits, " << ours.misses << " misses, " << ours.false_alarms
            << " false alarms; naive: " << naive.hits << ", " << naive.misses << ", " << naive.false_alarms << "\n";
}

TEST(Matrix, EachRuleHasThreeThatLeadToItAndFourThatMustNot) {
  std::map<std::string, int> positive;
  for (const Situation& situation : situations()) {
    std::set<std::string> rules;
    const Scenario scenario = Scenario::parse(situation.name, situation.text);
    for (const Expectation& one : scenario.expectations()) rules.insert(one.rule);
    for (const std::string& rule : rules) ++positive[rule];
  }
  for (const char* const rule : {"R1", "R2", "R3", "R4", "R5", "R6", "R7", "R8", "R9", "G0"})
    EXPECT_GE(positive[rule], 3) << rule;
  std::map<std::string, int> negative;
  for (const Situation& situation : situations()) {
    const std::string name = situation.name;
    if (const std::size_t at = name.find("-none-"); at != name.npos) ++negative[name.substr(0, at)];
  }
  for (const char* const family :
       {"fault", "stuck", "defunct", "orphan", "orphaned", "spinning", "blocked", "idle", "unattributed"}) {
    EXPECT_GE(negative[family], 4) << family;
  }
}

TEST(Matrix, ASingleLookNeverClaimsMoreThanLowConfidenceWhereTimeIsNeeded) {
  for (const Situation& situation : situations()) {
    Scenario scenario = Scenario::parse(situation.name, std::string(situation.text) + "\nwindow 0\n");
    for (const Finding& finding : play(scenario).findings) {
      if (finding.rule == Rule::kR1 || finding.rule == Rule::kG0) continue;
      EXPECT_LE(finding.confidence, Confidence::kLow) << situation.name << " " << finding.verdict;
      EXPECT_EQ(finding.severity, Severity::kInfo) << situation.name << " " << finding.verdict;
    }
  }
}

TEST(Matrix, AdviceNeverBeginsWithKillingAndKillsOnlyNamedPids) {
  for (const Played& situation : played()) {
    for (const Finding& finding : situation.report.findings) {
      if (finding.severity >= Severity::kWarning) {
        EXPECT_FALSE(finding.action.empty()) << situation.name;
      }
      for (std::size_t i = 0; i < finding.action.size(); ++i) {
        const std::string& step = finding.action[i];
        const bool kills = step.find("kill -KILL") != step.npos || step.find("kill -9") != step.npos;
        if (kills) {
          EXPECT_EQ(i + 1, finding.action.size()) << situation.name << ": killing comes last";
          EXPECT_GE(i, 2U) << situation.name << ": asking and a gentle end come before";
        }
        EXPECT_EQ(step.find("kill -9"), step.npos);
        EXPECT_EQ(step.find("killall"), step.npos);
      }
      EXPECT_FALSE(finding.because.empty()) << situation.name;
    }
  }
}

/// The numbers behind "kill -TERM" and the like.
std::set<int> named_for_killing(const std::string& step) {
  std::set<int> pids;
  for (std::size_t at = step.find("kill -"); at != step.npos; at = step.find("kill -", at)) {
    at = step.find(' ', at + 6);
    EXPECT_NE(at, step.npos) << step;
    while (at + 1 < step.size() && step[at] == ' ' && std::isdigit(static_cast<unsigned char>(step[at + 1])) != 0) {
      std::size_t digits = 0;
      pids.insert(std::stoi(step.substr(at + 1), &digits));
      at += digits + 1;
    }
    EXPECT_FALSE(pids.empty()) << step;
  }
  return pids;
}

TEST(Matrix, AdviceNamesNoProcessOfAnotherUserAndNeverTheFirstOne) {
  for (const Played& situation : played()) {
    const World world = situation.scenario.at(situation.scenario.window());
    const auto user = [&](int pid) {
      const Thing* const process = world.find("proc", pid);
      return process != nullptr ? process->number("uid", 1000) : -1;
    };
    for (const Finding& finding : situation.report.findings) {
      const bool of_a_process = finding.rule == Rule::kR3 || (finding.rule >= Rule::kR5 && finding.rule <= Rule::kR8);
      if (!of_a_process) continue;
      for (const std::string& step : finding.action) {
        for (const int pid : named_for_killing(step)) {
          EXPECT_GT(pid, 1) << situation.name << ": " << step;
          EXPECT_EQ(user(pid), user(finding.pid.value_or(0))) << situation.name << ": " << step;
        }
      }
    }
  }
}

TEST(Matrix, ForeignPidsGetNoAdviceToKill) {
  for (const Played& situation : played()) {
    if (!situation.scenario.container()) continue;
    for (const Finding& finding : situation.report.findings) {
      for (const std::string& step : finding.action)
        EXPECT_EQ(step.find("kill"), step.npos) << situation.name << ": " << step;
    }
  }
}

TEST(Matrix, NoLeakIsClaimedWhereTheHoldersCannotBeTold) {
  const std::string gpu = "window 10\ngpu 0 power=70 code.minor=3 ", shell = "\nproc 100 name=bash\n";
  for (const std::string& text : {gpu + shell + "on 0 4000 vram=30\n", gpu + "extra=30" + shell}) {
    const Report report = play(Scenario::parse("s", text));
    ASSERT_EQ(report.findings.size(), 1U) << text;
    const Finding& finding = report.findings.front();
    EXPECT_LE(finding.confidence, Confidence::kMedium);
    const std::string all = joined(finding.because) + joined(finding.not_because) + joined(finding.action);
    EXPECT_NE(all.find("does not tell the device's number"), all.npos) << all;
    for (const char* const word : {"leak", "reset", "nobody"}) EXPECT_EQ(all.find(word), all.npos) << all;
  }
}

TEST(Matrix, SleepIsSaidOfTheThreadsThatWereLookedAt) {
  for (const auto& [name, told, confidence] :
       {std::tuple{"blocked-after-work", " and all its threads slept for ", Confidence::kHigh},
        std::tuple{"blocked-many-threads",
                   " and the first 1024 of its 3000 threads, which are all that are looked at, slept ",
                   Confidence::kMedium}}) {
    const Report report = play(demo_scenario(name));
    ASSERT_FALSE(report.findings.empty()) << name;
    const Finding& finding = report.findings.front();
    EXPECT_EQ(finding.confidence, confidence) << name;
    EXPECT_NE(joined(finding.because).find(told), std::string::npos) << joined(finding.because);
  }
}

TEST(Matrix, ThresholdsCanBeMoved) {
  const auto find = [](const char* name) {
    for (const Situation& one : situations()) {
      if (std::string(one.name) == name) return Scenario::parse(one.name, one.text);
    }
    throw std::runtime_error(name);
  };
  EXPECT_EQ(play(find("idle-job")).exit_code(), 1);
  EXPECT_EQ(play(find("idle-job"), {"r8.warn=3h"}).exit_code(), 0);
  EXPECT_EQ(play(find("idle-none-half-an-hour"), {"r8.warn=20m"}).exit_code(), 1);
  EXPECT_EQ(play(find("unknown-mig")).exit_code(), 3);
  EXPECT_EQ(play(find("unknown-mig"), {"unknown.exit=0"}).exit_code(), 0);
  EXPECT_THROW(play(find("idle-job"), {"r8.warm=3h"}), drover::InvalidArgument);
}

TEST(Thresholds, HaveALargestValue) {
  Thresholds limits;
  for (const char* const text : {"r8.warn=1e12", "r8.warn=36501d", "clear=1e18", "confirm=1000001", "r8.share=1001",
                                 "r8.vram=1152921504606846977000", "r6.pcie=1e30"}) {
    try {
      limits.set(text);
      ADD_FAILURE() << text;
    } catch (const drover::InvalidArgument& error) {
      EXPECT_NE(std::string(error.what()).find("from 0 to "), std::string::npos) << error.what();
    }
  }
  for (const LimitInfo& info : Thresholds::table()) EXPECT_NO_THROW(limits.set(limits.text(info.limit))) << info.name;
  for (const char* const text : {"r8.warn=36500d", "r5.hold=36500d", "clear=1000000", "confirm=1000000"})
    limits.set(text);
  for (const Situation& situation : situations()) {
    for (const Finding& finding : play(Scenario::parse(situation.name, situation.text), {"r8.warn=36500d"}).findings) {
      for (const std::string& text : finding.not_because) EXPECT_EQ(text.find("--window -"), text.npos) << text;
    }
  }
}

TEST(Scenario, MistakesAreNamedWithTheirLine) {
  for (const char* const text : {"gpu", "gpu x", "proc 1 cpu", "on 0", "at 5 nothing 3", "window abc", "house 1 a=b"}) {
    try {
      Scenario::parse("s", std::string("title t\n") + text);
      ADD_FAILURE() << text;
    } catch (const drover::InvalidArgument& error) {
      EXPECT_NE(std::string(error.what()).find("situation s, line 2"), std::string::npos) << error.what();
    }
  }
}

TEST(Scenario, RatesAddUpOverTheirChanges) {
  const Scenario scenario = Scenario::parse("s", "proc 5 cpu=1 io=10\nat 10 proc 5 cpu=0.5\nat 20 proc 5 cpu=0");
  EXPECT_DOUBLE_EQ(scenario.at(5).find("proc", 5)->sums.at("cpu"), 5);
  EXPECT_DOUBLE_EQ(scenario.at(100).find("proc", 5)->sums.at("cpu"), 15);
  EXPECT_DOUBLE_EQ(scenario.at(100).find("proc", 5)->sums.at("io"), 1000);
}

}  // namespace
