// SPDX-License-Identifier: Apache-2.0
#include "harness/leak_check.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "harness/deadline.h"
#include "harness/read_all.h"

namespace drover_test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMarkVariable = "DROVER_TEST_RUN";
constexpr auto kGrace = std::chrono::seconds(2);

struct Process {
  int parent = 0;
  char state = '?';
  std::string name;
};

std::string environment_value(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string& mark() {
  static std::string instance;
  return instance;
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    paths.push_back(it->path());
  }
  return paths;
}

std::map<int, Process> all_processes() {
  std::map<int, Process> all;
  for (const fs::path& folder : entries_of("/proc")) {
    const std::string name = folder.filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string stat = read_all(folder / "stat");  // "pid (name) state parent ..."; the name may hold anything
    const auto open = stat.find('('), close = stat.rfind(')');
    if (open == std::string::npos || close == std::string::npos) continue;  // it ended meanwhile
    Process process;
    process.name = stat.substr(open + 1, close - open - 1);
    std::istringstream(stat.substr(close + 1)) >> process.state >> process.parent;
    all.emplace(std::stoi(name), process);
  }
  return all;
}

bool descends_from(const std::map<int, Process>& all, int pid, int ancestor) {
  for (std::size_t steps = 0; steps < all.size(); ++steps) {  // bounded: the snapshot may be inconsistent
    const auto found = all.find(pid);
    if (found == all.end()) return false;
    pid = found->second.parent;
    if (pid == ancestor) return true;
  }
  return false;
}

bool carries_mark(int pid) {
  return !mark().empty() && read_all("/proc/" + std::to_string(pid) + "/environ").find(mark()) != std::string::npos;
}

void add_processes(std::vector<std::string>& entries) {
  const int self = static_cast<int>(getpid());
  const auto all = all_processes();
  for (const auto& [pid, process] : all) {
    if (pid == self || (process.state == 'Z' && process.parent == 1)) continue;
    if (!descends_from(all, pid, self) && !carries_mark(pid)) continue;
    entries.push_back("process " + std::to_string(pid) + " (" + process.name + ")");
  }
}

void add_descriptors(std::vector<std::string>& entries) {
  const std::string own_folder = "/proc/" + std::to_string(getpid()) + "/fd";  // what this very look has open
  for (const fs::path& path : entries_of("/proc/self/fd")) {
    std::error_code error;
    const std::string target = fs::read_symlink(path, error).string();
    if (error || target == own_folder) continue;
    entries.push_back("descriptor " + path.filename().string() + " -> " + target);
  }
}

void add_files(std::vector<std::string>& entries) {
  for (const std::string& folder : {std::string("/dev/shm"), environment_value("XDG_RUNTIME_DIR")}) {
    if (folder.empty()) continue;
    for (const fs::path& path : entries_of(folder)) entries.push_back("file " + path.string());
  }
  for (const std::string& folder : std::set<std::string>{"/tmp", environment_value("TMPDIR")}) {
    if (folder.empty()) continue;
    for (const fs::path& path : entries_of(folder)) {
      if (path.filename().string().find("drover") != std::string::npos) entries.push_back("file " + path.string());
    }
  }
}

class LeakCheck : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override { before_ = Belongings::now(); }

  void OnTestEnd(const testing::TestInfo&) override {
    std::vector<std::string> left;
    if (eventually(kGrace, [&] { return (left = Belongings::now().beyond(before_)).empty(); })) return;
    std::string text;
    for (const std::string& entry : left) text += "\n  " + entry;
    ADD_FAILURE() << "the test left behind:" << text;
  }

  Belongings before_;
};

}  // namespace

Belongings Belongings::now() {
  Belongings result;
  add_processes(result.entries);
  add_descriptors(result.entries);
  add_files(result.entries);
  std::sort(result.entries.begin(), result.entries.end());
  return result;
}

std::vector<std::string> Belongings::beyond(const Belongings& before) const {
  std::vector<std::string> rest;
  std::set_difference(entries.begin(), entries.end(), before.entries.begin(), before.entries.end(),
                      std::back_inserter(rest));
  return rest;
}

void install_leak_check() {
  std::random_device random;
  std::ostringstream number;
  number << std::hex << random() << random() << getpid();
  mark() = number.str();
  const std::string outer = environment_value(kMarkVariable);  // kept: the test that started us looks for it
  setenv(kMarkVariable, (outer + "/" + mark()).c_str(), 1);
  testing::UnitTest::GetInstance()->listeners().Append(new LeakCheck);  // gtest owns it
}

}  // namespace drover_test
