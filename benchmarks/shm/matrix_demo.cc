// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/shm/matrix_demo.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "benchmarks/harness/measure.h"

namespace bench {
namespace {

/// Runs a program that prints one JSON object. Throws Unavailable with `missing` when it does not.
nlohmann::json object_of(const std::string& command, const char* missing) {
  std::FILE* const output = popen(command.c_str(), "re");
  if (output == nullptr) throw Unavailable(missing);
  std::string text;
  char buffer[4096];
  while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, output)) text.append(buffer, n);
  const int status = pclose(output);
  const auto object = nlohmann::json::parse(text, nullptr, false);
  if (status != 0 || !object.is_object()) throw Unavailable(missing);
  return object;
}

struct Run {
  double wall_s = 0, memory_mib = 0;
};

Run run_of(const std::string& command, const char* missing) {
  Run run;
  nlohmann::json object;
  run.wall_s = time_ns([&] { object = object_of(command, missing); }) * 1e-9;
  // Looking at the memory is no part of the job: each says how long it took.
  run.wall_s -= object.at("memory_look_s").get<double>();
  run.memory_mib = object.at("pss_mib").get<double>();
  return run;
}

}  // namespace

void matrix_demo(Bench& bench) {
  const std::string ours = "'" + own_folder() + "../../bin/drover' demo matrix --json 2>/dev/null";
  const std::string python = "'" + own_folder() + "drover-peer-python-matrix' 2>/dev/null";
  const auto us = [ours] { return run_of(ours, "drover demo matrix does not run here"); };
  const auto them = [python] { return run_of(python, "python3 with NumPy is not installed"); };
  bench.add({.name = "matrix_demo",
             .unit = "s",
             .drover = [us] { return us().wall_s; },
             .peers = {{"Python: NumPy, SharedMemory, Process", [them] { return them().wall_s; }, ratio_at_most(0.2)}},
             .rounds = 3});
  bench.add(
      {.name = "matrix_demo",
       .unit = "MiB (PSS, all processes)",
       .drover = [us] { return us().memory_mib; },
       .peers = {{"Python: NumPy, SharedMemory, Process", [them] { return them().memory_mib; }, ratio_at_most(1)}},
       .rounds = 1});
}

}  // namespace bench
