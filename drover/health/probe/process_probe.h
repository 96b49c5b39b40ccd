// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "drover/health/probe/program_reader.h"
#include "drover/health/sample.h"
#include "drover/os/host_files.h"

namespace drover::inline v1::health {

/// Reads the process table: a line about every process, more about those asked for. Keeps what hardly ever changes
/// while a process lives (command, environment), by pid and start time: it is read again when the name changes, as exec
/// does that, and in every 16th look, as a program may have the name of the one before; a title that is then found in
/// the place of the environment takes nothing from what is known. One thread at a time.
class ProcessProbe {
 public:
  explicit ProcessProbe(const std::string& root) : proc_(root + "/proc") {}

  /// Fills in `processes`, ascending by pid. A process that ends meanwhile is left out.
  void list(HostSample& sample);

  /// Fills in `details` of these, as far as they are in `processes`; each is read through one open folder, and dropped
  /// when its start time shows that the number was used again. `threads`: looks at each thread too. Few folders are
  /// open at one time; those for which no descriptor is left are named in `without_descriptor`.
  void describe(HostSample& sample, const std::set<int>& pids, bool threads);

  /// Fills in `io_of_descendants` for these: much less than to describe them.
  void read_io(HostSample& sample, const std::set<int>& pids);

  /// Who has device files of GPUs open, among all processes. Dear: it reads every descriptor's link.
  HolderScan find_holders(const HostSample& sample) const;

 private:
  using Key = std::pair<int, std::uint64_t>;  // pid and start time
  struct Known {
    Program program = {};
    ProgramReader::Request request = {};
    std::optional<bool> listens = {};
    std::optional<bool> at_terminal = {};
    std::string name = {};
    unsigned looks = 0;
  };
  /// A process that is being described.
  struct Described {
    ProcessDetail* detail;
    Known* known;
    std::shared_ptr<const os::HostFolder> folder;
    bool read;  ///< its program is to be read
  };

  os::Access read_stat(int pid, os::Fd* kept);
  bool read_state(ProcessDetail& detail, const os::HostFolder& folder, bool threads);
  Described look_up(const HostSample& host, const ProcessBrief& brief, std::shared_ptr<const os::HostFolder> folder,
                    ProcessDetail& detail);
  bool read_programs(const std::vector<Described>& all, std::chrono::milliseconds patience);
  void forget_the_ended(const HostSample& sample);

  os::HostFolder proc_;
  std::string text_;  ///< read buffer
  /// Who looks again and again keeps the stat files open, with a quarter of the descriptors at most.
  std::map<int, os::Fd> kept_;
  const std::size_t most_kept_ = std::min<std::size_t>(os::most_descriptors() / 4, 4096);
  int lists_ = 0;
  std::map<Key, Known> known_;
  ProgramReader reader_;
};

}  // namespace drover::inline v1::health
