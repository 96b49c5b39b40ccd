// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

namespace drover::inline v1::os {

/// A shared library loaded at run time, its symbols seen by nobody else (RTLD_LOCAL). One thread at a time; looking up
/// symbols may run concurrently. Owns the library: what came from it must not be used after the destructor.
class DynamicLibrary {
 public:
  /// Loads `name` as dlopen does (a name without a slash is searched for). Never throws for a library that cannot be
  /// loaded: it is then empty and `error()` says why, in the loader's words.
  explicit DynamicLibrary(const std::string& name);

  bool loaded() const noexcept { return handle_ != nullptr; }
  const std::string& error() const noexcept { return error_; }

  /// The address of a symbol, or nullptr.
  void* address(const char* symbol) const noexcept;

  /// The function `symbol`, or nullptr. That it has type F is the caller's knowledge.
  template <class F>
  F* function(const char* symbol) const noexcept {
    return reinterpret_cast<F*>(address(symbol));
  }

 private:
  struct Close {
    void operator()(void* handle) const noexcept;
  };
  std::unique_ptr<void, Close> handle_;
  std::string error_;
};

}  // namespace drover::inline v1::os
