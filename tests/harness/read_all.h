// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <string>

namespace drover_test {

/// Everything in a file of /proc, or nothing when its process is gone. Not by std::ifstream: its streambuf iterators
/// throw when read() fails, and read() of a process that has just ended gives ESRCH.
inline std::string read_all(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::string all;
  char buffer[4096];
  ssize_t n = 0;
  while ((n = read(fd, buffer, sizeof buffer)) > 0) all.append(buffer, static_cast<std::size_t>(n));
  close(fd);
  return all;
}

}  // namespace drover_test
