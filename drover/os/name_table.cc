// SPDX-License-Identifier: Apache-2.0
#include "drover/os/name_table.h"

#include <sys/sysmacros.h>

#include <algorithm>
#include <atomic>
#include <cstdio>

#include "drover/base/errors.h"
#include "drover/os/fault_point.h"

namespace drover::inline v1::os {
namespace {

MemoryFile create_table() {
  MemoryFile file = MemoryFile::create("drover-names");
  file.grow_to(sizeof(guardian::NameTable));  // pages come with the names
  return file;
}

template <class T>
void store(T& place, T value) noexcept {
  std::atomic_ref(place).store(value, std::memory_order_release);
}

template <std::size_t N>
void store_text(char (&place)[N], std::string_view text) noexcept {
  std::fill(std::copy_n(text.data(), std::min(text.size(), N - 1), place), place + N, '\0');
}

}  // namespace

std::string hidden_name(const FileId& file) {
  char text[32];
  std::snprintf(text, sizeof text, "%s%016llx", guardian::kHiddenPrefix, static_cast<unsigned long long>(file.inode));
  return text;
}

NameTable::NameTable() : file_(create_table()), mapping_(file_, 0, sizeof(guardian::NameTable)) {}

void NameTable::kill_guardian_at(long point) noexcept { store(table().dies_at, static_cast<std::uint32_t>(point + 1)); }

NameTable::Slot NameTable::add(std::string_view name, const FileId& file) {
  Slot slot = table().used;
  if (!free_.empty()) {
    slot = free_.back();
    free_.pop_back();
  } else if (slot == guardian::kEntries) {
    throw Error("a process can have " + std::to_string(guardian::kEntries) + " blocks with a name, and has that many");
  } else {
    const auto* const place = reinterpret_cast<const std::byte*>(&table().entries[slot]);
    file_.reserve(static_cast<std::uint64_t>(place - mapping_.data()), sizeof(guardian::NameEntry));
    if (free_.capacity() <= slot) free_.reserve(2 * (std::size_t{slot} + 1));  // so that remove cannot fail
    store(table().used, slot + 1);
  }
  guardian::NameEntry& entry = table().entries[slot];
  entry.device_major = major(file.device);
  entry.device_minor = minor(file.device);
  store_text(entry.name, name);
  store_text(entry.hidden, hidden_name(file));
  store(entry.hash, guardian::hash_name(entry.name));
  store(entry.inode, file.inode);
  ++count_;
  fault_point();
  return slot;
}

void NameTable::set_live(Slot slot, bool live) noexcept {
  store(table().entries[slot].live, std::uint32_t{live});
  fault_point();
}

void NameTable::remove(Slot slot) noexcept {
  store(table().entries[slot].inode, std::uint64_t{0});
  fault_point();
  free_.push_back(slot);
  --count_;
}

}  // namespace drover::inline v1::os
