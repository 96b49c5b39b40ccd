// SPDX-License-Identifier: Apache-2.0
// Alone in its object file, because it replaces a function of the C++ runtime in every program that links it.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>
#include <typeinfo>

#include "drover/os/throw_trace.h"

namespace {

using ThrowFunction = void (*)(void*, std::type_info*, void (*)(void*));

/// Nothing can be thrown without it, so there is nobody to tell but the terminal.
[[noreturn]] void die_without_throw() noexcept {
  static constexpr std::string_view kText =
      "drover: the true __cxa_throw was not found; build without DROVER_THROW_TRACE or without -static-libstdc++\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kText.data(), kText.size());
  std::abort();
}

ThrowFunction true_throw() noexcept {
  static const auto found = reinterpret_cast<ThrowFunction>(::dlsym(RTLD_NEXT, "__cxa_throw"));
  if (found == nullptr) die_without_throw();
  return found;
}

}  // namespace

namespace drover::inline v1::os::detail {

bool prepare_throw_hook() noexcept { return true_throw() != nullptr; }

}  // namespace drover::inline v1::os::detail

/// What the compiler calls for `throw` (Itanium C++ ABI 2.4.3). The dynamic linker takes this one before libstdc++'s,
/// for throws inside shared libraries as well.
extern "C" [[noreturn]] __attribute__((visibility("default"))) void __cxa_throw(void* thrown, std::type_info* type,
                                                                                void (*destroy)(void*)) {
  drover::os::detail::record_throw(thrown, __builtin_return_address(0));
  true_throw()(thrown, type, destroy);
  die_without_throw();  // never reached: throwing does not return
}
