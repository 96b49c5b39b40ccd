// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>

#include "drover/wire/writer.h"

namespace drover::inline v1::detail {

extern std::uint32_t running_function;
/// Says which function this worker runs now, for the errors it throws. Worker side, one thread.
inline void set_running_function(std::uint32_t function) noexcept { running_function = function; }
/// "worker 3 (pid 123), in simulate".
std::string running_where();
void set_worker_slot(std::uint32_t slot) noexcept;

/// Ends this worker, which cannot go on, and says why in its last line: the parent shows that and starts another.
[[noreturn]] void end_worker(const char* why) noexcept;
/// Does so if the reason is that the descriptor of the pool's memory is closed (EBADF): no task would get far here.
void end_worker_without_memory(const std::exception_ptr& error) noexcept;

/// 1 in a worker, 0 in every fork of it, however that was made.
extern const std::uint32_t* worker_mark;
/// Makes the mark: this process is a worker from now on.
void mark_worker() noexcept;
[[noreturn]] void end_fork() noexcept;
/// After a task: a fork that comes out of it would go on as a second worker, with the claims and the ring of the first.
inline void end_if_forked() noexcept {
  if (*worker_mark == 0) [[unlikely]]
    end_fork();
}

/// An exception as it travels: type, message, where it was thrown, call stack.
class EncodedError {
 public:
  explicit EncodedError(const std::exception_ptr& error);
  std::span<const std::byte> bytes() const noexcept { return writer_.bytes(); }

 private:
  wire::Writer writer_;
};

}  // namespace drover::inline v1::detail
