// SPDX-License-Identifier: Apache-2.0
#include "drover/cli/inspect_tied.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "drover/os/file_system.h"
#include "drover/os/program.h"
#include "drover/os/self.h"

namespace drover::inline v1::cli {
namespace {

constexpr const char* kVariable = "DROVER_TIED_TO";  // the parent's pid
constexpr int kLife = 3;                             // behind the three standard ones

/// The arguments of this process as the kernel has them.
std::vector<std::string> own_arguments() {
  std::string text = os::read_small_file("/proc/self/cmdline", 4U << 20U).value_or(std::string());
  std::vector<std::string> arguments;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\0', begin), text.size());
    arguments.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return arguments;
}

/// Runs before main() and before most other code of this program; needs nothing of it.
__attribute__((constructor)) void become_child_if_told() {
  if (std::getenv(kVariable) == nullptr) return;
  try {
    const auto parent = os::parse_number(os::take_environment(kVariable).value_or(std::string()));
    os::Fd life(kLife);
    os::die_with_parent(static_cast<int>(parent.value_or(0)), life);
    life.reset();
    std::vector<std::string> arguments = own_arguments();
    const std::string program = arguments.at(0);
    arguments.erase(arguments.begin());
    os::exec_program(program, arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "drover: %s\n", error.what());
    os::exit_now(126);
  }
}

}  // namespace

void tie(os::SpawnRequest& request, const os::Fd& life) {
  request.arguments.at(0) = request.program;
  request.program = "/proc/self/exe";
  request.environment.push_back(std::string(kVariable) + "=" + std::to_string(os::current_pid()));
  request.descriptors.push_back(life.get());
}

}  // namespace drover::inline v1::cli
