// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "drover/wire/steps.h"

namespace drover::inline v1::wire {

/// Views look into a message, so a message begins at a multiple of this, and its parts are aligned relative to its
/// beginning.
inline constexpr std::size_t kMessageAlignment = 8;

/// Values nested deeper than this are neither written nor read: a stack overflow could not be reported.
inline constexpr int kMaxDepth = 500;

/// What messages refer to without containing it: it must live for as long as they may be read.
using Kept = std::vector<std::shared_ptr<const void>>;

/// Appends bytes to a message. It starts in memory lent by the caller, if any, and moves to memory of its own when that
/// is too small, so nothing is ever encoded twice.
///
/// One thread at a time. The lent memory must outlive the writer and be aligned to kMessageAlignment. Throws
/// std::bad_alloc.
class Writer {
 public:
  Writer() noexcept = default;
  explicit Writer(std::span<std::byte> lent) noexcept
      : begin_(lent.data()), at_(lent.data()), end_(lent.data() + lent.size()) {}
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// What was written so far; valid until the next write.
  std::span<const std::byte> bytes() const noexcept { return {begin_, at_}; }
  std::size_t size() const noexcept { return static_cast<std::size_t>(at_ - begin_); }

  /// Whether the message outgrew the lent memory, which then holds nothing of use.
  bool spilled() const noexcept { return owned_ != nullptr; }

  /// Forgets what was written and keeps the memory it stands in.
  void clear() noexcept { at_ = begin_; }

  /// Makes room for `size` more bytes, to be filled by the caller before the next call.
  std::byte* extend(std::size_t size) {
    if (size > static_cast<std::size_t>(end_ - at_)) grow(size);
    std::byte* place = at_;
    at_ += size;
    return place;
  }

  void write(const void* data, std::size_t size) {
    if (size != 0) std::memcpy(extend(size), data, size);
  }

  template <class T>
  requires std::is_arithmetic_v<T>
  void put(T value) { write(&value, sizeof value); }

  /// Fills up with zeros to a multiple of `alignment`, a power of two.
  void align(std::size_t alignment) {
    const std::size_t gap = (alignment - size() % alignment) % alignment;
    if (gap != 0) std::memset(extend(gap), 0, gap);
  }

  /// The user of this writer keeps what the message refers to in `kept`, until it has been read for the last time.
  void keep_in(Kept* kept) noexcept { kept_ = kept; }

  /// For codecs of handles. False when nobody keeps the owner: then the codec itself must see to it that it lives.
  bool keep(std::shared_ptr<const void> owner) {
    if (kept_ == nullptr) return false;
    kept_->push_back(std::move(owner));
    return true;
  }

  /// The user of this writer does what is in `steps` if the message is not sent after all.
  void take_back_by(Steps* steps) noexcept { unsent_ = steps; }

  /// For codecs that have counted what they sent: how that is undone. Without a user who asks for it, it is not.
  template <class Undo>
  void if_not_sent(const Undo& undo) {
    if (unsent_ == nullptr) return;
    try {
      unsent_->add(undo);
    } catch (...) {
      undo();
      throw;
    }
  }

  /// Brackets one level of nesting. Throws InvalidArgument, naming the type, beyond kMaxDepth (a cycle of shared_ptr
  /// gets here).
  void enter(std::string_view type) {
    if (++depth_ > kMaxDepth) refuse_depth(type);
  }
  void leave() noexcept { --depth_; }

 private:
  void grow(std::size_t size);
  [[noreturn]] static void refuse_depth(std::string_view type);

  std::byte* begin_ = nullptr;
  std::byte* at_ = nullptr;
  std::byte* end_ = nullptr;
  int depth_ = 0;
  Kept* kept_ = nullptr;
  Steps* unsent_ = nullptr;
  std::unique_ptr<std::byte[]> owned_;
};

}  // namespace drover::inline v1::wire
