// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "benchmarks/harness/bench.h"

namespace bench {

/// A figure of an area by its name in targets.md.
struct NamedFigures {
  const char* name;
  void (*measure)(Bench&);
};

/// The main() of an area's program, after drover::init: takes --json, --long and --only NAME, measures, prints the
/// report. Exit status: 0 everything was measured (whether goals are met is in the report), 1 a figure failed, else
/// CLI11's for wrong arguments.
int run_area(const char* area, const char* description, std::span<const NamedFigures> figures, int argc, char** argv);

}  // namespace bench
