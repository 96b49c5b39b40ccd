// SPDX-License-Identifier: Apache-2.0
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <numeric>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "benchmarks/harness/measure.h"
#include "benchmarks/peers/floors.h"
#include "drover/cli/montecarlo.h"

namespace bench::floors {
namespace {

pid_t spawn(std::vector<char*>& command) {
  pid_t pid = -1;
  const int error = posix_spawn(&pid, command[0], nullptr, nullptr, command.data(), environ);
  if (error != 0) throw std::system_error(error, std::generic_category(), command[0]);
  return pid;
}

void spawn_all(std::size_t count, std::vector<char*>& command) {
  std::vector<pid_t> pids(count);
  for (pid_t& pid : pids) pid = spawn(command);
  for (pid_t pid : pids) {
    int status = 0;
    if (waitpid(pid, &status, 0) != pid || status != 0) throw std::runtime_error("the spawned program failed");
  }
}

/// Samples claimed one by one by `threads` threads; the sum of them all.
double sweep(int samples, int iterations, int threads) {
  std::vector<double> sums(static_cast<std::size_t>(threads));
  std::atomic<int> next = 0;
  std::vector<std::thread> crew;
  for (double& sum : sums) {
    crew.emplace_back([&] {
      double mine = 0;
      for (int seed = 0; (seed = next.fetch_add(1)) < samples;) mine += drover::cli::sum_by_terms(seed, iterations);
      sum = mine;
    });
  }
  for (std::thread& thread : crew) thread.join();
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace

std::vector<double> spawn_and_wait(const std::vector<std::string>& arguments) {
  std::vector<char*> command;
  for (std::size_t i = 1; i < arguments.size(); ++i) command.push_back(const_cast<char*>(arguments[i].c_str()));
  command.push_back(nullptr);
  spawn_all(1, command);
  return {time_ns([&] { spawn_all(task_count(arguments), command); })};
}

std::vector<double> montecarlo_threads(const std::vector<std::string>& arguments) {
  const int samples = std::stoi(arguments.at(0));
  const int iterations = std::stoi(arguments.at(1));
  const int threads = std::stoi(arguments.at(2));
  double sum = 0;
  const std::int64_t cpu = cpu_ns(getpid());
  const double wall = time_ns([&] { sum = sweep(samples, iterations, threads); });
  return {static_cast<double>(cpu_ns(getpid()) - cpu) / samples, wall / samples, sum};
}

}  // namespace bench::floors
