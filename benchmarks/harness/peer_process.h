// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <string>
#include <vector>

namespace bench {

/// A floor or peer in a process of its own: a program beside this one that reads a workload and its numbers from stdin,
/// a line each, runs it, and answers with numbers (peers/peer_server.h is the other side). It blocks in read() while
/// others are measured and ends when this process does. One thread at a time. Owns the process and two pipe ends.
class PeerProcess {
 public:
  /// Starts `program` from this program's own folder. When it is not there, every ask() throws Unavailable.
  explicit PeerProcess(const std::string& program);
  ~PeerProcess();
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  /// Runs one request, as "counter 1000000". Throws Unavailable with the reason when the peer cannot do it.
  std::vector<double> ask(const std::string& request);

 private:
  void start(const std::string& path);

  std::string missing_;
  pid_t pid_ = -1;
  std::FILE* requests_ = nullptr;
  std::FILE* answers_ = nullptr;
};

/// The folder of this program, with a slash at the end.
std::string own_folder();
/// The path of this program.
std::string own_program();

}  // namespace bench
