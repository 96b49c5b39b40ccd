// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

/// Where an exception was thrown. The hook that sees throws is an object file of its own (throw_hook.cc, CMake option
/// DROVER_THROW_TRACE); without it all of this links and answers "no stack". It replaces __cxa_throw of a shared
/// libstdc++ and goes on to it, or to a sanitizer's; programs linked with -static-libstdc++ need the option off.
namespace drover::inline v1::os {

/// While one lives, the stack of each `throw` in this thread is kept (addresses only, nothing is allocated). Costs a
/// few nanoseconds to make, and about 0.1 µs for each frame of a throw. Scopes nest; the outermost forgets what earlier
/// ones kept. Belongs to the thread that made it; destroyed in reverse order, as local variables are.
class ThrowTraceScope {
 public:
  ThrowTraceScope() noexcept;
  ~ThrowTraceScope();
  ThrowTraceScope(const ThrowTraceScope&) = delete;
  ThrowTraceScope& operator=(const ThrowTraceScope&) = delete;

 private:
  std::uintptr_t outer_entry_;
  int outer_uncaught_;
};

/// The stack at the throw of the exception being handled (inside a catch block), else at the last throw in this thread,
/// under the last outermost scope, which may have ended. One frame a line, `#0 ns::f(int)+0x1f (prog+0x1234)`, the
/// throw site first, down to the function that holds the scope. A function that the program does not export (link with
/// -rdynamic) has no name; `addr2line -Cfe prog 0x1234` finds it. Empty when no hook is linked or the throw was not
/// seen: another thread's, or made by std::rethrow_exception. Throws std::bad_alloc.
std::string last_throw_trace();

/// Whether throw_hook.cc is part of this program.
bool throw_trace_available() noexcept;

namespace detail {

/// Called by the hook. `throw_site` is the return address into the code that throws.
void record_throw(const void* thrown, const void* throw_site) noexcept;

/// Lives in throw_hook.cc; a reference to it pulls the hook out of a static library. Finds the true __cxa_throw, so
/// that no throw has to. Always true.
bool prepare_throw_hook() noexcept;

}  // namespace detail
}  // namespace drover::inline v1::os
