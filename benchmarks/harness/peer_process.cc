// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/harness/peer_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <sstream>
#include <system_error>

#include "benchmarks/harness/figure.h"

namespace bench {
namespace {

std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe2");
  return ends;
}

std::vector<double> numbers(std::istream& text) {
  std::vector<double> list;
  for (double value = 0; text >> value;) list.push_back(value);
  return list;
}

}  // namespace

std::string own_program() { return std::filesystem::read_symlink("/proc/self/exe").string(); }
std::string own_folder() { return std::filesystem::path(own_program()).parent_path().string() + "/"; }

PeerProcess::PeerProcess(const std::string& program) {
  const std::string path = own_folder() + program;
  if (access(path.c_str(), X_OK) != 0) {
    missing_ = program + " is not installed";
  } else {
    start(path);
  }
}

void PeerProcess::start(const std::string& path) {
  const std::array<int, 2> in = make_pipe();
  const std::array<int, 2> out = make_pipe();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  std::array<char*, 2> arguments{const_cast<char*>(path.c_str()), nullptr};
  const int error = posix_spawn(&pid_, path.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(in[0]);
  close(out[1]);
  if (error != 0) throw std::system_error(error, std::generic_category(), "posix_spawn");
  requests_ = fdopen(in[1], "w");
  answers_ = fdopen(out[0], "r");
}

PeerProcess::~PeerProcess() {
  if (pid_ < 0) return;
  std::fclose(requests_);
  std::fclose(answers_);
  waitpid(pid_, nullptr, 0);
}

std::vector<double> PeerProcess::ask(const std::string& request) {
  if (!missing_.empty()) throw Unavailable(missing_);
  std::fprintf(requests_, "%s\n", request.c_str());
  std::fflush(requests_);
  std::array<char, 512> line{};
  if (std::fgets(line.data(), static_cast<int>(line.size()), answers_) == nullptr) {
    throw Unavailable("the peer ended during: " + request);
  }
  std::istringstream answer(line.data());
  std::string verdict;
  answer >> verdict;
  if (verdict == "ok") return numbers(answer);
  std::string reason;
  std::getline(answer >> std::ws, reason);
  throw Unavailable(reason);
}

}  // namespace bench
