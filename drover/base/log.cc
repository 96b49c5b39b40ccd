// SPDX-License-Identifier: Apache-2.0
#include "drover/base/log.h"

#include <mutex>
#include <utility>

namespace drover::inline v1 {
namespace {

struct Sink {
  std::mutex mutex;
  LogFunction function;
};

Sink& sink() {
  static Sink* const instance = new Sink;  // never destroyed: the service thread may log while statics are torn down
  return *instance;
}

}  // namespace

void set_log(LogFunction function) {
  const std::scoped_lock lock(sink().mutex);
  sink().function = std::move(function);
}

void log(LogLevel level, std::string_view message) noexcept {
  try {
    const std::scoped_lock lock(sink().mutex);
    if (sink().function) sink().function(level, message);
  } catch (...) {  // NOLINT(bugprone-empty-catch): a log callback that throws must not end the service thread
  }
}

}  // namespace drover::inline v1
