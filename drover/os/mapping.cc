// SPDX-License-Identifier: Apache-2.0
#include "drover/os/mapping.h"

#include <sys/mman.h>

namespace drover::inline v1::os {

Mapping::Mapping(const Fd& file, std::uint64_t offset, std::size_t length, bool writable) {
  const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  void* const address = ::mmap(nullptr, length, protection, MAP_SHARED, file.get(), static_cast<off_t>(offset));
  if (address == MAP_FAILED) throw_errno("mmap of shared memory");
  data_ = {static_cast<std::byte*>(address), length};
}

Mapping::Mapping(const MemoryFile& file, std::uint64_t offset, std::size_t length)
    : Mapping((file.require_open(), file.fd()), offset, length, true) {}

Mapping::~Mapping() {
  if (!data_.empty()) ::munmap(data_.data(), data_.size());
}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  return *this;
}

}  // namespace drover::inline v1::os
