// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <exception>
#include <span>
#include <string>

#include "drover/wire/writer.h"

namespace drover::inline v1::detail {

/// Says which function this worker runs now, for the errors it throws. Worker side, one thread.
void set_running_function(std::uint32_t function) noexcept;
/// "worker 3 (pid 123), in simulate".
std::string running_where();
void set_worker_slot(std::uint32_t slot) noexcept;

/// An exception as it travels: type, message, where it was thrown, call stack.
class EncodedError {
 public:
  explicit EncodedError(const std::exception_ptr& error);
  std::span<const std::byte> bytes() const noexcept { return writer_.bytes(); }

 private:
  wire::Writer writer_;
};

}  // namespace drover::inline v1::detail
