// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>

#include "drover/cli/command.h"

namespace drover::inline v1::cli {

void add_demo(CLI::App& app, Action& action) {
  CLI::App& demo = *app.add_subcommand("demo", "Run a whole job at full size, and check its result");
  demo.require_subcommand(1);
  add_demo_montecarlo(demo, action);
  add_demo_matrix(demo, action);
}

}  // namespace drover::inline v1::cli
