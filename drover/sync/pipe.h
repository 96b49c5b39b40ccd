// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "drover/base/count.h"
#include "drover/base/duration.h"
#include "drover/sync/queue_core.h"
#include "drover/sync/queue_items.h"
#include "drover/sync/shared.h"

namespace drover::inline v1 {

struct PipeOptions {
  Count capacity = 256;  ///< items on their way, in each direction
  Count bytes = 0;       ///< for them, see QueueOptions
};

/// One of the two ends of a connection between processes: what is sent at one end is received at the other, in order,
/// in both directions. `auto [here, there] = drover::Pipe<Message>::create();`
///
/// An end is closed by close(), or when the last handle to it is let go, in whatever process: the other one still gets
/// what had been sent, and then nothing more. When those who held it were killed, it gets what had been sent, and then
/// OwnerDied: that was no orderly end.
///
/// Thread-safe. Any process that has a handle; copies are the same end. It travels as an argument, as a result, and in
/// queues. Each call may throw Incompatible, Interrupted, and what encoding or decoding throws, as those of Queue. A
/// call that waits throws OwnerDied when a process that held the other end died, and no other process holds it (the own
/// one does not count: a copy that it forgot to let go must not keep it waiting).
template <class T>
class Pipe {
 public:
  Pipe(const Pipe&) = default;  // no moving: there is no handle that refers to nothing
  Pipe& operator=(const Pipe&) = default;
  ~Pipe() = default;

  /// Both ends, without a name: one of them travels, and should be let go here then. Throws InvalidArgument,
  /// OutOfMemory, std::system_error.
  static std::pair<Pipe, Pipe> create(const PipeOptions& options = {}) {
    const auto block = make(std::nullopt, options);
    return {adopt(block, Side::kFirst), adopt(block, Side::kSecond)};
  }
  /// One end; who opens the name has the other. Throws also Error when the name is taken.
  static Pipe create(std::string_view name, const PipeOptions& options = {}) {
    return adopt(make(name, options), Side::kFirst);
  }
  /// The other end of what was created by that name. Throws Error when there is none, Incompatible, naming both, when
  /// it is something else.
  static Pipe open(std::string_view name) {
    return adopt(sync::open_block(name, sync::queue_kind(type())), Side::kSecond);
  }

  /// Waits for room. Throws Cancelled when one of the ends is closed.
  void send(const T& value) { static_cast<void>(add(value, true, {})); }
  /// False when there is no room now. Throws as send, and InvalidArgument for an item that is handed over in pieces.
  [[nodiscard]] bool try_send(const T& value) { return add(value, false, {}); }
  /// False when there was no room for so long.
  [[nodiscard]] bool send_for(const T& value, Duration duration) {
    return add(value, true, os::deadline_after(duration));
  }

  /// Waits for what the other end sends. Nothing when one of the ends is closed and all has been received.
  std::optional<T> recv() { return take(true, {}); }
  /// Nothing when there is none now.
  std::optional<T> try_recv() { return take(false, {}); }
  /// Nothing when none came for so long, or none will come (then finished() is true).
  std::optional<T> recv_for(Duration duration) { return take(true, os::deadline_after(duration)); }

  /// Whether recv would return at once, now or within `duration`: with an item, or with nothing because there is no
  /// more.
  [[nodiscard]] bool poll(Duration duration = Duration(0)) {
    const bool sleeps = duration > Duration(0);
    const auto patience = core_->patience_to_pop(sleeps, sleeps ? os::deadline_after(duration) : os::Deadline());
    const auto result = sync::ChannelRead(core_->in(), patience).begin();
    core_->check_popped(result, patience);
    return result != sync::ChannelResult::kTimedOut;
  }

  /// For both directions, and all handles to both ends.
  void close() noexcept { core_->close(); }
  bool closed() const noexcept { return core_->in().closed(); }
  /// Closed, and nothing is left to receive.
  bool finished() const noexcept { return closed() && core_->in().size() == 0; }

  /// Empty without one.
  const std::string& name() const noexcept { return core_->block().name(); }
  /// Removes the name now; who has an end goes on using it. Only the creating process.
  void unlink() { core_->block().unlink(); }

  // For codecs.

  using Side = sync::QueueCore::Side;
  static Pipe adopt(const std::shared_ptr<shm::Block>& block, Side side) {
    return Pipe(sync::QueueCore::of_this_process(block, type(), side));
  }
  const std::shared_ptr<sync::QueueCore>& core() const noexcept { return core_; }
  static std::string type() { return "Pipe<" + std::string(wire::type_name<T>()) + ">"; }

 private:
  explicit Pipe(std::shared_ptr<sync::QueueCore> core) noexcept : core_(std::move(core)) {}

  static std::shared_ptr<shm::Block> make(const sync::Naming& name, const PipeOptions& options) {
    return sync::make_queue_block(name, {.type = type(),
                                         .channels = 2,
                                         .items = options.capacity,
                                         .ring_bytes = options.bytes,
                                         .item_bytes = wire::encoded_size_fixed<T>});
  }

  bool add(const T& value, bool sleeps, const os::Deadline& deadline) {
    return sync::push_through(*core_, value, sleeps, deadline);
  }
  std::optional<T> take(bool sleeps, const os::Deadline& deadline) {
    return sync::pop_through<T>(*core_, sleeps, deadline);
  }

  std::shared_ptr<sync::QueueCore> core_;
};

}  // namespace drover::inline v1

namespace drover::inline v1::wire {

template <class T>
struct Codec<Pipe<T>> {
  static void encode(Writer& writer, const Pipe<T>& pipe) {
    const bool kept = writer.keep(pipe.core());
    writer.put<std::uint8_t>(
        static_cast<std::uint8_t>((pipe.core()->side() == Pipe<T>::Side::kSecond ? 1U : 0U) | (kept ? 0U : kCounted)));
    if (!kept) {
      pipe.core()->sent();
      writer.if_not_sent([core = pipe.core()] { core->received(); });
    }
    sync::encode_block(writer, pipe.core()->shared_block());
  }
  static Pipe<T> decode(Reader& reader) {
    const auto flags = reader.get<std::uint8_t>(type_name<Pipe<T>>());
    const auto side = (flags & 1U) != 0 ? Pipe<T>::Side::kSecond : Pipe<T>::Side::kFirst;
    auto pipe = Pipe<T>::adopt(sync::decode_block(reader, sync::queue_kind(Pipe<T>::type())), side);
    if ((flags & kCounted) != 0) reader.when_taken([core = pipe.core()] { core->received(); });
    return pipe;
  }

 private:
  static constexpr unsigned kCounted = 2;  ///< QueueCore::sent was called
};

}  // namespace drover::inline v1::wire
