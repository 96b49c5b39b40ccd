// SPDX-License-Identifier: Apache-2.0
#include "harness/hanging_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

namespace {

constexpr const char* kEnding = "DROVER_TEST_HANGS_AT";
constexpr const char* kFifo = "DROVER_TEST_HANGS_IN";

std::string path_of(int folder, const char* name) {
  if (name[0] == '/' || folder == AT_FDCWD) return name;
  char path[4096];
  const ssize_t size = readlink(("/proc/self/fd/" + std::to_string(folder)).c_str(), path, sizeof path);
  return size > 0 ? std::string(path, static_cast<std::size_t>(size)) + "/" + name : std::string(name);
}

int real_openat(int folder, const char* name, int flags, unsigned mode) {
  return static_cast<int>(syscall(SYS_openat, folder, name, flags, mode));
}

unsigned mode_of(int flags, va_list rest) { return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, unsigned) : 0; }

int open_or_hang(int folder, const char* name, int flags, unsigned mode) {
  const char* const ending = std::getenv(kEnding);
  if (ending != nullptr && path_of(folder, name).ends_with(ending)) {
    // A FIFO opens when somebody writes.
    const int fifo = real_openat(AT_FDCWD, std::getenv(kFifo), O_RDONLY | O_CLOEXEC, 0);
    close(fifo);
  }
  return real_openat(folder, name, flags, mode);
}

}  // namespace

/// In place of the C library's: this program's own definitions come first.
extern "C" int openat(int folder, const char* name, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const unsigned mode = mode_of(flags, rest);
  va_end(rest);
  return open_or_hang(folder, name, flags, mode);
}

extern "C" int open(const char* name, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const unsigned mode = mode_of(flags, rest);
  va_end(rest);
  return open_or_hang(AT_FDCWD, name, flags, mode);
}

namespace drover_test {

HangingFile::HangingFile(const std::string& ending) {
  char folder[] = "/tmp/drover-hang-XXXXXX";
  if (mkdtemp(folder) == nullptr) throw std::runtime_error("mkdtemp failed");
  fifo_ = std::string(folder) + "/fifo";
  if (mkfifo(fifo_.c_str(), 0600) != 0) throw std::runtime_error("mkfifo failed");
  setenv(kFifo, fifo_.c_str(), 1);
  setenv(kEnding, ending.c_str(), 1);
}

HangingFile::~HangingFile() {
  release();
  unsetenv(kEnding);
  unsetenv(kFifo);
  close(writer_);
  unlink(fifo_.c_str());
  rmdir(fifo_.substr(0, fifo_.rfind('/')).c_str());
}

void HangingFile::release() {
  if (writer_ < 0) writer_ = open(fifo_.c_str(), O_RDWR | O_CLOEXEC);
}

}  // namespace drover_test
