// SPDX-License-Identifier: Apache-2.0
#include "drover/health/merge.h"

#include <gtest/gtest.h>

#include "drover/health/report_json.h"
#include "health/merged_jobs.h"

namespace {

using namespace drover::health;
using namespace drover_test;

TEST(Merge, NamesTheOddRankOut) {
  const MergedReport merged = merge(job(kSpins, kBlocked));
  const auto finding = odd(merged);
  ASSERT_TRUE(finding);
  EXPECT_EQ(merged.findings.front().rule, Rule::kRanks) << "it comes first";
  EXPECT_EQ(finding->verdict, "ODD RANK OUT");
  EXPECT_EQ(finding->severity, Severity::kWarning);
  EXPECT_EQ(finding->confidence, Confidence::kHigh);
  EXPECT_EQ(finding->node, "n4");
  EXPECT_EQ(finding->gpu, 1);
  EXPECT_EQ(finding->pid, 4001);
  EXPECT_EQ(finding->because.at(0), "rank 13 (n4, GPU 1, pid 4001) is at 0 %, 60 W: BLOCKED JOB");
  EXPECT_EQ(finding->because.at(1), "31 others spin at 100 %, 90 W, on 8 nodes");
  EXPECT_EQ(finding->action.at(0).substr(0, 16), "look at n4 first");
  EXPECT_NE(finding->action.at(1).find("scancel 77"), std::string::npos);
  EXPECT_EQ(merged.exit_code(), 1);
}

TEST(Merge, ASingleLookIsNoMoreThanANote) {
  const MergedReport merged = merge(job(kSpinsOnce, kIdleOnce));
  ASSERT_TRUE(odd(merged));
  EXPECT_EQ(odd(merged)->severity, Severity::kInfo);
  EXPECT_EQ(odd(merged)->confidence, Confidence::kLow);
  EXPECT_EQ(merged.exit_code(), 0);
}

TEST(Merge, OneThatWorksWhileTheOthersWaitIsANote) {
  const MergedReport merged = merge(job(kSpins, kWorks));
  ASSERT_TRUE(odd(merged));
  EXPECT_EQ(odd(merged)->severity, Severity::kInfo) << "an evaluation looks the same";
}

/// A job of 32 ranks of which one has a finding about its GPU, without its pid.
std::optional<Finding> odd_with_fault(const Seen& most, const Seen& odd_one, Severity severity, double window = 600) {
  std::vector<ReadReport> reports = job(most, odd_one);
  Finding fault = finding_of(kBlocked, 1, 0);
  fault.rule = Rule::kR1;
  fault.pid.reset();
  fault.severity = severity;
  fault.verdict = "GPU FAULT";
  reports[3].report->findings.push_back(fault);
  for (ReadReport& one : reports) one.report->window_s = window;
  return odd(merge(std::move(reports)));
}

TEST(Merge, AFaultyOneAmongThoseThatWait) {
  const auto finding = odd_with_fault(kSpinsOnce, kIdleOnce, Severity::kCritical);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->severity, Severity::kWarning);
  EXPECT_EQ(finding->confidence, Confidence::kMedium);
  EXPECT_NE(finding->because.at(0).find("GPU FAULT"), std::string::npos);
  EXPECT_TRUE(finding->not_because.empty());
  const auto held = odd_with_fault(kSpins, kSpinsOnce, Severity::kCritical);
  ASSERT_TRUE(held) << "all others wait for something, and this one is broken";
  EXPECT_EQ(held->severity, Severity::kWarning);
  EXPECT_EQ(held->confidence, Confidence::kHigh);
}

TEST(Merge, AFaultyOneOfASingleLookOrAmongThoseThatWorkIsANote) {
  const auto once = odd_with_fault(kSpinsOnce, kIdleOnce, Severity::kCritical, 0);
  ASSERT_TRUE(once);
  EXPECT_EQ(once->severity, Severity::kInfo);
  EXPECT_EQ(once->confidence, Confidence::kLow);
  EXPECT_NE(once->not_because.at(0).find("--window 12m"), std::string::npos);
  const auto alone = odd_with_fault(kWorks, kIdleOnce, Severity::kCritical);
  ASSERT_TRUE(alone);
  EXPECT_EQ(alone->severity, Severity::kInfo);
  EXPECT_EQ(alone->not_because, std::vector<std::string>{"a job that hangs: the other ranks work"});
}

TEST(Merge, AWornOrBrokenGpuThatDoesWhatAllDoIsNotOdd) {
  for (const Seen& all : {kIdleOnce, kSpinsOnce, kWorks}) {
    EXPECT_FALSE(odd_with_fault(all, all, Severity::kWarning));
    EXPECT_FALSE(odd_with_fault(all, all, Severity::kCritical));
  }
  EXPECT_FALSE(odd_with_fault(kSpins, kSpins, Severity::kWarning));
}

TEST(Merge, TheOddOneHasToHoldAsWell) {
  const Seen spins_shortly{1, 90, Rule::kR6, Severity::kInfo};
  const auto shortly = odd(merge(job(kBlocked, spins_shortly)));
  ASSERT_TRUE(shortly);
  EXPECT_EQ(shortly->severity, Severity::kInfo);
  EXPECT_EQ(shortly->confidence, Confidence::kLow);
  EXPECT_NE(shortly->not_because.at(0).find("--window 12m"), std::string::npos);
  EXPECT_EQ(odd(merge(job(kBlocked, kSpins)))->severity, Severity::kWarning);
  EXPECT_EQ(odd(merge(job(kSpins, kIdleOnce)))->severity, Severity::kWarning) << "at rest over the whole window";
  std::vector<ReadReport> reports = job(kSpins, kIdleOnce);
  for (ReadReport& one : reports) one.report->window_s = 0;
  EXPECT_EQ(odd(merge(std::move(reports)))->severity, Severity::kInfo);
}

TEST(Merge, AUseThatIsNotKnownIsNoZero) {
  std::vector<ReadReport> reports = job(kBlocked, kSpins);
  for (ReadReport& one : reports) {
    for (GpuReport& gpu : one.report->gpus) gpu.cores = {}, gpu.processes[0].cores = {};
  }
  reports[7].report->gpus[0].processes[0].cores.value = 0.01;
  EXPECT_EQ(odd(merge(reports))->because.at(1), "31 others rest at 1 %, 60 W, on 8 nodes");
  reports[7].report->gpus[0].processes[0].cores = {};
  EXPECT_EQ(odd(merge(reports))->because.at(1), "31 others rest, 60 W, on 8 nodes");
}

TEST(Merge, SaysNothingWhenAllDoTheSame) {
  for (const Seen& all : {kSpins, kBlocked, kWorks, kIdleOnce}) EXPECT_FALSE(odd(merge(job(all, all))));
}

TEST(Merge, SaysNothingWithoutAClearMajority) {
  std::vector<ReadReport> reports;
  reports.push_back(read(node("a", 0, 8, {kSpins, kSpins, kSpins, kBlocked})));
  reports.push_back(read(node("b", 4, 8, {kSpins, kBlocked, kWorks, kBlocked})));
  const MergedReport merged = merge(std::move(reports));
  EXPECT_FALSE(odd(merged));
  EXPECT_EQ(merged.jobs.at(0).not_compared, "no two thirds of its ranks do the same");
}

TEST(Merge, SaysNothingAboutTwoRanks) {
  const MergedReport merged = merge({read(node("a", 0, 2, {kSpins})), read(node("b", 1, 2, {kBlocked}))});
  EXPECT_FALSE(odd(merged));
  EXPECT_EQ(merged.jobs.at(0).not_compared, "fewer than 3 ranks are seen");
}

TEST(Merge, SaysNothingAboutLooksTooFarApart) {
  std::vector<ReadReport> reports = job(kSpins, kBlocked);
  reports[5].report->unix_time += 3600;
  const MergedReport merged = merge(std::move(reports));
  EXPECT_FALSE(odd(merged));
  EXPECT_EQ(merged.jobs.at(0).not_compared, "its nodes were looked at 60 min apart: look at all of them at one time");
}

TEST(Merge, NamesAMissingRankOnlyWhenNoNodeIsMissing) {
  std::vector<ReadReport> reports = job(kSpins, kSpins);
  reports[3].report->gpus.erase(reports[3].report->gpus.begin() + 1);
  std::erase_if(reports[3].report->findings, [](const Finding& finding) { return finding.gpu == 1; });
  std::vector<ReadReport> more = reports;
  const auto finding = odd(merge(std::move(reports)));
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict, "RANK MISSING");
  EXPECT_EQ(finding->because.at(0), "of 32 ranks these are on no GPU here: 13");
  EXPECT_EQ(finding->severity, Severity::kWarning) << "the others spin, for their time";
  EXPECT_EQ(finding->confidence, Confidence::kMedium);
  EXPECT_EQ(finding->not_because.size(), 1U);
  more.push_back({.place = "x.json, line 1", .report = std::nullopt, .problem = "it is empty", .node = {}});
  EXPECT_FALSE(odd(merge(std::move(more))));
}

TEST(Merge, ARankThatCouldNotBeReadIsNotMissing) {
  for (const bool same_user : {true, false}) {
    std::vector<ReadReport> reports = job(kSpins, kSpins);
    Report& report = *reports[3].report;
    ProcessReport& process = report.gpus[1].processes[0].process;
    process.environment_unread = true;
    process.rank = process.world_size = std::nullopt;
    process.job = process.job_group = "";
    if (!same_user) process.user = "peter";
    std::erase_if(report.findings, [](const Finding& finding) { return finding.gpu == 1; });
    const ReadReport again = read_reports(to_json(report, -1), "again.json").at(0);
    ASSERT_TRUE(again.report) << again.problem;
    report = *again.report;
    const auto finding = odd(merge(std::move(reports)));
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->verdict, "RANK MISSING");
    EXPECT_EQ(finding->severity, same_user ? Severity::kInfo : Severity::kWarning);
    EXPECT_EQ(finding->not_because.size(), same_user ? 2U : 1U);
  }
}

/// As PyTorch Lightning starts them: the first rank, which starts the others, shows no number.
TEST(Merge, AFirstRankWithoutItsNumberIsNotMissing) {
  for (const int parent : {4000, 100}) {
    Report report = node("a", 0, 8, std::vector<Seen>(8, kSpins));
    for (GpuReport& gpu : report.gpus) gpu.processes[0].process.parent = parent;
    ProcessReport& first = report.gpus[0].processes[0].process;
    first.parent = 90;
    first.rank = std::nullopt;
    std::erase_if(report.findings, [](const Finding& finding) { return finding.gpu == 0; });
    const auto finding = odd(merge({read(report)}));
    EXPECT_EQ(finding ? finding->verdict : "", parent == 4000 ? "" : "RANK MISSING");
    report.gpus.pop_back();
    std::erase_if(report.findings, [](const Finding& one) { return one.gpu == 7; });
    const auto missing = odd(merge({read(report)}));
    ASSERT_TRUE(missing);
    EXPECT_EQ(missing->because.at(0),
              std::string("of 8 ranks these are on no GPU here: ") + (parent == 4000 ? "7" : "0, 7"));
  }
}

TEST(Merge, JobsThatNothingTellsApartAreKeptApart) {
  std::vector<ReadReport> reports = job(kSpins, kBlocked);  // each node a job of its own, as mpirun starts them
  for (ReadReport& one : reports) {
    for (GpuReport& gpu : one.report->gpus) gpu.processes[0].process.job_group = "";
  }
  const MergedReport merged = merge(std::move(reports));
  EXPECT_EQ(merged.jobs.size(), 8U);
  ASSERT_TRUE(odd(merged));
  EXPECT_EQ(odd(merged)->because.at(1), "3 others spin at 100 %, 90 W, on 1 node");
}

TEST(Merge, TheSameRankTwiceIsNotCompared) {
  const MergedReport merged =
      merge({read(node("a", 0, 4, {kSpins, kSpins, kSpins, kBlocked})), read(node("b", 0, 4, {kSpins, kSpins}))});
  EXPECT_FALSE(odd(merged));
  EXPECT_NE(merged.jobs.at(0).not_compared.find("rank 0 is on a and on b"), std::string::npos);
}

TEST(Merge, ARankThatIsTwiceOnANodeIsNotCompared) {
  Report child = node("a", 0, 4, {kSpins, kSpins, kSpins, kBlocked});
  child.gpus[3].processes.push_back(child.gpus[3].processes[0]);
  child.gpus[3].processes[1].process.pid = 5000;
  Report other = child;
  child.gpus[3].processes[1].process.parent = 4003;  // a data worker has the number of its rank
  EXPECT_TRUE(odd(merge({read(child)})));
  const MergedReport merged = merge({read(other)});
  EXPECT_FALSE(odd(merged));
  EXPECT_EQ(merged.jobs.at(0).not_compared, "rank 3 is twice on a");
}

/// What rank `rank` of four, all started on one node, reports about it.
Report by_rank(int rank, const Seen& seen = kWorks) {
  Report report = node("a", 0, 1, {seen});
  report.rank = rank;
  report.world_size = 4;
  report.unix_time += rank;
  report.gpus[0].uuid = "GPU-0";
  return report;
}

TEST(Merge, RanksOfOneLaunchOnANodeAreOneNode) {
  Report blind = by_rank(3);
  blind.gpus.clear();
  const MergedReport merged =
      merge({read(by_rank(0)), read(by_rank(1, kSpins)), read(by_rank(2)), read(std::move(blind))});
  ASSERT_EQ(merged.nodes.size(), 1U);
  EXPECT_EQ(merged.missing(), 0U);
  EXPECT_EQ(merged.nodes[0].report->rank, 1) << "it sees as much as any, and what is worse";
  EXPECT_EQ(merged.nodes[0].note, "4 ranks of one launch looked at this node; taken is the report of rank 1");
  EXPECT_EQ(merged.exit_code(), 1);
  EXPECT_EQ(merge({read(by_rank(0)), read(by_rank(2))}).exit_code(), 0);
}

TEST(Merge, OfOtherReportsOfANodeTheNewestCounts) {
  Report today = by_rank(1), yesterday = by_rank(0, kSpins);
  yesterday.unix_time -= 86'400;
  const MergedReport merged = merge({read(yesterday), read(today)});
  ASSERT_EQ(merged.nodes.size(), 1U);
  EXPECT_EQ(merged.nodes[0].report->rank, 1);
  EXPECT_EQ(merged.nodes[0].note, "left out is what is older: a.json");
  EXPECT_EQ(merged.exit_code(), 0);
}

TEST(Merge, AReportThatNoOtherSpeaksForIsARowOfItsOwn) {
  Report narrow = by_rank(1), machine = by_rank(1);
  narrow.gpus[0].uuid = "GPU-1";  // a cgroup of each task shows it one GPU
  machine.cpu.model = "another";
  for (const Report* const other : {&narrow, &machine}) {
    const MergedReport merged = merge({read(by_rank(0)), read(*other)});
    ASSERT_EQ(merged.nodes.size(), 2U);
    EXPECT_EQ(merged.nodes[1].problem.substr(0, 23), "a.json: a second report");
    EXPECT_EQ(merged.exit_code(), 3);
    EXPECT_EQ(merged.verdict().substr(0, 42), "UNKNOWN: 1 of 2 nodes has no report (a: a.");
  }
}

TEST(Merge, TheExitCodeIsTheWorst) {
  Report critical = node("c", 0, 1, {kWorks});
  critical.findings.push_back(finding_of({1, 90, Rule::kR1, Severity::kCritical}, 0, 1));
  const ReadReport bad{.place = "x", .report = std::nullopt, .problem = "it is empty", .node = {}};
  EXPECT_EQ(merge({read(node("a", 0, 1, {kWorks}))}).exit_code(), 0);
  EXPECT_EQ(merge({read(node("a", 0, 1, {kSpins})), read(node("b", 1, 1, {kWorks}))}).exit_code(), 1);
  EXPECT_EQ(merge({read(node("a", 0, 1, {kSpins})), bad}).exit_code(), 3);
  EXPECT_EQ(merge({read(critical), bad}).exit_code(), 2);
  EXPECT_EQ(merge({bad}).exit_code(), 3);
}

TEST(Merge, UsersOverNodes) {
  std::vector<ReadReport> reports = job(kWorks, kWorks);
  reports[0].report->gpus[0].processes[0].process.user = "tom";
  const MergedReport merged = merge(std::move(reports));
  ASSERT_EQ(merged.users.size(), 2U);
  EXPECT_EQ(merged.users[0].user, "maria");
  EXPECT_EQ(merged.users[0].gpus, 31U);
  EXPECT_EQ(merged.users[0].nodes, 8U);
  EXPECT_NEAR(merged.users[0].busy_gpus, 31 * 0.9, 1e-6);
  EXPECT_NEAR(merged.users[0].held_gpu_hours.value_or(0), 62, 1e-6);
  EXPECT_EQ(merged.users[1].processes, 1U);
}

TEST(Merge, NodesAreInNaturalOrder) {
  EXPECT_TRUE(natural_less("n2", "n10"));
  EXPECT_FALSE(natural_less("n10", "n2"));
  EXPECT_TRUE(natural_less("n02", "n10"));
  EXPECT_TRUE(natural_less("n2", "n02") != natural_less("n02", "n2"));
  EXPECT_TRUE(natural_less("n1", "n1a"));
  EXPECT_FALSE(natural_less("a", "a"));
  EXPECT_TRUE(natural_less("r1n9", "r2n1"));
  EXPECT_TRUE(natural_less("n99999999999999999999998", "n99999999999999999999999"));
}

}  // namespace
