// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include "drover/wire/steps.h"
#include "drover/wire/writer.h"

namespace drover::inline v1::wire {

/// Takes a message apart. The bytes come from another process and are not trusted: whatever they say, a call either
/// returns or throws Incompatible with the name of the type that could not be read.
///
/// One thread at a time. Borrows the message, which must be aligned to kMessageAlignment and outlive the reader and all
/// views.
class Reader {
 public:
  /// Throws InvalidArgument for a message that is not aligned.
  explicit Reader(std::span<const std::byte> message) : begin_(message.data()), left_(message) {
    if (reinterpret_cast<std::uintptr_t>(begin_) % kMessageAlignment != 0) refuse_alignment();
  }

  std::size_t remaining() const noexcept { return left_.size(); }
  std::size_t position() const noexcept { return static_cast<std::size_t>(left_.data() - begin_); }

  /// The next `size` bytes of the message.
  std::span<const std::byte> take(std::size_t size, std::string_view type) {
    if (size > left_.size()) fail(type, "the message ends too early");
    const auto taken = left_.first(size);
    left_ = left_.subspan(size);
    return taken;
  }

  template <class T>
  requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) T get(std::string_view type) {
    T value;
    std::memcpy(&value, take(sizeof value, type).data(), sizeof value);
    return value;
  }

  /// A number of items that take at least `item_size` (> 0) bytes each: never more than the rest of the message can
  /// hold.
  std::size_t count(std::size_t item_size, std::string_view type) {
    const auto items = get<std::uint64_t>(type);
    if (items > left_.size() / item_size) fail(type, "its length does not fit the message");
    return static_cast<std::size_t>(items);
  }

  /// Skips what Writer::align wrote.
  void align(std::size_t alignment, std::string_view type) {
    take((alignment - position() % alignment) % alignment, type);
  }

  /// The user of this reader does what is in `steps` when the message is taken for good: until then it may be read
  /// again.
  void collect_in(Steps* steps) noexcept { steps_ = steps; }

  /// For codecs that count what has arrived. Done at once when nobody collects it.
  template <class Step>
  void when_taken(const Step& step) {
    if (steps_ == nullptr) return step();
    steps_->add(step);
  }

  /// Brackets one level of nesting, up to kMaxDepth.
  void enter(std::string_view type) {
    if (++depth_ > kMaxDepth) fail(type, "it is nested too deep");
  }
  void leave() noexcept { --depth_; }

  /// Throws Incompatible: "cannot read a TYPE from another process: PROBLEM (byte N of the message)".
  [[noreturn]] void fail(std::string_view type, std::string_view problem) const;

 private:
  [[noreturn]] static void refuse_alignment();

  const std::byte* begin_;
  std::span<const std::byte> left_;
  int depth_ = 0;
  Steps* steps_ = nullptr;
};

}  // namespace drover::inline v1::wire
