// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "drover/os/host_files.h"

namespace drover::inline v1::health {

/// What exec() gives to a process.
struct Program {
  std::string command, cgroup;  ///< as in ProcessDetail
  bool environment_known = false;
  std::map<std::string, std::string> environment;  ///< only the variables of job_variables()
};

/// Reads commands and environments. They lie in the memory of the process, and the kernel gives them only while nobody
/// there has locked the map of that memory: when a thread hangs in the kernel with that lock, whoever reads them waits
/// with it (so `ps` hangs on such a machine). So another thread reads, and one that does not come back is left behind.
/// It can be killed while it waits, so it keeps nobody from ending. One thread at a time.
class ProgramReader {
 public:
  /// One process's, as far as they are known. A value; copies are the same request.
  class Request {
   public:
    Request() = default;
    /// What was read; nullptr: it has not come back, or nothing was asked. An answer may come late.
    const Program* answer() const noexcept;
    /// It has not come back yet.
    bool pending() const noexcept { return batch_ != nullptr && answer() == nullptr; }

   private:
    friend class ProgramReader;
    struct Batch;
    Request(std::shared_ptr<Batch> batch, std::size_t index) : batch_(std::move(batch)), index_(index) {}
    std::shared_ptr<Batch> batch_;
    std::size_t index_ = 0;
  };

  /// Reads these, and comes back when all are done, or when those that are not have been waited for: kPatience for the
  /// first one, a moment for each other.
  std::vector<Request> read(std::vector<std::shared_ptr<const os::HostFolder>> folders);

  static constexpr std::chrono::milliseconds kPatience{250}, kMoment{20};

 private:
  static void run(Request::Batch& batch);
  static std::size_t wait_for(Request::Batch& batch, std::chrono::milliseconds patience);
};

}  // namespace drover::inline v1::health
