// SPDX-License-Identifier: Apache-2.0
#include "drover/health/nvml/library.h"

#include <array>

namespace drover::inline v1::health::nvml {
namespace {

using NoArguments = int (*)();
using GetText = int (*)(char*, unsigned);
using GetInt = int (*)(int*);
using GetUnsigned = int (*)(unsigned*);
using GetHandle = int (*)(unsigned, Device*);

os::DynamicLibrary load() {
  os::DynamicLibrary versioned_name("libnvidia-ml.so.1");
  if (versioned_name.loaded()) return versioned_name;
  os::DynamicLibrary plain_name("libnvidia-ml.so");
  return plain_name.loaded() ? std::move(plain_name) : std::move(versioned_name);
}

}  // namespace

Library::Library() : library_(load()) {}

int Library::init(Current& current) const {
  const int code = call(current, "nvmlInit_v2", NoArguments());
  return code == kFunctionNotFound ? call(current, "nvmlInit", NoArguments()) : code;
}

std::string Library::driver_version() const {
  std::array<char, 81> text{};
  Current ignored{nullptr};
  if (call(ignored, "nvmlSystemGetDriverVersion", GetText(), text.data(), 80U) != kSuccess) return {};
  return text.data();
}

int Library::cuda_version() const {
  int version = 0;
  Current ignored{nullptr};
  return call(ignored, "nvmlSystemGetCudaDriverVersion_v2", GetInt(), &version) == kSuccess ? version : 0;
}

int Library::count(unsigned& devices) const {
  Current ignored{nullptr};
  const int code = call(ignored, "nvmlDeviceGetCount_v2", GetUnsigned(), &devices);
  return code == kFunctionNotFound ? call(ignored, "nvmlDeviceGetCount", GetUnsigned(), &devices) : code;
}

int Library::handle(unsigned index, Device& device) const {
  Current ignored{nullptr};
  const int code = call(ignored, "nvmlDeviceGetHandleByIndex_v2", GetHandle(), index, &device);
  return code == kFunctionNotFound ? call(ignored, "nvmlDeviceGetHandleByIndex", GetHandle(), index, &device) : code;
}

}  // namespace drover::inline v1::health::nvml
