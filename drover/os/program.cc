// SPDX-License-Identifier: Apache-2.0
#include "drover/os/program.h"

#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace drover::inline v1::os {

std::filesystem::path program_path() { return std::filesystem::read_symlink("/proc/self/exe"); }

void exec_program(const std::filesystem::path& path, const std::vector<std::string>& args) {
  std::vector<char*> argv{const_cast<char*>(path.c_str())};
  for (const std::string& arg : args) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  ::execv(path.c_str(), argv.data());
  throw std::system_error(errno, std::generic_category(), "execv " + path.string());
}

}  // namespace drover::inline v1::os
