// SPDX-License-Identifier: Apache-2.0
// Programs for tests that kill, stop or signal a whole program. `scenario NAME [ARGUMENTS]`; each says on stdout how
// far it is.
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "drover/drover.h"
#include "fault/damage.h"
#include "fault/jobs.h"
#include "fault/waits.h"

extern char** environ;

namespace {

using drover_test::Job;
using drover_test::Tally;
using Arguments = std::vector<std::string>;

/// A whole line at once; a worker's goes through its parent, which passes on whole lines.
void say(const std::string& line) {
  const std::string text = line + "\n";
  [[maybe_unused]] const ssize_t n = write(1, text.data(), text.size());
}

[[noreturn]] void loop_for_ever() {
  for (volatile std::uint64_t i = 0;;) i = i + 1;
}
[[noreturn]] void sleep_for_ever() {
  for (;;) pause();
}

// Tasks. Each says "task N" when it is under way.

void busy(int i) {
  say("task " + std::to_string(i));
  loop_for_ever();
}
void asleep(int i) {
  say("task " + std::to_string(i));
  sleep_for_ever();
}
void deaf(int i) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, nullptr);
  std::signal(SIGTERM, SIG_IGN);
  busy(i);
}
void nested(int i) {
  drover::Pool inner({.workers = 2});
  for (auto&& _ : inner.map<busy>(drover::range(10 * i, 10 * i + 2))) static_cast<void>(_);
}
void with_subprocess(int i) {
  std::string program = "/bin/sleep", time = "1000";
  char* argv[] = {program.data(), time.data(), nullptr};
  pid_t pid = 0;
  if (posix_spawn(&pid, program.c_str(), nullptr, nullptr, argv, environ) != 0) std::abort();
  asleep(i);
}
int stops_itself(int i) {
  say("task " + std::to_string(i));
  raise(SIGSTOP);
  return i;
}
int quick(int i) { return i; }
int dies_every_fourth(int i) {
  if (i % 4 == 3) raise(SIGKILL);
  return i;
}
int slow(int i) {
  usleep(5'000);
  return i;
}
std::size_t eats_memory(std::size_t mebibytes) {
  std::vector<std::unique_ptr<char[]>> pieces;
  for (std::size_t i = 0; i < mebibytes; ++i) {
    pieces.emplace_back(new char[1 << 20]);
    std::memset(pieces.back().get(), 1, 1 << 20);
  }
  return pieces.size();
}

template <auto F>
int occupy(std::size_t workers) {
  drover::Pool pool({.workers = workers});
  for (auto&& _ : pool.map<F>(drover::range(0, static_cast<int>(workers)), {.ordered = false})) static_cast<void>(_);
  return 0;
}

// Scenarios.

int job(const Arguments& arguments) {  // name, items, workers
  for (const auto& [job, name] : drover_test::kJobs) {
    if (arguments.at(0) != name) continue;
    drover::Pool pool(drover_test::pool_for(job, std::stoul(arguments.at(2))));
    const Tally tally = drover_test::run_job(pool, job, std::stoul(arguments.at(1)), 0);
    say(tally.complaint().empty() ? "fine" : tally.complaint());
    return tally.complaint().empty() ? 0 : 1;
  }
  return 2;
}

int job_with_deaths(const Arguments&) {
  drover::Pool pool({.workers = 2});
  int lost = 0;
  auto results = pool.map<dies_every_fourth>(drover::range(0, 12), {.chunk = 2});
  for (auto it = results.begin(); it != results.end(); ++it) {
    try {
      static_cast<void>(*it);
    } catch (const drover::WorkerLost&) {
      ++lost;
    }
  }
  return lost == 3 ? 0 : 1;
}

int pool_of_a_short_thread(const Arguments&) {
  std::optional<drover::Pool> pool;
  std::thread([&] { pool.emplace(drover::PoolOptions{.workers = 2}); }).join();
  for (auto&& _ : pool->map<busy>(drover::range(0, 2))) static_cast<void>(_);
  return 0;
}

template <class Wait>
int until_interrupted(const Arguments& arguments, const Wait& wait) {
  if (arguments.empty() || arguments[0] != "catch") {
    wait();
    return 1;
  }
  try {
    wait();
  } catch (const drover::Interrupted& interrupted) {
    say("interrupted " + std::to_string(interrupted.signal()));
    return 7;
  }
  return 1;
}

int in_next(const Arguments& arguments) {
  return until_interrupted(arguments, [] { occupy<asleep>(2); });
}

int in_start(const Arguments& arguments) {
  return until_interrupted(arguments, [] {
    say("begin");
    occupy<asleep>(4);
  });
}

/// The loop's body takes long; the signal must be noticed when it comes back for the next item.
int in_body(const Arguments& arguments) {
  return until_interrupted(arguments, [] {
    drover::Pool pool({.workers = 2});
    for (const int i : pool.map<slow>(drover::range(0, 1'000'000))) {
      if (i != 5) continue;
      say("body");
      usleep(300'000);
    }
  });
}

int in_flow(const Arguments& arguments) {
  return until_interrupted(arguments, [] {
    drover::Pool pool({.workers = 2});
    std::int64_t sum = 0;
    for (;;) {
      for (const int i : pool.map<quick>(drover::range(0, 1'000'000), {.ordered = false})) {
        if (sum++ == 0) say("flows");
        sum += i & 1;
      }
    }
  });
}

int in_wait(const Arguments& arguments) {  // "catch" or "let", at what
  return until_interrupted(arguments, [&] { drover_test::wait_at(arguments.at(1)); });
}

int in_get(const Arguments& arguments) {
  return until_interrupted(arguments, [] {
    drover::Pool pool({.workers = 2});
    pool.submit<asleep>(0).get();
  });
}

int in_destructor(const Arguments&) {
  {
    drover::Pool pool({.workers = 1, .grace = drover::Duration(60)});
    auto future = pool.submit<asleep>(0);
    while (pool.stats().workers[0].queue_depth == 0) usleep(1000);
    say("closing");
  }
  say("closed");
  return 0;
}

int with_nothing(const Arguments&) {
  { drover::Pool pool({.workers = 1}); }
  say("idle");
  sleep_for_ever();
}

/// A program that will not end by the first signal.
int stubborn(const Arguments&) {
  try {
    occupy<asleep>(2);
  } catch (const drover::Interrupted&) {
  }
  say("going on");
  sleep_for_ever();
}

volatile std::sig_atomic_t own_handler_ran = 0;

/// main installed a handler before init.
int own_handler(const Arguments&) {
  drover::Pool pool({.workers = 2});
  say("begin");
  while (own_handler_ran == 0) usleep(1000);
  auto future = pool.submit<quick>(3);
  say("handled, and the pool gives " + std::to_string(future.get()));
  return 0;
}

int memory(const Arguments& arguments) {
  drover::Pool pool({.workers = 1});
  try {
    pool.submit<eats_memory>(std::stoul(arguments.at(0))).get();
    say("there was enough memory");
  } catch (const drover::WorkerLost& lost) {
    say(std::string(lost.killed_for_memory() ? "killed for memory: " : "lost: ") + lost.what());
  }
  return 0;
}

// Resources.

int try_pool(const Arguments& arguments) {  // workers
  try {
    drover::Pool pool({.workers = std::stoul(arguments.at(0))});
    const int answer = pool.submit<quick>(42).get();
    say("answer " + std::to_string(answer));
    return 0;
  } catch (const std::system_error& error) {
    say(std::string("system_error: ") + error.what());
  } catch (const drover::Error& error) {
    say(std::string("Error: ") + error.what());
  }
  return 3;
}

int few_descriptors(const Arguments& arguments) {  // how many, workers
  const rlimit limit{std::stoul(arguments.at(0)), std::stoul(arguments.at(0))};
  setrlimit(RLIMIT_NOFILE, &limit);
  return try_pool({arguments.at(1)});
}

int few_processes(const Arguments& arguments) {  // how many, workers
  const rlimit limit{std::stoul(arguments.at(0)), std::stoul(arguments.at(0))};
  setrlimit(RLIMIT_NPROC, &limit);
  if (setgid(65534) != 0 || setuid(65534) != 0) return 4;  // root has no such limit
  return try_pool({arguments.at(1)});
}

void die(int) { raise(SIGKILL); }

/// The program's file goes away while it runs; then a worker has to be replaced.
int vanishing_program(const Arguments& arguments) {  // path to delete, or path and a file to put in its place
  drover::Pool pool({.workers = 1});
  if (pool.submit<quick>(1).get() != 1) return 1;
  if (std::rename(arguments.at(0).c_str(), (arguments.at(0) + ".old").c_str()) != 0) return 2;
  if (arguments.size() > 1 && std::rename(arguments.at(1).c_str(), arguments.at(0).c_str()) != 0) return 3;
  unlink((arguments.at(0) + ".old").c_str());
  try {
    pool.submit<die>(0).get();
  } catch (const drover::WorkerLost&) {
    say("lost");
  }
  say("answer " + std::to_string(pool.submit<quick>(2).get()));
  return 0;
}

/// A library that this program has loaded is another one by the time the workers load it.
int replaced_library(const Arguments& arguments) {  // its path, a file to put in its place
  if (std::rename(arguments.at(1).c_str(), arguments.at(0).c_str()) != 0) return 2;
  return try_pool({"1"});
}

const std::map<std::string, int (*)(const Arguments&)> kScenarios = {
    {"job", job},
    {"deaths", job_with_deaths},
    {"busy", [](const Arguments&) { return occupy<busy>(2); }},
    {"asleep", [](const Arguments&) { return occupy<asleep>(2); }},
    {"deaf", [](const Arguments&) { return occupy<deaf>(2); }},
    {"nested", [](const Arguments&) { return occupy<nested>(2); }},
    {"subprocess", [](const Arguments&) { return occupy<with_subprocess>(2); }},
    {"stopped", [](const Arguments&) { return occupy<stops_itself>(2); }},
    {"thread", pool_of_a_short_thread},
    {"next", in_next},
    {"start", in_start},
    {"body", in_body},
    {"flow", in_flow},
    {"get", in_get},
    {"wait", in_wait},
    {"destructor", in_destructor},
    {"nothing", with_nothing},
    {"stubborn", stubborn},
    {"own-handler", own_handler},
    {"memory", memory},
    {"damage",
     [](const Arguments& arguments) {
       say(drover_test::damaged(arguments));
       return 0;
     }},
    {"pool", try_pool},
    {"no-init", try_pool},
    {"few-descriptors", few_descriptors},
    {"few-processes", few_processes},
    {"vanishing", vanishing_program},
    {"replaced-library", replaced_library},
};

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  if (name == "own-handler") {
    std::signal(SIGINT, [](int) { own_handler_ran = 1; });
    std::signal(SIGTERM, [](int) { own_handler_ran = 1; });
  }
  if (name != "no-init") drover::init(argc, argv);
  const auto scenario = kScenarios.find(name);
  if (scenario == kScenarios.end()) return 100;
  return scenario->second({argv + 2, argv + argc});
}
