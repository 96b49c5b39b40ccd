// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <new>
#include <optional>
#include <ranges>
#include <span>
#include <utility>

#include "drover/base/errors.h"
#include "drover/sync/queue_core.h"
#include "drover/wire/codec.h"

/// Values in and out of channels. An item is encoded where it will lie, and decoded from there.
namespace drover::inline v1::sync {

/// Bytes that `value` takes when it is encoded; 0: only encoding it tells.
template <class T>
std::size_t encoded_size(const T& value) noexcept {
  if constexpr (wire::travels_by_memcpy<T>) {
    return sizeof(T);
  } else if constexpr (std::derived_from<wire::Codec<T>, wire::detail::ImagesCodec<T>>) {
    // A count and padding stand before the elements.
    return sizeof(std::uint64_t) + std::ranges::size(value) * sizeof(std::ranges::range_value_t<T>);
  } else {
    return 0;
  }
}

/// What has been counted for the handles of an item, to be taken back unless the item is added.
struct Unsent {
  wire::Steps steps;
  ~Unsent() { steps.run(); }
};

/// Encodes a value into `message`, maybe the very place where it will lie, and adds it.
template <class T>
ChannelResult push_message(ChannelWrite& write, ByteChannel& channel, const Patience& patience, wire::Writer& message,
                           const T& value, std::size_t& size) {
  Unsent unsent;
  message.take_back_by(&unsent.steps);
  wire::encode(message, value);
  size = message.size();
  ChannelResult result = ChannelResult::kDone;
  if (message.spilled() || write.room().data() == nullptr) {
    result = write_message(write, channel, patience, message.bytes());
  } else {
    write.commit(size);
  }
  if (result == ChannelResult::kDone) unsent.steps.clear();
  return result;
}

/// Adds a value. `size`: bytes of it, as far as known. Throws what encoding throws; nothing is added then.
template <class T>
ChannelResult push_item(ByteChannel& channel, const T& value, const Patience& patience, std::size_t& size) {
  ChannelWrite write(channel, patience);
  size = encoded_size(value);
  // What has handles in it is not encoded in vain where that can be helped. So first there is some room.
  ChannelResult result = write.begin(size);
  if (size == 0 && result == ChannelResult::kDone) result = write.begin_with_what_is_there();
  if (result == ChannelResult::kTooLarge) {
    wire::Writer message;
    return push_message(write, channel, patience, message, value, size);
  }
  if (result != ChannelResult::kDone) return result;
  if constexpr (wire::travels_by_memcpy<T>) {
    wire::store_image(write.room().data(), value);
    write.commit(sizeof(T));
    return result;
  } else {
    wire::Writer message(write.room());
    return push_message(write, channel, patience, message, value, size);
  }
}

/// Decodes the record that `read` holds, and takes it from the channel: also when it is no T. When there is no memory
/// it stays. Handles in it count as received when it is taken: one who dies in the middle leaves it to the next, and
/// who dies right after has them kept too long, which harms nobody else's.
template <class T>
T decode_item(ChannelRead& read, std::span<const std::byte> bytes) {
  wire::Steps received;
  try {
    wire::Reader reader(bytes);
    if constexpr (!wire::travels_by_memcpy<T>) reader.collect_in(&received);
    T value = wire::decode<T>(reader);
    if (reader.remaining() != 0) reader.fail(wire::type_name<T>(), "the message is too long");
    read.finish();
    received.run();
    return value;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (...) {
    read.finish();
    received.run();
    throw;
  }
}

/// Takes the next value. Throws what decoding throws.
template <class T>
ChannelResult pop_item(ByteChannel& channel, std::optional<T>& item, const Patience& patience) {
  ChannelRead read(channel, patience);
  for (;;) {
    const ChannelResult result = read.begin();
    if (result != ChannelResult::kDone) return result;
    if (!read.streamed()) [[likely]] {
      item.emplace(decode_item<T>(read, read.bytes()));
      return result;
    }
    wire::Writer message;
    if (!read_stream(read, message)) continue;
    item.emplace(decode_item<T>(read, message.bytes()));
    return result;
  }
}

/// False when there was no room in time. Throws as QueueCore::check_pushed, and what encoding throws.
template <class T>
bool push_through(QueueCore& core, const T& value, bool sleeps, const os::Deadline& deadline) {
  std::size_t size = 0;
  const Patience patience = core.patience_to_push(sleeps, deadline);
  const ChannelResult result = push_item(core.out(), value, patience, size);
  if (result == ChannelResult::kDone) return true;
  core.check_pushed(result, size, patience);
  return false;
}

/// Nothing when there was none in time, or none will come. Throws as QueueCore::check_popped, and what decoding throws.
template <class T>
std::optional<T> pop_through(QueueCore& core, bool sleeps, const os::Deadline& deadline) {
  std::optional<T> item;
  const Patience patience = core.patience_to_pop(sleeps, deadline);
  const ChannelResult result = pop_item(core.in(), item, patience);
  if (result != ChannelResult::kDone) core.check_popped(result, patience);
  return item;
}

}  // namespace drover::inline v1::sync
