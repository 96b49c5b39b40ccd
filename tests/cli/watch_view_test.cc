// SPDX-License-Identifier: Apache-2.0
#include "drover/cli/watch_view.h"

#include <gtest/gtest.h>

#include "drover/cli/watch_screen.h"
#include "drover/health/health.h"

namespace {

using namespace drover::cli;
using drover::health::Report;

Report demo(const std::string& name) { return drover::health::inspect({.demo = name}); }

/// A view on one report, as a user has it.
class User {
 public:
  explicit User(Report report, ScreenSize size = {}) : report_(std::move(report)), size_(size) { settle(); }

  bool press(Key key) { return press(KeyPress{key}); }
  bool type(const std::string& text) {
    bool end = false;
    for (const char c : text) end = press(KeyPress{Key::kCharacter, c}) || end;
    return end;
  }
  void see(Report report) {
    report_ = std::move(report);
    settle();
  }
  void resize(ScreenSize size) {
    size_ = size;
    settle();
  }
  std::vector<int> pids() const {
    std::vector<int> pids;
    for (const ProcessRow& row : process_rows(report_, view_.sort(), view_.reversed()))
      pids.push_back(row.process->pid);
    return pids;
  }
  const WatchView& view() const { return view_; }
  Report& report() { return report_; }

 private:
  bool press(const KeyPress& key) {
    const bool end = view_.press(key, &report_);
    settle();
    return end;
  }
  void settle() { settle_view(view_, &report_, size_); }

  Report report_;
  ScreenSize size_;
  WatchView view_;
};

TEST(WatchView, TheWorstFindingIsSelectedAtFirst) {
  User user(demo("spinning-odd-rank-out"));
  EXPECT_EQ(user.view().panel(), Panel::kFindings);
  EXPECT_EQ(user.view().key(), key_of(user.report().findings.front()));
  User healthy(demo("healthy-node"));
  EXPECT_EQ(healthy.view().panel(), Panel::kProcesses);
}

TEST(WatchView, TheListsAreOneColumnToTheArrows) {
  User user(demo("spinning-odd-rank-out"));
  const std::size_t gpus = user.report().gpus.size(), findings = user.report().findings.size();
  user.press(Key::kUp);
  EXPECT_EQ(user.view().panel(), Panel::kGpus);
  EXPECT_EQ(user.view().selected(Panel::kGpus), gpus - 1);
  for (std::size_t i = 0; i < findings + 1; ++i) user.type("j");
  EXPECT_EQ(user.view().panel(), Panel::kProcesses);
  EXPECT_EQ(user.view().selected(Panel::kProcesses), 0U);
  EXPECT_EQ(user.view().selected(Panel::kFindings), std::nullopt);
  for (int i = 0; i < 100; ++i) user.press(Key::kUp);
  EXPECT_EQ(user.view().selected(Panel::kGpus), 0U);
}

TEST(WatchView, TabGoesRound) {
  User user(demo("spinning-odd-rank-out"));
  for (const Panel panel : {Panel::kProcesses, Panel::kGpus, Panel::kFindings}) {
    user.press(Key::kTab);
    EXPECT_EQ(user.view().panel(), panel);
  }
  user.press(Key::kBackTab);
  EXPECT_EQ(user.view().panel(), Panel::kGpus);
}

TEST(WatchView, TheSelectionStaysOnItsThing) {
  User user(demo("spinning-odd-rank-out"));
  user.press(Key::kDown);
  const std::string key = user.view().key();
  Report other = user.report();
  std::swap(other.findings[1], other.findings[3]);
  user.see(other);
  EXPECT_EQ(user.view().key(), key);
  EXPECT_EQ(user.view().selected(Panel::kFindings), 3U);
  other.findings.pop_back();
  user.see(other);
  EXPECT_EQ(user.view().selected(Panel::kFindings), 2U);
  other.findings.clear();
  user.see(other);
  EXPECT_EQ(user.view().selected(Panel::kFindings), std::nullopt);
  user.press(Key::kEnter);  // there is nothing to open
  EXPECT_EQ(user.view().page(), Page::kLists);
  user.press(Key::kDown);
  EXPECT_EQ(user.view().panel(), Panel::kProcesses);
}

TEST(WatchView, SortKeysSortAndTurnRound) {
  Report report = demo("spinning-odd-rank-out");
  for (std::size_t i = 0; i < report.gpus.size(); ++i) {
    auto& row = report.gpus[i].processes.front();
    row.memory_bytes.value = (i + 1) << 30U;
    row.cores.value = i == 1 ? 1.0 : 0.1;
    row.process.age_s = i == 2 ? 1000.0 : 10.0;
    row.process.cpu_share = i == 3 ? std::nullopt : std::optional(0.1 * static_cast<double>(i));
  }
  User user(report);
  EXPECT_EQ(user.pids().front(), 4001);  // by GPU use
  user.type("m");
  EXPECT_EQ(user.pids(), (std::vector{4003, 4002, 4001, 4000}));
  user.type("m");
  EXPECT_EQ(user.pids(), (std::vector{4000, 4001, 4002, 4003}));
  user.type("c");
  EXPECT_EQ(user.pids(), (std::vector{4002, 4001, 4000, 4003}));
  user.type("c");
  EXPECT_EQ(user.pids().back(), 4003) << "what is not known stays last";
  user.type("a");
  EXPECT_EQ(user.pids().front(), 4002);
  user.type("p");
  EXPECT_EQ(user.pids(), (std::vector{4000, 4001, 4002, 4003}));
  user.type("p");
  EXPECT_EQ(user.pids(), (std::vector{4003, 4002, 4001, 4000}));
  user.type("u");
  EXPECT_EQ(user.pids().front(), 4001);
}

TEST(WatchView, AProcessOnTwoGpusIsOneRow) {
  const Report report = demo("idle-two-gpus");
  const auto rows = process_rows(report, Sort::kGpu, false);
  ASSERT_FALSE(rows.empty());
  EXPECT_EQ(rows.front().gpus.size(), 2U);
  std::uint64_t memory = 0;
  for (const auto& gpu : report.gpus) memory += gpu.processes.front().memory_bytes.value.value_or(0);
  EXPECT_EQ(rows.front().memory, memory);
}

TEST(WatchView, EnterOpensAndSeveralKeysClose) {
  User user(demo("spinning-odd-rank-out"));
  for (const Key key : {Key::kEnter, Key::kEscape, Key::kBackspace}) {
    user.press(Key::kEnter);
    EXPECT_EQ(user.view().page(), Page::kDetail);
    user.press(key);
    EXPECT_EQ(user.view().page(), Page::kLists);
  }
  user.type("h");
  EXPECT_EQ(user.view().page(), Page::kHelp);
  user.type("?");
  EXPECT_EQ(user.view().page(), Page::kLists);
  EXPECT_TRUE(user.type("q"));
  user.type("h");
  EXPECT_TRUE(user.type("q"));
}

TEST(WatchView, AnOpenPageStaysOnItsThingWhenThatIsGone) {
  User user(demo("spinning-odd-rank-out"));
  user.press(Key::kEnter);
  const std::string key = user.view().key();
  Report later = user.report();
  later.findings.erase(later.findings.begin());
  user.see(later);
  EXPECT_EQ(user.view().key(), key);
  EXPECT_EQ(user.view().page(), Page::kDetail);
}

TEST(WatchView, ListsAndPagesScroll) {
  Report report = demo("healthy-node");
  for (int i = 0; i < 40; ++i) {
    drover::health::ProcessReport process;
    process.pid = 5000 + i;
    process.cpu_share = 1 - 0.01 * i;
    report.busiest.push_back(process);
  }
  User user(report);
  const std::size_t count = user.pids().size();
  user.press(Key::kEnd);
  EXPECT_EQ(user.view().selected(Panel::kProcesses), count - 1);
  EXPECT_GT(user.view().first(Panel::kProcesses), 0U);
  user.press(Key::kPageUp);
  EXPECT_LT(user.view().selected(Panel::kProcesses), count - 2);
  user.press(Key::kHome);
  EXPECT_EQ(user.view().first(Panel::kProcesses), 0U);
  user.press(Key::kEnd);
  user.resize({200, 100});  // all are in sight now, and no room is wasted
  EXPECT_EQ(user.view().first(Panel::kProcesses), 0U);
  user.resize({80, 10});
  user.type("h");
  user.press(Key::kEnd);
  const std::size_t last = user.view().page_first();
  EXPECT_GT(last, 0U);
  user.press(Key::kPageDown);
  EXPECT_EQ(user.view().page_first(), last);
  user.press(Key::kHome);
  EXPECT_EQ(user.view().page_first(), 0U);
}

TEST(WatchView, KeysBeforeTheFirstReportDoNoHarm) {
  WatchView view;
  for (const Key key : {Key::kUp, Key::kDown, Key::kEnter, Key::kTab, Key::kEnd, Key::kPageDown, Key::kEscape})
    EXPECT_FALSE(view.press({key}, nullptr));
  settle_view(view, nullptr, {});
  EXPECT_FALSE(view.press({Key::kCharacter, 'h'}, nullptr));
  EXPECT_EQ(view.page(), Page::kHelp);
  EXPECT_TRUE(view.press({Key::kCharacter, 'q'}, nullptr));
}

}  // namespace
