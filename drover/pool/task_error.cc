// SPDX-License-Identifier: Apache-2.0
#include "drover/pool/task_error.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "drover/os/fork_count.h"
#include "drover/os/self.h"
#include "drover/os/throw_trace.h"
#include "drover/wire/function_table.h"
#include "drover/wire/remote_error.h"

namespace drover::inline v1::detail {
namespace {

std::uint32_t worker_slot = 0;  // of this process: it is one worker of one pool

constexpr std::uint32_t kNoWorker = 1;

}  // namespace

constinit const std::uint32_t* worker_mark = &kNoWorker;
std::uint32_t running_function = 0;

void set_worker_slot(std::uint32_t slot) noexcept { worker_slot = slot; }

std::string running_where() {
  return "worker " + std::to_string(worker_slot) + " (pid " + std::to_string(os::current_pid()) + "), in " +
         std::string(wire::function_name(wire::program_functions().text(running_function)));
}

void end_worker(const char* why) noexcept {
  std::fprintf(stderr, "drover: this worker ends: %s\n", why);
  std::abort();
}

void end_worker_without_memory(const std::exception_ptr& error) noexcept {
  try {
    std::rethrow_exception(error);
  } catch (const std::system_error& failure) {
    if (failure.code().value() == EBADF) end_worker(failure.what());
  } catch (...) {  // the task's own
  }
}

void mark_worker() noexcept {
  static const os::ForkMark mark;
  worker_mark = mark.word();
}

void end_fork() noexcept {
  const std::string_view name = wire::function_name(wire::program_functions().text(running_function));
  std::fprintf(stderr,
               "drover: a fork made in the task %.*s came out of it; it ends here, or it would be a second worker (end "
               "forks by _exit or exec)\n",
               static_cast<int>(name.size()), name.data());
  os::exit_now(1);
}

EncodedError::EncodedError(const std::exception_ptr& error) {
  wire::encode_exception(writer_, error, running_where(), os::last_throw_trace());
}

}  // namespace drover::inline v1::detail
