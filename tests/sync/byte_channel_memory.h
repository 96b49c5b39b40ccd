// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "drover/sync/byte_channel_io.h"

namespace drover_test {

namespace sync = drover::sync;
using sync::ChannelResult;

/// A channel in this process's heap, so that AddressSanitizer sees each byte beyond its end. Another view of the same
/// memory is what another process would have.
struct Memory {
  explicit Memory(std::size_t ring_bytes, std::uint32_t max_items = 1'000'000)
      : bytes(ring_bytes), items(max_items), ring(new std::byte[ring_bytes]()) {
    view().join();
  }

  sync::ByteChannel view() const { return {header.get(), ring.get(), bytes, items}; }

  std::size_t bytes;
  std::uint32_t items;
  std::unique_ptr<sync::ChannelHeader> header = std::make_unique<sync::ChannelHeader>();
  std::unique_ptr<std::byte[]> ring;
};

inline sync::Patience at_once() { return {.sleeps = false}; }
inline sync::Patience for_ever() { return {.spin = std::chrono::microseconds(5)}; }
inline sync::Patience for_some(std::chrono::milliseconds time) {
  return {.deadline = std::chrono::steady_clock::now() + time};
}

/// Adds a record, in pieces if it is large.
inline ChannelResult put(sync::ByteChannel channel, std::span<const std::byte> record, const sync::Patience& patience) {
  sync::ChannelWrite write(channel, patience);
  ChannelResult result = write.begin(record.size());
  if (result == ChannelResult::kTooLarge && patience.sleeps) return write.stream(record);
  if (result != ChannelResult::kDone) return result;
  if (!record.empty()) std::memcpy(write.room().data(), record.data(), record.size());
  write.commit(record.size());
  return result;
}
inline ChannelResult put(const sync::ByteChannel& channel, const std::string& text, const sync::Patience& patience) {
  return put(channel, std::as_bytes(std::span(text)), patience);
}

/// Takes the next record.
inline ChannelResult get(sync::ByteChannel channel, std::string& text, const sync::Patience& patience) {
  const auto append = [&text](std::span<const std::byte> bytes) {
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  sync::ChannelRead read(channel, patience);
  for (;;) {
    const ChannelResult result = read.begin();
    if (result != ChannelResult::kDone) return result;
    text.clear();
    append(read.bytes());
    bool whole = true;
    while (whole && read.streamed()) {
      whole = read.next();
      if (whole) append(read.bytes());
    }
    if (!whole) continue;
    read.finish();
    return result;
  }
}
inline std::optional<std::string> get(const sync::ByteChannel& channel,
                                      const sync::Patience& patience = {.sleeps = false}) {
  std::string text;
  return get(channel, text, patience) == ChannelResult::kDone ? std::optional(text) : std::nullopt;
}

}  // namespace drover_test
