// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/harness/slots.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <system_error>

#include "benchmarks/harness/measure.h"

namespace bench {
namespace {

constexpr const char* kVariable = "DROVER_BENCH_SLOTS";
constexpr std::size_t kBytes = kSlots * sizeof(double);

[[noreturn]] void fail(const char* call) { throw std::system_error(errno, std::generic_category(), call); }

double* map_slots() {
  const char* path = std::getenv(kVariable);
  if (path == nullptr) throw std::logic_error("no slots: create_slots() was not called");
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) fail("open slots");
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
  if (memory == MAP_FAILED) fail("mmap slots");
  close(fd);
  return static_cast<double*>(memory);
}

}  // namespace

void create_slots() {
  const int fd = memfd_create("drover-bench", MFD_CLOEXEC);
  if (fd < 0) fail("memfd_create");
  if (ftruncate(fd, static_cast<off_t>(kBytes)) != 0) fail("ftruncate");
  const std::string path = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(fd);
  setenv(kVariable, path.c_str(), 1);
}

double* slots() {
  static double* const memory = map_slots();
  return memory;
}

double await_flag(std::size_t index) {
  for (const std::int64_t begin = now_ns(); now_ns() - begin < 10'000'000'000; pause_for_us(100)) {
    if (const double value = flag(index).load(); value != 0) return value;
  }
  throw std::runtime_error("a task did not begin within 10 s");
}

}  // namespace bench
