// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "drover/health/engine.h"
#include "drover/health/report_json.h"
#include "drover/health/report_prometheus.h"
#include "health/fixture.h"
#include "health/fuzz_targets.h"

namespace {

using namespace drover::health;
namespace fs = std::filesystem;

constexpr const char* kSituation =
    "gpu 0 power=70 log=79@60\ngpu 1 vendor=amd\ngpu 2 vendor=intel total=16\nproc 100 name=bash\n"
    "proc 4000 ppid=100 cmd=\"python a.py\" state=D wchan=nvidia_ioctl listen=1 env=\"RANK=0 WORLD_SIZE=2\"\n"
    "proc 4001 ppid=100 cmd=\"python b.py\" state=Z\nproc 4002 ppid=100 cmd=\"python c.py\"\n"
    "on 0 4000 vram=30\non 1 4001 vram=30 kfd=1\non 2 4002 vram=3 sm=9\n";

std::string content_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::vector<fs::path> files_of(const std::string& root) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (!entry.is_symlink() && entry.is_regular_file() && entry.path().filename() != "situation")
      files.push_back(entry);
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// Whatever a machine's files hold, there is a report, and it can be written.
TEST(FuzzedMachine, IsReportedInAnyCase) {
  constexpr std::uint64_t kFirst = 20240607, kRounds = 300;
  drover_test::Machine machine;
  machine.write_host(false);
  machine.write_world(Scenario::parse("s", kSituation).at(0));
  machine.use_driver(kSituation);
  const std::vector<fs::path> files = files_of(machine.root());
  ASSERT_GT(files.size(), 50U);
  for (std::uint64_t seed = kFirst; seed < kFirst + kRounds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    std::vector<std::pair<fs::path, std::string>> changed;
    for (int i = 0; i < 12; ++i) {
      const fs::path& path = files[random() % files.size()];
      changed.emplace_back(path, content_of(path));
      std::ofstream(path, std::ios::binary) << drover_test::mutated(changed.back().second, random);
    }
    double time = Scenario::kUptime;
    SystemSourceOptions options;
    options.root = machine.root();
    options.now = [&] { return time; };
    options.wait = [&](double until) { time = until; };
    options.deadline = drover::Duration(2);
    const Report report =
        run_inspection(*system_source(options), Thresholds(), {.window_s = 3, .interval_s = 1, .history = {}});
    EXPECT_GE(report.exit_code(), 0);
    EXPECT_FALSE(to_json(report).empty());
    for (const char c : to_prometheus(report)) {
      const bool shown = static_cast<unsigned char>(c) >= 0x20 && c != '\x7f';
      ASSERT_TRUE(shown || c == '\n' || c == '\t') << int{c};
    }
    for (auto at = changed.rbegin(); at != changed.rend(); ++at)
      std::ofstream(at->first, std::ios::binary) << at->second;
  }
  while (waitpid(-1, nullptr, 0) > 0) continue;  // helpers that were killed, and on a busy machine took longer to end
  std::cout << "seeds " << kFirst << " to " << kFirst + kRounds - 1 << "\n";
}

}  // namespace
