// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/harness/area.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "benchmarks/harness/measure.h"
#include "benchmarks/harness/report.h"
#include "drover/base/errors.h"

namespace bench {
namespace {

/// Measures one figure. One that fails is an entry with the reason; the others go on. False when it failed.
bool measure(const NamedFigures& figure, Bench& bench) {
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

}  // namespace

int run_area(const char* area, const char* description, std::span<const NamedFigures> figures, int argc, char** argv) {
  bool json = false, longer = false;
  std::string only;
  std::vector<std::string> names;
  for (const NamedFigures& figure : figures) names.emplace_back(figure.name);
  CLI::App app(description, std::string("drover bench ") + area);
  app.add_flag("--json", json, "Print the report as JSON");
  app.add_flag("--long", longer, "More rounds, bigger runs");
  app.add_option("--only", only, "Run this figure alone")->check(CLI::IsMember(names));
  CLI11_PARSE(app, argc, argv);
  const Machine machine = this_machine();
  Bench bench(longer);
  bool good = true;
  for (const NamedFigures& figure : figures) {
    if (only.empty() || only == figure.name) good = measure(figure, bench) && good;
  }
  fmt::print("{}", json ? to_json(area, machine, bench.entries()) : to_table(area, machine, bench.entries()));
  return good ? 0 : 1;
}

}  // namespace bench
