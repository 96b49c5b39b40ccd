// SPDX-License-Identifier: Apache-2.0
#include "drover/health/probe/program_reader.h"

#include "drover/health/probe/proc_text.h"
#include "drover/health/sample.h"

namespace drover::inline v1::health {

Program read_program(const std::shared_ptr<const os::HostFolder>& folder) {
  Program program;
  program.command = parse_cmdline(folder->text("cmdline").value_or(std::string()));
  program.cgroup = parse_process_cgroup(folder->text("cgroup").value_or(std::string()));
  const auto environment = folder->text("environ", 1U << 20U);
  program.environment_known = environment.has_value();
  program.environment = parse_environ(environment.value_or(std::string()), job_variables());
  return program;
}

}  // namespace drover::inline v1::health
