// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace drover_test {

/// What a test can leave behind: processes, descriptors of this process, and files. Each entry is a text for people.
///
/// Processes: all descendants of this one, and all that carry its environment mark (so orphans and those that called
/// setsid are found too). A zombie whose parent is PID 1 is gone. Files: all names in /dev/shm and $XDG_RUNTIME_DIR,
/// and those with "drover" in them in the temporary folder.
struct Belongings {
  std::vector<std::string> entries;  ///< sorted

  static Belongings now();
  /// What is here and not in `before`.
  std::vector<std::string> beyond(const Belongings& before) const;
};

/// Makes every test of this program check that it leaves nothing behind; call once in main, after drover::init. It puts
/// the mark DROVER_TEST_RUN into the environment. What a test leaves has 2 s to go away, then the test has failed. A
/// test program that is started by a test is a stranger to it: it has its own mark but is a descendant.
void install_leak_check();

}  // namespace drover_test
