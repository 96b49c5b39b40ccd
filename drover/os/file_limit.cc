// SPDX-License-Identifier: Apache-2.0
#include "drover/os/file_limit.h"

#include <sys/resource.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace drover::inline v1::os {

void check_file_limit(std::uint64_t end) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || end <= limit.rlim_cur) return;
  throw std::system_error(EFBIG, std::generic_category(),
                          "shared memory of " + std::to_string(end) + " bytes: files of this process may have " +
                              std::to_string(limit.rlim_cur) + " bytes (ulimit -f, RLIMIT_FSIZE), and this is one");
}

}  // namespace drover::inline v1::os
