// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drover/base/duration.h"
#include "drover/os/self.h"
#include "drover/shm/block.h"
#include "drover/sync/byte_channel_io.h"
#include "drover/sync/queue_parties.h"
#include "drover/sync/shared.h"
#include "drover/wire/writer.h"

/// What Queue<T> and Pipe<T> do whatever T is.
namespace drover::inline v1::sync {

/// What stands before the rings of a queue (one channel, one list of parties) or of a pipe (two of each), after the
/// SharedHeader. Channel I leads away from end I.
struct QueueState {
  static constexpr std::uint32_t kVersion = 2;

  std::uint64_t ring_bytes;  ///< of each channel, ByteChannel says which values
  std::uint32_t max_items;
  std::uint32_t channels;
  /// Of each end. Bits 0-31: handles that were sent, and not received yet. Bits 32-63: how often somebody got the end
  /// or sent it, modulo 2^32, so that who looks through the list of parties sees whether a handle moved meanwhile; 0:
  /// nobody had it yet.
  std::array<std::atomic<std::uint64_t>, 2> travels;
  alignas(64) std::array<ChannelHeader, 2> headers;
  alignas(64) std::array<Parties, 2> parties;
};

/// How large a ring must be.
struct QueueShape {
  std::string type;            ///< "Queue<int>"
  std::uint32_t channels = 1;  ///< 2 for a pipe
  std::size_t items = 0;       ///< at most so many
  std::size_t ring_bytes = 0;  ///< as asked for, 0: automatic
  std::size_t item_bytes = 0;  ///< of an encoded item, where all have the same
};

/// The block of a new queue or pipe. Throws InvalidArgument for a shape that cannot be, and as shm::Block::create.
std::shared_ptr<shm::Block> make_queue_block(const Naming& name, const QueueShape& shape);
/// The Kind that blocks of this type have.
Kind queue_kind(const std::string& type);

/// A queue, or one end of a pipe, as this process has it: it is listed among the parties for as long as this lives.
/// Thread-safe. Borrowed by calls, owned by handles and by what is on its way to other processes.
class QueueCore {
 public:
  enum class Side : std::uint8_t { kBoth, kFirst, kSecond };  ///< kBoth: a queue

  /// The one of this process. Throws Incompatible when the block is damaged.
  static std::shared_ptr<QueueCore> of_this_process(const std::shared_ptr<shm::Block>& block, const std::string& type,
                                                    Side side);

  QueueCore(std::shared_ptr<shm::Block> block, std::string type, Side side);
  ~QueueCore();
  QueueCore(const QueueCore&) = delete;
  QueueCore& operator=(const QueueCore&) = delete;

  shm::Block& block() const noexcept { return *block_; }
  const std::shared_ptr<shm::Block>& shared_block() const noexcept { return block_; }
  Side side() const noexcept { return side_; }
  ByteChannel& out() noexcept { return out_; }  ///< the same as in() for a queue
  ByteChannel& in() noexcept { return in_; }

  Patience patience_to_push(bool sleeps, const os::Deadline& deadline) noexcept;
  Patience patience_to_pop(bool sleeps, const os::Deadline& deadline) noexcept;

  /// Throws what a result other than kDone and kTimedOut means.
  void check_pushed(ChannelResult result, std::size_t size, const Patience& patience);
  /// Likewise; also kClosed is no error.
  void check_popped(ChannelResult result, const Patience& patience);

  /// Closes all of it.
  void close() noexcept;

  /// A handle that this process need not keep was sent; one was received, and is listed. In between the end of a pipe
  /// is not closed though nobody may be listed.
  void sent() noexcept;
  void received() noexcept;

 private:
  std::size_t own_end() const noexcept { return side_ == Side::kSecond ? 1 : 0; }
  std::size_t other_end() const noexcept { return side_ == Side::kFirst ? 1 : 0; }
  Parties& own_parties() const noexcept { return state_.parties[own_end()]; }
  Parties& other_parties() const noexcept { return state_.parties[other_end()]; }
  bool was_let_go(std::size_t end) const noexcept;
  void close_if_let_go() noexcept;
  std::chrono::nanoseconds spin() const noexcept;
  void mark(Role role, std::atomic<bool>& marked) noexcept;
  std::optional<os::ThreadId> deserted_by(Role role, std::uint64_t began) const;
  void check_common(ChannelResult result) const;
  std::string describe() const;
  [[noreturn]] void refuse_deserted(Role role, std::uint64_t began);
  static bool nobody_pushes(void* core, std::uint64_t began);
  static bool nobody_pops(void* core, std::uint64_t began);

  const std::shared_ptr<shm::Block> block_;
  const std::string type_;
  QueueState& state_;
  const Side side_;
  ByteChannel out_, in_;
  std::size_t place_;
  const int creator_ = os::current_pid();
  std::atomic<bool> pushed_{false}, popped_{false};

  // Of whose death this process has been told: once each, though by every call that waited at the time.
  std::atomic<std::uint64_t> told_count_{0};
  mutable std::mutex mutex_;
  std::vector<os::ThreadId> told_;  // protected by mutex_; those of which a call knew when it began come first
};

/// The rest of a streamed record whose first piece `read` holds; false when it breaks off. Throws std::bad_alloc.
bool read_stream(ChannelRead& read, wire::Writer& message);
/// A record that was encoded elsewhere, because there was no room for it, or not yet.
ChannelResult write_message(ChannelWrite& write, ByteChannel& channel, const Patience& patience,
                            std::span<const std::byte> message);

}  // namespace drover::inline v1::sync
