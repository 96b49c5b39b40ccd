// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "drover/sync/byte_channel.h"

/// One record on its way into a channel, or out of it. Both live in one thread, for the time of one call.
namespace drover::inline v1::sync {

/// The first unit of each record.
struct RecordHead {
  enum Kind : std::uint32_t {
    kPad = 0x4452'0000,  ///< nothing up to the end of the ring
    kWhole,
    kFirst,  ///< of a streamed record
    kMore,
    kLast,
  };
  std::uint32_t size = 0;  ///< bytes that follow
  std::uint32_t kind = 0;

  /// Units of a record with so many bytes.
  static constexpr std::uint32_t units(std::size_t size) noexcept {
    return 1 + static_cast<std::uint32_t>((size + ByteChannel::kUnit - 1) / ByteChannel::kUnit);
  }
};
static_assert(sizeof(RecordHead) == ByteChannel::kUnit);

/// Holds the producers' lock from a begin that gives kDone to commit, or to its end. Nothing of the record is visible
/// before commit, so a producer that dies, or gives up, leaves nothing.
class ChannelWrite {
 public:
  ChannelWrite(ByteChannel& channel, const Patience& patience) noexcept
      : channel_(channel), header_(*channel.header_), patience_(patience) {}
  ~ChannelWrite() { release(); }
  ChannelWrite(const ChannelWrite&) = delete;
  ChannelWrite& operator=(const ChannelWrite&) = delete;

  /// Waits for room for a record of `size` bytes. kTooLarge beyond largest_whole(): to be streamed.
  ChannelResult begin(std::size_t size) noexcept {
    if (size > channel_.largest_whole()) return ChannelResult::kTooLarge;
    const std::uint32_t units = RecordHead::units(size);
    if (is_locked(header_.producers.try_lock())) [[likely]] {
      locked_ = true;
      head_ = Cursor::from(header_.head.load(std::memory_order_relaxed));
      tail_ = Cursor::from(header_.tail_seen.load(std::memory_order_relaxed));
      if (channel_.open() && channel_.fits(head_, tail_, units, 1)) [[likely]]
        return take_room(units);
    }
    return begin_slowly(units, 1);
  }
  /// Takes the room that there is at this moment in one piece, up to largest_whole(), be it little or nothing.
  ChannelResult begin_with_what_is_there() noexcept;

  /// What begin has given: at least `size` bytes, aligned to ByteChannel::kUnit.
  std::span<std::byte> room() const noexcept { return room_; }

  /// Adds the record that stands in the first `size` bytes of room() and lets go of the lock.
  void commit(std::size_t size) noexcept {
    publish(RecordHead::kWhole, static_cast<std::uint32_t>(size), 1);
    release();
  }

  /// Hands over a record of any size in pieces, while the ring is emptied by a consumer. Whatever else than kDone it
  /// gives, no consumer gets the record: neither when this process dies in the middle.
  ChannelResult stream(std::span<const std::byte> message) noexcept;

  void release() noexcept;

 private:
  ChannelResult take_room(std::uint32_t units) noexcept {
    const std::uint32_t left = channel_.to_end(head_.units);
    pad_ = units <= left ? 0 : left;
    room_ = {channel_.at(head_.units + pad_) + ByteChannel::kUnit, (units - 1) * std::size_t{ByteChannel::kUnit}};
    return ChannelResult::kDone;
  }
  void publish(RecordHead::Kind kind, std::uint32_t size, std::uint32_t items) noexcept;
  ChannelResult begin_slowly(std::uint32_t units, std::uint32_t items) noexcept;
  ChannelResult lock() noexcept;
  ChannelResult wait_for_room(std::uint32_t units, std::uint32_t items, Slices& slices) noexcept;
  void refresh() noexcept;

  ByteChannel& channel_;
  ChannelHeader& header_;
  const Patience& patience_;
  Cursor head_, tail_;  ///< of the channel, while it is locked
  std::span<std::byte> room_;
  std::uint32_t pad_ = 0;
  bool locked_ = false;
  bool streaming_ = false;  ///< the first piece is published: the lock is kept to the end
  bool slept_ = false;
  bool ring_ = false;  ///< a consumer has something to see
};

/// Holds the consumers' lock from a begin that gives kDone to finish, or to its end. The record is in the channel until
/// finish: a consumer that dies before leaves it whole to the next one, save for a streamed one, which is lost with it.
class ChannelRead {
 public:
  ChannelRead(ByteChannel& channel, const Patience& patience) noexcept
      : channel_(channel), header_(*channel.header_), patience_(patience) {}
  ~ChannelRead() { release(); }
  ChannelRead(const ChannelRead&) = delete;
  ChannelRead& operator=(const ChannelRead&) = delete;

  /// Waits for a record.
  ChannelResult begin() noexcept {
    if (!locked_) locked_ = is_locked(header_.consumers.try_lock());
    if (locked_ && look() == Look::kRecord && !is_stray()) [[likely]]
      return ChannelResult::kDone;
    return begin_slowly();
  }

  /// The record, or the first piece of a streamed one. It lies in the channel, where a broken process may change it
  /// while it is read.
  std::span<const std::byte> bytes() const noexcept { return {place_ + ByteChannel::kUnit, size_}; }
  bool streamed() const noexcept { return kind_ == RecordHead::kFirst || kind_ == RecordHead::kMore; }

  /// Gives up the piece of a streamed record and waits for the next. False when there will be none, because its
  /// producer died or gave up, or when it stalls for kStall: the whole record is void; begin again.
  bool next() noexcept;

  /// The record has been read: it is gone from the channel. Lets go of the lock.
  void finish() noexcept {
    consume();
    release();
  }
  void release() noexcept;

  /// A producer in the middle of a record is waited for this long, also beyond the deadline: the record is half read.
  static constexpr std::chrono::milliseconds kStall{1000};

 private:
  enum class Look { kRecord, kEmpty, kDamaged };

  Look look() noexcept {
    tail_ = Cursor::from(header_.tail.load(std::memory_order_relaxed));
    head_ = Cursor::from(header_.head_seen.load(std::memory_order_relaxed));
    if (head_.units == tail_.units || !channel_.plausible(head_, tail_)) {
      head_ = channel_.head();
      header_.head_seen.store(head_.word(), std::memory_order_relaxed);
    }
    if (!channel_.plausible(head_, tail_)) return Look::kDamaged;
    return head_.units == tail_.units ? Look::kEmpty : parse();
  }
  Look parse() noexcept;
  /// A piece of a record whose consumer or producer has gone.
  bool is_stray() const noexcept { return kind_ == RecordHead::kMore || kind_ == RecordHead::kLast; }
  void consume() noexcept;
  void throw_all_away() noexcept;
  ChannelResult begin_slowly() noexcept;
  ChannelResult lock() noexcept;
  ChannelResult wait_for_record(Slices& slices) noexcept;
  bool await_piece() noexcept;
  bool nobody_writes() noexcept;
  void publish_freed() noexcept;

  ByteChannel& channel_;
  ChannelHeader& header_;
  const Patience& patience_;
  Cursor head_, tail_;  ///< of the channel, while it is locked
  const std::byte* place_ = nullptr;
  std::uint32_t size_ = 0, kind_ = 0;
  std::uint32_t units_ = 0;  ///< from tail_ to the end of the record
  bool locked_ = false;
  bool slept_ = false;
  bool ring_ = false;  ///< a producer has something to see
};

}  // namespace drover::inline v1::sync
