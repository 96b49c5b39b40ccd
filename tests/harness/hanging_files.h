// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace drover_test {

/// While it lives, and in programs started meanwhile from this test's image, opening a file whose path ends with
/// `ending` does not come back until release(), as in a driver that hangs. One at a time.
class HangingFile {
 public:
  explicit HangingFile(const std::string& ending);
  ~HangingFile();
  HangingFile(const HangingFile&) = delete;
  HangingFile& operator=(const HangingFile&) = delete;

  /// Lets all go that hang, now and later.
  void release();

 private:
  std::string fifo_;
  int writer_ = -1;
};

}  // namespace drover_test
