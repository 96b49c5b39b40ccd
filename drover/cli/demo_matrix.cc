// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "drover/cli/command.h"
#include "drover/cli/text.h"
#include "drover/cli/validators.h"
#include "drover/drover.h"
#include "drover/os/memory.h"
#include "drover/os/self.h"

namespace drover::inline v1::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kMostRows = 10'000'000;
constexpr std::int64_t kMostProcesses = 1000;
constexpr double kAllowedError = 1e-14;  // of the sum of the absolute values
constexpr std::uint64_t kSeed = 20'260'101;

struct Options {
  std::int64_t rows = 10'000, cols = 10'000, processes = 4;
  std::string name;
  bool json = false;
};

/// What was found in some rows.
struct Found {
  double sum = 0, absolute = 0;
  Found operator+(const Found& other) const { return {sum + other.sum, absolute + other.absolute}; }
};

struct Answer {
  std::int64_t process = 0;
  Found found;
};

struct Outcome {
  std::string path;
  double create_s = 0, fill_s = 0, reports_s = 0, check_s = 0, wall_s = 0, look_s = 0;
  std::optional<double> pss_mib;  ///< when all have read all of the matrix, which is when it is highest
  std::vector<Found> found;       ///< by process
  double largest_error = 0;
  bool right() const { return largest_error <= kAllowedError; }
};

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::int64_t first_row(const Options& options, std::int64_t process) {
  return options.rows * process / options.processes;
}

/// Sums with many partial sums, at the speed of memory.
Found sum_of(const ArrayView<const double, 2>& rows) {
  constexpr std::size_t kLanes = 16;
  double sums[kLanes] = {}, absolutes[kLanes] = {};
  const std::span<const double> all = rows.span();
  std::size_t i = 0;
  for (; i + kLanes <= all.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      sums[lane] += all[i + lane];
      absolutes[lane] += std::fabs(all[i + lane]);
    }
  }
  Found found;
  for (; i < all.size(); ++i) {
    found.sum += all[i];
    found.absolute += std::fabs(all[i]);
  }
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    found.sum += sums[lane];
    found.absolute += absolutes[lane];
  }
  return found;
}

/// What each process runs: it knows the matrix by its name alone.
void report_mean(const std::string& name, std::int64_t process, std::int64_t from, std::int64_t to,
                 Queue<Answer> answers, Event release) {
  const auto matrix = SharedArray<const double, 2>::open(name);
  answers.push({process, sum_of(matrix.rows(from, to))});
  release.wait();  // so that the memory of all can be looked at while all have the matrix
}

/// Throws when one of them has failed: nobody shall wait for what it would have said.
void check_alive(const std::vector<Process>& processes) {
  for (std::size_t i = 0; i < processes.size(); ++i) {
    const auto status = processes[i].exit_status();
    if (!status || status->success()) continue;
    throw Error(fmt::format("process {} (pid {}) {} before all was done", i, processes[i].pid(), status->describe()));
  }
}

/// The answer of each, in the order of the processes.
std::vector<Found> collect(Queue<Answer>& answers, const std::vector<Process>& processes) {
  constexpr std::chrono::milliseconds kLookAfter(50);
  std::vector<Found> found(processes.size());
  for (std::size_t missing = processes.size(); missing > 0;) {
    try {
      if (const std::optional<Answer> answer = answers.pop_for(kLookAfter)) {
        found.at(static_cast<std::size_t>(answer->process)) = answer->found;
        --missing;
        continue;
      }
    } catch (const OwnerDied&) {  // check_alive knows more of it
    }
    check_alive(processes);
  }
  return found;
}

/// The memory of this process, its workers and those processes, each shared page counted once.
std::optional<double> pss_mib(Pool& pool, const std::vector<Process>& processes) {
  std::vector<int> pids = {os::current_pid()};
  for (const WorkerStats& worker : pool.stats().workers) pids.push_back(worker.pid);
  for (const Process& process : processes) pids.push_back(process.pid());
  double bytes = 0;
  for (const int pid : pids) {
    const auto memory = os::process_memory(pid, true);
    if (!memory || !memory->pss_bytes) return std::nullopt;
    bytes += static_cast<double>(*memory->pss_bytes);
  }
  return bytes / (1 << 20);
}

/// Starts the processes, sums the same rows with the own workers, compares.
void let_processes_report(const Options& options, Pool& pool, const SharedArray<double, 2>& matrix, Outcome& outcome) {
  auto start = Clock::now();
  auto answers = Queue<Answer>::create(options.processes);
  Event release;
  std::vector<Process> processes;
  for (std::int64_t i = 0; i < options.processes; ++i) {
    processes.push_back(
        spawn<report_mean>(matrix.name(), i, first_row(options, i), first_row(options, i + 1), answers, release));
  }
  outcome.found = collect(answers, processes);
  outcome.reports_s = seconds_since(start);
  start = Clock::now();
  outcome.pss_mib = pss_mib(pool, processes);
  outcome.look_s = seconds_since(start);
  release.set();
  start = Clock::now();
  for (std::int64_t i = 0; i < options.processes; ++i) {
    const Found own = reduce<sum_of>(pool, matrix.rows(first_row(options, i), first_row(options, i + 1)));
    const Found& found = outcome.found[static_cast<std::size_t>(i)];
    const double error = std::fabs(own.sum - found.sum) / std::max(own.absolute, 1e-300);
    outcome.largest_error = std::max(outcome.largest_error, std::isnan(error) ? HUGE_VAL : error);
  }
  outcome.check_s = seconds_since(start);
  for (Process& process : processes) {
    process.join();
    check_alive(processes);
  }
}

Outcome run_job(const Options& options) {
  Outcome outcome;
  const auto start = Clock::now();
  Pool pool;  // its workers start while the memory is reserved
  const std::string name = options.name.empty() ? fmt::format("drover-demo-{}", os::current_pid()) : options.name;
  const auto matrix = SharedArray<double, 2>::create(name, {options.rows, options.cols});
  outcome.path = matrix.path();
  outcome.create_s = seconds_since(start);
  const auto filling = Clock::now();
  fill_normal(pool, matrix, kSeed);
  outcome.fill_s = seconds_since(filling);
  let_processes_report(options, pool, matrix, outcome);
  matrix.unlink();
  outcome.wall_s = seconds_since(start);
  return outcome;
}

double gigabytes(const Options& options) { return static_cast<double>(options.rows * options.cols) * 8e-9; }

double mean_of(const Options& options, const Outcome& outcome, std::int64_t process) {
  const std::int64_t rows = first_row(options, process + 1) - first_row(options, process);
  return outcome.found[static_cast<std::size_t>(process)].sum / static_cast<double>(rows * options.cols);
}

void print_text(const Options& options, const Outcome& outcome) {
  const double gb = gigabytes(options);
  fmt::print("{} x {} float64, {:.3g} GB, as {}\n", grouped(options.rows), grouped(options.cols), gb, outcome.path);
  fmt::print("created in {:.3f} s, filled in {:.3f} s ({:.1f} GB/s)\n", outcome.create_s, outcome.fill_s,
             gb / outcome.fill_s);
  for (std::int64_t i = 0; i < options.processes; ++i) {
    fmt::print("process {}: rows {} to {}, mean {:+.3e}\n", i, grouped(first_row(options, i)),
               grouped(first_row(options, i + 1)), mean_of(options, outcome, i));
  }
  fmt::print("{} processes started, attached and summed in {:.3f} s ({:.1f} GB/s)\n", options.processes,
             outcome.reports_s, gb / outcome.reports_s);
  fmt::print("own sum in {:.3f} s ({:.1f} GB/s); largest difference {:.2g} of the sum of |x|\n", outcome.check_s,
             gb / outcome.check_s, outcome.largest_error);
  if (outcome.pss_mib) {
    fmt::print("memory when all have read it: {:.0f} MiB (PSS), of it the matrix {:.0f} MiB\n", *outcome.pss_mib,
               gb * 1e9 / (1 << 20));
  } else {
    fmt::print("memory when all have read it: not known (/proc/PID/smaps_rollup cannot be read)\n");
  }
  fmt::print("closed and unlinked; {:.3f} s in all\n", outcome.wall_s);
}

void print_json(const Options& options, const Outcome& outcome) {
  nlohmann::ordered_json object = {{"demo", "matrix"},
                                   {"rows", options.rows},
                                   {"cols", options.cols},
                                   {"processes", options.processes},
                                   {"path", outcome.path},
                                   {"create_s", outcome.create_s},
                                   {"fill_s", outcome.fill_s},
                                   {"reports_s", outcome.reports_s},
                                   {"check_s", outcome.check_s},
                                   {"memory_look_s", outcome.look_s},
                                   {"wall_s", outcome.wall_s},
                                   {"gb", gigabytes(options)},
                                   {"pss_mib", nullptr},
                                   {"means", nlohmann::ordered_json::array()},
                                   {"largest_error", outcome.largest_error},
                                   {"allowed_error", kAllowedError},
                                   {"ok", outcome.right()}};
  if (outcome.pss_mib) object["pss_mib"] = *outcome.pss_mib;
  for (std::int64_t i = 0; i < options.processes; ++i) object["means"].push_back(mean_of(options, outcome, i));
  fmt::print("{}\n", object.dump());
}

int run(const Options& options) {
  if (options.processes > options.rows) throw UsageError("there are more processes than rows");
  const Outcome outcome = run_job(options);
  (options.json ? print_json : print_text)(options, outcome);
  if (outcome.right()) return kOk;
  fmt::print(stderr, "drover: wrong result: a process found a sum that is off by {:.2g} of the sum of |x|\n",
             outcome.largest_error);
  return kFailed;
}

}  // namespace

void add_demo_matrix(CLI::App& demo, Action& action) {
  CLI::App& command =
      *demo.add_subcommand("matrix", "One matrix in shared memory, which other processes attach by its name");
  const auto options = std::make_shared<Options>();
  command.add_option("--rows", options->rows, "Rows")->check(whole_number(kMostRows))->capture_default_str();
  command.add_option("--cols", options->cols, "Columns")->check(whole_number(kMostRows))->capture_default_str();
  command.add_option("--processes", options->processes, "How many attach it")
      ->check(whole_number(kMostProcesses))
      ->capture_default_str();
  command.add_option("--name", options->name, "Of the matrix (default: drover-demo-PID)");
  command.add_flag("--json", options->json, "Print one JSON object on stdout");
  command.footer(
      "Fills a matrix with standard normal numbers on all cores. Each process opens it\n"
      "by name, without a copy, and reports the mean of its rows, which is checked\n"
      "against this program's own sum.");
  command.callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace drover::inline v1::cli
