// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "drover/cli/command.h"
#include "drover/cli/montecarlo.h"
#include "drover/cli/progress.h"
#include "drover/cli/text.h"
#include "drover/cli/validators.h"
#include "drover/drover.h"

namespace drover::inline v1::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kMost = 1'000'000'000;           // samples, iterations, samples in a chunk
constexpr std::int64_t kMostWorkers = 1024;             // what a pool takes
constexpr std::int64_t kExact = std::int64_t{1} << 53;  // whole numbers up to here are exact in a double
constexpr std::int64_t kLogStep = 5'000;
constexpr double kAllowedError = 1e-10;
constexpr const char* kEfficiencyIs =
    "time of one sample on one core, measured before the run, x samples / (wall time x workers)";

struct Options {
  std::int64_t samples = 50'000, iterations = 100'000;
  std::int64_t workers = 0;  // 0: the cores this process may use
  std::string chunk = "auto";
  bool json = false;

  std::int64_t chunk_size() const { return chunk == "auto" ? 0 : std::stoll(chunk); }
};

struct Outcome {
  std::size_t workers = 0;
  std::int64_t arrived = 0;
  double alone_s = 0;  // one sample on one core
  double wall_s = 0;
  double largest_error = 0;
  std::int64_t worst_seed = 0;

  bool right() const { return largest_error <= kAllowedError; }
  void compare(std::int64_t seed, double error) {
    ++arrived;
    if (std::isnan(error)) error = HUGE_VAL;
    if (error <= largest_error) return;
    largest_error = error;
    worst_seed = seed;
  }
};

// Worker side: what a task needs beside its seed, set once in each worker.
std::int64_t iterations_here = 0;

void set_iterations(std::int64_t iterations) { iterations_here = iterations; }

std::pair<std::int64_t, double> sample(std::int64_t seed) { return {seed, sum_by_terms(seed, iterations_here)}; }

/// Seconds that one sample takes on one core: the mean over seeds from all parts of the job, as large arguments take
/// longer.
double measure_alone(const Options& options) {
  constexpr std::int64_t kRound = 8, kEnough = 100'000;
  constexpr double kGoldenSection = 0.6180339887498949;
  const std::int64_t iterations = std::min(options.iterations, kEnough);
  std::int64_t measured = 0;
  double place = 0, spent = 0;
  [[maybe_unused]] volatile double keep = 0;
  const auto start = Clock::now();
  while (spent < 0.1) {
    for (std::int64_t i = 0; i < kRound; ++i, ++measured) {
      place = std::fmod(place + kGoldenSection, 1.0);
      keep = sum_by_terms(static_cast<std::int64_t>(place * static_cast<double>(options.samples)), iterations);
    }
    spent = std::chrono::duration<double>(Clock::now() - start).count();
  }
  return spent / static_cast<double>(measured) * static_cast<double>(options.iterations) /
         static_cast<double>(iterations);
}

Outcome run_job(const Options& options) {
  Outcome outcome;
  outcome.alone_s = measure_alone(options);
  const auto start = Clock::now();
  Pool pool({.workers = options.workers, .initializer = call<set_iterations>(options.iterations)});
  outcome.workers = pool.stats().workers.size();
  Progress progress(options.json ? stderr : stdout, options.samples, kLogStep, "samples");
  auto results = pool.map<sample>(range(std::int64_t{0}, options.samples),
                                  {.ordered = false, .chunk = options.chunk_size(), .retries = 2});
  for (auto [seed, sum] : results) {
    const long double error = sum - sum_in_closed_form(seed, options.iterations);
    outcome.compare(seed, static_cast<double>(std::fabs(error)));
    progress.advance();
  }
  outcome.wall_s = std::chrono::duration<double>(Clock::now() - start).count();
  if (outcome.arrived != options.samples) throw Error(fmt::format("{} results arrived", outcome.arrived));
  return outcome;
}

double samples_per_second(const Options& options, const Outcome& outcome) {
  return static_cast<double>(options.samples) / outcome.wall_s;
}

double efficiency(const Options& options, const Outcome& outcome) {
  return outcome.alone_s * samples_per_second(options, outcome) / static_cast<double>(outcome.workers);
}

void print_text(const Options& options, const Outcome& outcome) {
  fmt::print("{} samples of {} iterations by {} {}: {:.2f} s, {} samples/s\n", grouped(options.samples),
             grouped(options.iterations), outcome.workers, outcome.workers == 1 ? "worker" : "workers", outcome.wall_s,
             rate_text(samples_per_second(options, outcome)));
  fmt::print("parallel efficiency {:.2f} ({})\n", efficiency(options, outcome), kEfficiencyIs);
  fmt::print("one sample on one core: {:.3g} ms\n", outcome.alone_s * 1e3);
  fmt::print("largest error {:.2g}, at seed {}, against the closed form (allowed: {:.0e})\n", outcome.largest_error,
             outcome.worst_seed, kAllowedError);
}

void print_json(const Options& options, const Outcome& outcome) {
  nlohmann::ordered_json object = {{"demo", "montecarlo"},
                                   {"samples", options.samples},
                                   {"iterations", options.iterations},
                                   {"workers", outcome.workers},
                                   {"chunk", nullptr},
                                   {"wall_s", outcome.wall_s},
                                   {"samples_per_s", samples_per_second(options, outcome)},
                                   {"one_core_sample_s", outcome.alone_s},
                                   {"efficiency", efficiency(options, outcome)},
                                   {"efficiency_is", kEfficiencyIs},
                                   {"largest_error", outcome.largest_error},
                                   {"largest_error_seed", outcome.worst_seed},
                                   {"allowed_error", kAllowedError},
                                   {"ok", outcome.right()}};
  if (options.chunk == "auto") {
    object["chunk"] = "auto";
  } else {
    object["chunk"] = options.chunk_size();
  }
  fmt::print("{}\n", object.dump());
}

int run(const Options& options) {
  if (options.samples * options.iterations > kExact) {
    throw UsageError("samples x iterations must not exceed 2^53: the arguments s*i would no longer be exact");
  }
  const Outcome outcome = run_job(options);
  (options.json ? print_json : print_text)(options, outcome);
  if (outcome.right()) return kOk;
  fmt::print(stderr, "drover: wrong result: the sum of seed {} is off by {:.2g}, more than {:.0e} is not allowed\n",
             outcome.worst_seed, outcome.largest_error, kAllowedError);
  return kFailed;
}

}  // namespace

void add_demo_montecarlo(CLI::App& demo, Action& action) {
  CLI::App& command = *demo.add_subcommand("montecarlo", "Many sums over sines, streamed back as each is done");
  const auto options = std::make_shared<Options>();
  command.add_option("--samples", options->samples, "How many sums")->check(whole_number(kMost))->capture_default_str();
  command.add_option("--iterations", options->iterations, "How long each is")
      ->check(whole_number(kMost))
      ->capture_default_str();
  command.add_option("--workers", options->workers, "How many processes (default: the cores this process may use)")
      ->check(whole_number(kMostWorkers));
  command.add_option("--chunk", options->chunk, "Samples handed out at once")
      ->type_name("auto|N")
      ->check(whole_number(kMost, "auto"))
      ->capture_default_str();
  command.add_flag("--json", options->json, "Print one JSON object on stdout; progress goes to stderr");
  command.footer(
      "For each s in 0 ... samples-1: the sum over i = 1 ... iterations-1 of sin(s*i)*cos(i), compared with\n"
      "its closed form.");
  command.callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace drover::inline v1::cli
