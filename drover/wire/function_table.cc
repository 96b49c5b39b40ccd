// SPDX-License-Identifier: Apache-2.0
#include "drover/wire/function_table.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "drover/base/errors.h"
#include "drover/base/hash.h"

namespace drover::inline v1::wire {
namespace {

using base::Hash;

/// What is the same in every process of the program, wherever its modules were loaded.
struct Place {
  std::uint64_t text_hash;
  std::string_view text;
  std::uint64_t module;
  std::uintptr_t address;

  auto key() const { return std::tie(text_hash, text, module, address); }
};

std::uint64_t id_of(const ModuleId& module) noexcept { return Hash().add(module.build_id).value(); }

Place place_of(std::string_view text, Thunk thunk, std::span<const ModuleId> modules) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(thunk);
  const std::uint64_t text_hash = Hash().add(text).value();
  for (const ModuleId& module : modules) {
    if (module.begin <= address && address < module.end)
      return {text_hash, text, id_of(module), address - module.begin};
  }
  return {text_hash, text, 0, address};
}

}  // namespace

FunctionEntry::FunctionEntry(FunctionTable& table, const char* text, Thunk thunk) noexcept
    : text_(text), thunk_(thunk), table_(&table) {
  table.join(*this);
}

void FunctionEntry::refuse() const {
  const std::string name(function_name(text_));
  if (!table_->frozen()) {
    throw InvalidArgument("cannot call " + name +
                          " in another process before drover::init(argc, argv), first in main()");
  }
  throw InvalidArgument(
      "cannot call " + name +
      " in another process: it comes from a library loaded after drover::init, which the workers do not know");
}

void FunctionTable::join(FunctionEntry& entry) noexcept {
  if (frozen()) return;
  entry.next_ = first_.load(std::memory_order_relaxed);
  while (!first_.compare_exchange_weak(entry.next_, &entry, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

void FunctionTable::freeze(std::span<const ModuleId> modules) {
  if (frozen()) return;
  std::vector<std::pair<Place, FunctionEntry*>> found;
  for (FunctionEntry* entry = first_.load(std::memory_order_acquire); entry != nullptr; entry = entry->next_) {
    found.emplace_back(place_of(entry->text_, entry->thunk_, modules), entry);
  }
  std::ranges::sort(found, [](const auto& a, const auto& b) { return a.first.key() < b.first.key(); });

  Hash digest;
  for (const ModuleId& module : modules) digest.add(module.build_id.size()).add(module.build_id);
  entries_.reserve(found.size());
  for (const auto& [place, entry] : found) {
    entry->index_ = static_cast<std::uint32_t>(entries_.size());
    entries_.push_back(entry);
    digest.add(place.text.size()).add(place.text);  // equal texts follow each other, so the order covers their ordinals
  }
  digest_ = digest.value();
  frozen_.store(true, std::memory_order_release);
}

const FunctionEntry& FunctionTable::entry(std::uint32_t index) const {
  if (index >= entries_.size()) {
    throw Incompatible("function " + std::to_string(index) + " is not in this program, which has " +
                       std::to_string(entries_.size()));
  }
  return *entries_[index];
}

FunctionTable& program_functions() noexcept {
  static auto& table = *new FunctionTable;  // never destroyed: static objects may use it until the very end
  return table;
}

std::string_view function_name(std::string_view text) noexcept {
  constexpr std::string_view kBefore = " F = ";
  const auto start = text.rfind(kBefore);
  if (start == text.npos || !text.ends_with(']')) return text;
  std::string_view name = text.substr(start + kBefore.size());
  name.remove_suffix(1);
  if (name.starts_with('&')) name.remove_prefix(1);
  return name;
}

}  // namespace drover::inline v1::wire
