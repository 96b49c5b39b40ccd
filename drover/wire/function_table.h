// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Functions are known to other processes by their index in a table that all processes of one program build alike.
namespace drover::inline v1::wire {

/// Runs a function in a worker; `call` is whatever caller and thunk agree on.
using Thunk = void (*)(void* call);

/// A program file or library as it is loaded here. What it refers to must live until the table is frozen.
struct ModuleId {
  std::uintptr_t begin = 0;  ///< the addresses of its code and data
  std::uintptr_t end = 0;
  std::span<const std::byte> build_id;
};

class FunctionTable;

/// The place of one function in a table. Lives as long as the table: a static object of the program.
class FunctionEntry {
 public:
  /// Joins the table, or stays outside if the table is frozen already. `text` must live as long as the entry.
  FunctionEntry(FunctionTable& table, const char* text, Thunk thunk) noexcept;
  FunctionEntry(const FunctionEntry&) = delete;
  FunctionEntry& operator=(const FunctionEntry&) = delete;

  /// The index by which other processes know the function. Throws InvalidArgument, naming the function, when the table
  /// was not frozen yet or the entry came too late.
  std::uint32_t index() const {
    if (index_ == kNone) refuse();
    return index_;
  }

 private:
  friend class FunctionTable;
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  [[noreturn]] void refuse() const;

  const char* text_;
  Thunk thunk_;
  FunctionTable* table_;
  FunctionEntry* next_ = nullptr;
  std::uint32_t index_ = kNone;
};

/// Collects entries while the program's static objects are made, then gives each its index.
///
/// Threads: entries may join from several threads; everything else only after freeze(), and then from any.
/// Processes: equal digests mean that an index names the same function in both.
class FunctionTable {
 public:
  constexpr FunctionTable() noexcept = default;
  FunctionTable(const FunctionTable&) = delete;
  FunctionTable& operator=(const FunctionTable&) = delete;

  /// Sorts the entries and numbers them. The order depends on texts, modules and places inside a module, not on
  /// addresses or the order of joining. Called once, by init; a second call changes nothing. Throws std::bad_alloc.
  void freeze(std::span<const ModuleId> modules);

  bool frozen() const noexcept { return frozen_.load(std::memory_order_acquire); }

  std::size_t size() const noexcept { return entries_.size(); }

  /// Covers the texts of all functions, their order, and the build ids of all modules given to freeze().
  std::uint64_t digest() const noexcept { return digest_; }

  /// Throws Incompatible for an index that is not in the table.
  Thunk thunk(std::uint32_t index) const { return entry(index).thunk_; }

  /// The compiler's text of the function and its type. Throws Incompatible.
  std::string_view text(std::uint32_t index) const { return entry(index).text_; }

 private:
  friend class FunctionEntry;

  const FunctionEntry& entry(std::uint32_t index) const;
  void join(FunctionEntry& entry) noexcept;

  std::atomic<FunctionEntry*> first_ = nullptr;
  std::atomic<bool> frozen_ = false;
  std::vector<const FunctionEntry*> entries_;
  std::uint64_t digest_ = 0;
};

/// The table of this program.
FunctionTable& program_functions() noexcept;

/// The name of a function out of a text of function_text(), such as `report_mean` or `demo::simulate`.
std::string_view function_name(std::string_view text) noexcept;

/// The compiler's text for a function. It contains the type, which tells overloads apart; functions that still have
/// equal texts (static ones in two files) are told apart by their place in the program.
template <class Type, Type F>
consteval const char* function_text() {
  return __PRETTY_FUNCTION__;
}

/// Makes `F`, run by `T`, known to all processes of the program by naming `Registered<F, T>::index` anywhere, also in
/// code that never runs.
template <auto F, Thunk T>
struct Registered {
  /// As FunctionEntry::index.
  static std::uint32_t index() { return entry.index(); }

  inline static FunctionEntry entry{program_functions(), function_text<decltype(F), F>(), T};
};

}  // namespace drover::inline v1::wire
