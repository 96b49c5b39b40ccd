// SPDX-License-Identifier: Apache-2.0
#include "drover/cli/watch_screen.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "drover/cli/watch_line.h"
#include "drover/health/health.h"

namespace {

using namespace drover::cli;
using drover::health::Report;

Report demo(const std::string& name) { return drover::health::inspect({.demo = name}); }

std::string text_of(const std::vector<Line>& lines) {
  std::string text;
  for (const Line& line : lines) text += line.text() + "\n";
  return text;
}

std::string screen_of(const Report& report, ScreenSize size, std::vector<KeyPress> keys = {}) {
  WatchView view;
  settle_view(view, &report, size);
  for (const KeyPress& key : keys) {
    view.press(key, &report);
    settle_view(view, &report, size);
  }
  return text_of(draw_screen(&report, view, size, 0));
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

TEST(WatchLine, SizesAndTimesAreShort) {
  EXPECT_EQ(short_bytes(0), "0K");
  EXPECT_EQ(short_bytes(512.0 * (1 << 20)), "512M");
  EXPECT_EQ(short_bytes(38.25 * (1 << 30)), "38.2G");
  EXPECT_EQ(short_bytes(999.97 * (1 << 20)), "1000M");
  EXPECT_EQ(short_bytes(1e300).size() > 6, true) << "nothing is that large, but it must not crash";
  EXPECT_EQ(short_time(45), "45s");
  EXPECT_EQ(short_time(3 * 3600 + 300), "3h05");
  EXPECT_EQ(short_time(51 * 3600), "2d03");
  EXPECT_EQ(short_time(-1), "-");
  for (double seconds = 1; seconds < 8e7; seconds *= 1.3) EXPECT_LE(short_time(seconds).size(), 5U) << seconds;
}

TEST(WatchLine, ABarIsNeverEmptyForSomethingNorTooLong) {
  EXPECT_EQ(bar(0, 4), "[    ]");
  EXPECT_EQ(bar(0.01, 4), "[|   ]");
  EXPECT_EQ(bar(0.5, 4), "[||  ]");
  EXPECT_EQ(bar(1, 4), "[||||]");
  EXPECT_EQ(bar(7, 4), "[||||]");
  EXPECT_EQ(bar(-1, 4), "[    ]");
  EXPECT_EQ(bar(std::nan(""), 4), "[    ]");
}

TEST(WatchLine, NothingButPrintableAsciiPasses) {
  EXPECT_EQ(ascii("a\x1b[2J\r\n\tb"), "a\\x1b[2J\\x0d\\x0a b");
  EXPECT_EQ(ascii("gr\xc3\xbc\xc3\x9f \xe4\xb8\xad"), "gr?? ?");
  EXPECT_EQ(ascii("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(ascii("\xe2\x80\xae"), "\\xe2\\x80\\xae");
}

TEST(WatchLine, IsDrawnExactlyAsWideAsTheScreen) {
  Line line("abc", Ink::kCritical);
  line.add("def").to(10).add("ghi", Ink::kGood);
  for (const std::size_t columns : {0U, 1U, 3U, 5U, 11U, 40U}) {
    for (const bool colour : {false, true}) {
      std::string drawn = line.drawn(columns, colour), plain;
      for (std::size_t i = 0; i < drawn.size(); ++i) {
        if (drawn[i] == '\x1b')
          i = drawn.find('m', i);
        else
          plain += drawn[i];
      }
      EXPECT_EQ(plain.size(), columns);
      EXPECT_EQ(plain, (line.text() + std::string(40, ' ')).substr(0, columns));
    }
  }
  EXPECT_TRUE(has(line.drawn(20, true), "\x1b[1;31m"));
  EXPECT_FALSE(has(line.drawn(20, false), "\x1b[1;3"));
  EXPECT_TRUE(has(line.reversed().drawn(20, false), "\x1b[7m"));
}

TEST(WatchScreen, EverySizeIsFilledExactly) {
  for (const char* const name : {"spinning-odd-rank-out", "gpu-lost", "no-gpu", "healthy-node", "unknown-mig"}) {
    const Report report = demo(name);
    for (const std::size_t rows : {1U, 2U, 3U, 4U, 5U, 7U, 8U, 11U, 12U, 13U, 24U, 50U, 200U}) {
      for (const std::size_t columns : {1U, 2U, 10U, 20U, 40U, 79U, 80U, 200U, 1000U}) {
        for (const std::vector<KeyPress>& keys : {std::vector<KeyPress>(),
                                                  {{Key::kEnter}},
                                                  {{Key::kCharacter, 'h'}},
                                                  {{Key::kTab}, {Key::kEnter}},
                                                  {{Key::kBackTab}, {Key::kEnter}}}) {
          const std::string text = screen_of(report, {columns, rows}, keys);
          EXPECT_EQ(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')), rows) << name << columns;
          EXPECT_TRUE(
              std::all_of(text.begin(), text.end(), [](char c) { return c == '\n' || (c >= 0x20 && c < 0x7F); }));
        }
      }
    }
  }
}

TEST(WatchScreen, ShowsAllThatMattersIn80By24) {
  const std::string text = screen_of(demo("spinning-odd-rank-out"), {80, 24});
  EXPECT_TRUE(has(text, " drover inspect  demo  DEMO spinning-odd-rank-out"));
  EXPECT_TRUE(has(text, "\n WARNING: GPU 0 SPINNING, NO PROGRESS, pid 4000"));
  EXPECT_TRUE(has(text, "\n CPU [||||"));
  EXPECT_TRUE(has(text, "\n Mem ["));
  EXPECT_TRUE(has(text, "\n   0 [||||||||||] 100% [||||||||  ] 60.0G/80.0G  98  40 user1000  ! SPINNING"));
  EXPECT_TRUE(has(text, "\n>WARN SPINNING, NO PROGRESS  GPU 0 pid 4000 user1000 "));
  EXPECT_TRUE(has(text, "\n    4003 user1000  S 10h"));
  EXPECT_TRUE(has(text, "\n q quit"));
}

TEST(WatchScreen, ColumnsStandBelowTheirHeadings) {
  for (const std::size_t columns : {80U, 120U, 140U, 200U}) {
    const std::string text = screen_of(demo("spinning-odd-rank-out"), {columns, 40});
    const auto line = [&](std::string_view part) {
      const std::size_t at = text.find(part), begin = text.rfind('\n', at) + 1;
      return text.substr(begin, text.find('\n', at) - begin);
    };
    const std::string gpus = line("GPU cores"), gpu = line("\n   0 [").empty() ? line("   0 [") : line("   0 [");
    EXPECT_EQ(gpus.find("user"), gpu.find("user1000")) << columns;
    EXPECT_EQ(gpus.find("verdict"), gpu.find("! SPIN")) << columns;
    const std::string heading = line("command"), process = line("    4003 user");
    EXPECT_EQ(heading.find("command"), process.find("python")) << columns;
    EXPECT_EQ(heading.find("VRAM") + 4, process.find("60.0G") + 5) << columns;
  }
}

TEST(WatchScreen, EvidenceIsThereInFull) {
  const Report report = demo("spinning-odd-rank-out");
  const std::string text = screen_of(report, {100, 60}, {{Key::kEnter}});
  for (const char* const label : {"who", "because", "not because", "do", "limits"})
    EXPECT_TRUE(has(text, "\n " + std::string(label) + " ")) << label << text;
  EXPECT_TRUE(has(text, "r6."));
  EXPECT_TRUE(has(text, "ask user1000 first"));
}

TEST(WatchScreen, PagesOfProcessesAndGpus) {
  const Report report = demo("spinning-odd-rank-out");
  const std::string process = screen_of(report, {80, 40}, {{Key::kTab}, {Key::kEnter}});
  EXPECT_TRUE(has(process, "Process 4000"));
  EXPECT_TRUE(has(process, "python train.py"));
  EXPECT_TRUE(has(process, "WARN SPINNING"));
  const std::string gpu = screen_of(report, {80, 40}, {{Key::kBackTab}, {Key::kEnter}});
  EXPECT_TRUE(has(gpu, "GPU 0  NVIDIA"));
  EXPECT_TRUE(has(gpu, "limit 400 W"));
}

TEST(WatchScreen, WhatProcessesCallThemselvesIsOnlyShown) {
  Report report = demo("idle-job");
  const std::string evil =
      "\x1b]0;owned\x07\x1b[2J\r\n\xe2\x80\xae\xc2\x9b"
      "31m";
  report.host = report.demo = evil;
  report.warnings = {evil};
  auto& gpu = report.gpus.front();
  gpu.name = gpu.uuid = gpu.bus = evil;
  gpu.slowed_by = {evil};
  auto& process = gpu.processes.front().process;
  process.user = process.name = process.command = process.job = process.container = evil;
  process.state = '\x1b';
  auto& finding = report.findings.front();
  finding.user = finding.command = finding.job = finding.verdict = evil;
  finding.because = finding.not_because = finding.action = {evil};
  for (const std::vector<KeyPress>& keys :
       {std::vector<KeyPress>(), {{Key::kEnter}}, {{Key::kTab}, {Key::kEnter}}, {{Key::kBackTab}, {Key::kEnter}}}) {
    for (const std::size_t columns : {40U, 80U, 200U}) {
      const std::string text = screen_of(report, {columns, 50}, keys);
      EXPECT_TRUE(std::all_of(text.begin(), text.end(), [](char c) { return c == '\n' || (c >= 0x20 && c < 0x7F); }));
      EXPECT_TRUE(has(text, "\\x1b"));
    }
  }
  gpu.problem = evil;
  EXPECT_FALSE(has(screen_of(report, {80, 24}), "\x1b"));
}

TEST(WatchScreen, OnlyWhatHasChangedIsSent) {
  Report report = demo("healthy-node");
  WatchView view;
  const ScreenSize size{80, 24};
  std::vector<std::string> shown;
  const auto update = [&] {
    settle_view(view, &report, size);
    return screen_update(shown, draw_screen(&report, view, size, 0), size.columns, false);
  };
  const std::string all = update();
  EXPECT_GE(all.size(), 80U * 24);
  EXPECT_EQ(update(), "");
  report.window_s += 1;
  const std::string one = update();
  EXPECT_TRUE(has(one, "\x1b[1;1H"));
  EXPECT_LT(one.size(), 110U);
  shown.clear();
  EXPECT_GE(update().size(), all.size() - 2);
}

TEST(WatchScreen, BeforeTheFirstReportItSaysWhatItWaitsFor) {
  WatchView view;
  EXPECT_TRUE(has(text_of(draw_screen(nullptr, view, {80, 24}, 0)), "Looking at this machine"));
  EXPECT_TRUE(has(text_of(draw_screen(nullptr, view, {80, 24}, 4)), "this look has taken 4s so far"));
  EXPECT_EQ(draw_screen(nullptr, view, {20, 1}, 4).size(), 1U);
}

TEST(WatchScreen, RoomIsSharedOut) {
  Report report = demo("spinning-odd-rank-out");
  while (report.gpus.size() < 16) report.gpus.push_back(report.gpus.back());
  const WatchView view;
  const Layout layout = layout_of(report, view, {80, 24});
  EXPECT_GE(layout.rows[static_cast<std::size_t>(Panel::kGpus)], 5U);
  EXPECT_EQ(layout.rows[static_cast<std::size_t>(Panel::kFindings)], 4U);
  EXPECT_GE(layout.rows[static_cast<std::size_t>(Panel::kProcesses)], 4U);
  const Layout large = layout_of(report, view, {200, 50});
  EXPECT_EQ(large.rows[static_cast<std::size_t>(Panel::kGpus)], 16U);
}

}  // namespace
