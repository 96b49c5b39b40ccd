// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstring>

#include "benchmarks/harness/measure.h"
#include "benchmarks/harness/report.h"
#include "benchmarks/harness/slots.h"
#include "benchmarks/pool/figures.h"
#include "drover/drover.h"

namespace {

using namespace bench;

struct Named {
  const char* name;
  void (*measure)(Bench&);
};
constexpr Named kFigures[] = {{"map_chunk1", map_chunk1},
                              {"map_chunk1_streamed", map_chunk1_streamed},
                              {"map_auto", map_auto},
                              {"submit_pipelined", submit_pipelined},
                              {"roundtrip_hot", roundtrip_hot},
                              {"roundtrip_parked", roundtrip_parked},
                              {"roundtrip_one_cpu", roundtrip_one_cpu},
                              {"start_first_result", start_first_result},
                              {"stop", stop},
                              {"montecarlo_efficiency", montecarlo_efficiency},
                              {"worker_death_ms", worker_death_ms},
                              {"parent_death_ms", parent_death_ms},
                              {"idle_cpu", idle_cpu},
                              {"idle_pss", idle_pss},
                              {"stream_memory", stream_memory}};

struct Options {
  bool json = false;
  bool longer = false;
  std::string only;
};

/// Measures one figure. One that fails is an entry with the reason; the others go on. False when it failed.
bool measure(const Named& figure, Bench& bench) {
  const std::int64_t begin = now_ns();
  fmt::print(stderr, "{} ...", figure.name);
  std::string failure;
  try {
    figure.measure(bench);
  } catch (const drover::Interrupted&) {
    throw;
  } catch (const std::exception& error) {
    failure = error.what();
    bench.add(Entry{figure.name, "", {}, {}, {}, {}, {}, {}, {}, {}, failure});
  }
  fmt::print(stderr, " {:.1f} s {}\n", 1e-9 * static_cast<double>(now_ns() - begin), failure);
  return failure.empty();
}

int run_all(const Options& options) {
  create_slots();
  allowed_cpus();
  const Machine machine = this_machine();
  Bench bench(options.longer);
  bool good = true;
  for (const Named& figure : kFigures) {
    if (options.only.empty() || options.only == figure.name) good = measure(figure, bench) && good;
  }
  const auto& entries = bench.entries();
  fmt::print("{}", options.json ? to_json("pool", machine, entries) : to_table("pool", machine, entries));
  return good ? 0 : 1;
}

std::vector<std::string> names() {
  std::vector<std::string> list;
  for (const Named& figure : kFigures) list.push_back(figure.name);
  return list;
}

}  // namespace

/// Exit status: 0 everything was measured (whether goals are met is in the report), 1 a figure failed, else CLI11's for
/// wrong arguments.
int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], kExitAtOnce) == 0) _exit(0);
  drover::init(argc, argv);
  if (argc > 1 && std::strcmp(argv[1], kPlayParent) == 0) play_parent();
  CLI::App app("Measures the pool against its floors and peers, in the same run.", "drover bench pool");
  Options options;
  app.add_flag("--json", options.json, "Print the report as JSON");
  app.add_flag("--long", options.longer, "More rounds, bigger runs");
  app.add_option("--only", options.only, "Run this figure alone")->check(CLI::IsMember(names()));
  CLI11_PARSE(app, argc, argv);
  return run_all(options);
}
