// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

namespace drover::inline v1 {

enum class LogLevel { kInfo, kWarning, kError };

using LogFunction = std::function<void(LogLevel, std::string_view)>;

/// Sets the one callback through which the library tells what no exception can carry (a worker was replaced, output was
/// dropped). Without it the library is silent. The callback may be called from the service thread, one call at a time;
/// it must not throw. Thread-safe. Belongs to this process: workers have their own.
void set_log(LogFunction function);

/// Calls the callback, if there is one. Thread-safe; never throws.
void log(LogLevel level, std::string_view message) noexcept;

}  // namespace drover::inline v1
