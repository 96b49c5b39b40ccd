// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/peers/two_processes.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include "benchmarks/harness/measure.h"

namespace bench {
namespace {

constexpr std::size_t kSharedBytes = std::size_t{64} << 20;

[[noreturn]] void be_the_other(std::size_t cpu, const std::function<void()>& other) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  pin(0, cpu);
  other();
  _exit(0);
}

}  // namespace

void StartLine::wait() {
  arrived_.fetch_add(1);
  while (arrived_.load() < 2) sched_yield();
}

void in_two_processes(Placement placement, const std::function<void()>& mine, const std::function<void()>& other) {
  const std::size_t other_cpu = placement == Placement::kTwoCpus ? 1 : 0;
  if (allowed_cpus().size() <= other_cpu) throw std::runtime_error("needs two CPUs");
  const pid_t pid = fork();
  if (pid < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid == 0) be_the_other(other_cpu, other);
  {
    Pinned here(0);
    mine();
  }
  int status = 0;
  if (waitpid(pid, &status, 0) != pid || status != 0) throw std::runtime_error("the other process failed");
}

void* shared_memory(std::size_t bytes) {
  static void* const memory = mmap(nullptr, kSharedBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || bytes > kSharedBytes) throw std::runtime_error("not enough shared memory");
  std::memset(memory, 0, bytes);
  return memory;
}

void fault_in(void* memory, std::size_t bytes) {
  auto* byte = static_cast<volatile char*>(memory);
  for (std::size_t at = 0; at < bytes; at += 4096) byte[at] = byte[at];
}

}  // namespace bench
