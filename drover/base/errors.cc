// SPDX-License-Identifier: Apache-2.0
#include "drover/base/errors.h"

#include <csignal>
#include <utility>

namespace drover::inline v1 {
namespace {

std::string interrupted_text(int signal) {
  return std::string("interrupted by ") + (signal == SIGINT ? "SIGINT" : signal == SIGTERM ? "SIGTERM" : "a signal");
}

std::string remote_text(const RemoteTrace& trace) {
  std::string text = trace.type_name();
  if (!trace.message().empty()) text += ": " + trace.message();
  if (!trace.where().empty()) text += " (thrown in " + trace.where() + ")";
  return text;
}

}  // namespace

Interrupted::Interrupted(int signal) : Error(interrupted_text(signal)), signal_(signal) {}

RemoteTrace::RemoteTrace(std::string type_name, std::string message, std::string where, std::string stack)
    : type_name_(std::move(type_name)),
      message_(std::move(message)),
      where_(std::move(where)),
      stack_(std::move(stack)) {}

RemoteTrace::~RemoteTrace() = default;

RemoteError::RemoteError(const RemoteTrace& trace) : Error(remote_text(trace)), RemoteTrace(trace) {}

const RemoteTrace* remote_trace(const std::exception& error) noexcept {
  return dynamic_cast<const RemoteTrace*>(&error);
}

}  // namespace drover::inline v1
