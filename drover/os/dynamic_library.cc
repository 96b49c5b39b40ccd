// SPDX-License-Identifier: Apache-2.0
#include "drover/os/dynamic_library.h"

#include <dlfcn.h>

namespace drover::inline v1::os {

DynamicLibrary::DynamicLibrary(const std::string& name) : handle_(::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_) return;
  const char* const why = ::dlerror();
  error_ = why != nullptr ? why : "dlopen gave no reason";
}

void* DynamicLibrary::address(const char* symbol) const noexcept {
  return handle_ ? ::dlsym(handle_.get(), symbol) : nullptr;
}

void DynamicLibrary::Close::operator()(void* handle) const noexcept { ::dlclose(handle); }

}  // namespace drover::inline v1::os
