// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>

#include "drover/os/host_files.h"
#include "drover/os/patient_reader.h"

namespace drover::inline v1::health {

/// What exec() gives to a process.
struct Program {
  std::string command, cgroup;  ///< as in ProcessDetail
  bool environment_known = false;
  std::map<std::string, std::string> environment;  ///< only the variables of job_variables()
};

using ProgramReader = os::PatientReader<std::shared_ptr<const os::HostFolder>, Program>;

/// From the folder of a process; to be asked by a ProgramReader, since it may not come back.
Program read_program(const std::shared_ptr<const os::HostFolder>& folder);

}  // namespace drover::inline v1::health
