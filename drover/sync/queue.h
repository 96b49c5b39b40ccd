// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <iterator>
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

struct QueueOptions {
  Count capacity = 1024;  ///< items
  /// Of memory for the items, rounded up to a power of two; 0: as much as `capacity` items need where all take the
  /// same, up to 64 MiB, else 1 MiB. Larger items than half of it are handed over in pieces.
  Count bytes = 0;
};

/// A bounded queue between processes, in the order in which push was served; any number of producers and consumers,
/// each item goes to one of them. Whoever is killed, at whatever instruction, takes no more with it than the item that
/// it was just handing over: docs/queues.md has it in detail.
///
/// Thread-safe. Any process that has a handle; copies refer to the same queue, which lives as long as one does. It
/// travels as an argument, as a result, and in other queues. Items are encoded while the producers' lock is held, and
/// decoded under the consumers': a codec must not use the same queue.
///
/// Each call may throw Incompatible (another process wrote over the queue, or an item is no T), Interrupted (SIGINT or
/// SIGTERM while it waited), and what encoding or decoding throws. Calls that wait throw OwnerDied when a process that
/// used the queue died and no other is left that might end the wait: once for each dead process, in each handle.
template <class T>
class Queue {
 public:
  Queue(const Queue&) = default;  // no moving: there is no handle that refers to nothing
  Queue& operator=(const Queue&) = default;
  ~Queue() = default;

  /// Others open it by its name, until this process ends, lets its last handle go, or unlinks it. Throws
  /// InvalidArgument, OutOfMemory, std::system_error, Error when the name is taken.
  static Queue create(std::string_view name, const QueueOptions& options = {}) { return adopt(make(name, options)); }
  static Queue create(std::string_view name, Count capacity) { return create(name, {.capacity = capacity}); }
  /// Without a name: it travels.
  template <std::same_as<QueueOptions> Options = QueueOptions>
  static Queue create(const Options& options) {
    return adopt(make(std::nullopt, options));
  }
  template <std::integral Integer>  // not Count: the literal 0 could be a name, too
  static Queue create(Integer capacity) {
    return create<QueueOptions>({.capacity = capacity});
  }
  static Queue create() { return create<QueueOptions>({}); }
  /// Throws Error when there is none, Incompatible, naming both, when it is something else.
  static Queue open(std::string_view name) { return adopt(sync::open_block(name, sync::queue_kind(type()))); }
  /// The options count only when it is created.
  static Queue open_or_create(std::string_view name, const QueueOptions& options = {}) {
    return adopt(make({name, sync::Naming::kOrOpen}, options));
  }
  static Queue open_or_create(std::string_view name, Count capacity) {
    return open_or_create(name, {.capacity = capacity});
  }
  /// For codecs.
  static Queue adopt(const std::shared_ptr<shm::Block>& block) {
    return Queue(sync::QueueCore::of_this_process(block, type(), sync::QueueCore::Side::kBoth));
  }

  /// Waits for room. Throws Cancelled when the queue is closed.
  void push(const T& value) { static_cast<void>(add(value, true, {})); }
  /// False when there is no room now. Throws Cancelled, and InvalidArgument for an item that is handed over in pieces:
  /// that needs a consumer who waits.
  [[nodiscard]] bool try_push(const T& value) { return add(value, false, {}); }
  /// False when there was no room for so long.
  [[nodiscard]] bool push_for(const T& value, Duration duration) {
    return add(value, true, os::deadline_after(duration));
  }

  /// Waits for an item. Nothing when the queue is closed and empty: none will come.
  std::optional<T> pop() { return take(true, {}); }
  /// Nothing when there is none now.
  std::optional<T> try_pop() { return take(false, {}); }
  /// Nothing when none came for so long, or none will come (then finished() is true).
  std::optional<T> pop_for(Duration duration) { return take(true, os::deadline_after(duration)); }

  /// No item is added from now on, whoever tries; what is in the queue can still be taken.
  void close() noexcept { core_->close(); }
  bool closed() const noexcept { return core_->in().closed(); }
  /// Closed, and empty.
  bool finished() const noexcept { return closed() && size() == 0; }

  /// Items at some moment during the call.
  std::size_t size() const noexcept { return core_->in().size(); }
  bool empty() const noexcept { return size() == 0; }
  std::size_t capacity() const noexcept { return core_->in().max_items(); }

  /// Empty without one.
  const std::string& name() const noexcept { return core_->block().name(); }
  /// Removes the name now; who has the queue goes on using it. Only the creating process.
  void unlink() { core_->block().unlink(); }

  /// `for (T& item : queue)` takes items until the queue is closed and empty. An input iterator: one at a time, each
  /// item is gone from the queue when it is here.
  class Iterator {
   public:
    using value_type = T;
    using difference_type = std::ptrdiff_t;

    explicit Iterator(Queue& queue) : queue_(&queue), item_(queue.pop()) {}
    T& operator*() const noexcept { return *item_; }
    Iterator& operator++() {
      item_.reset();
      item_ = queue_->pop();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const noexcept { return !item_; }

   private:
    Queue* queue_;
    mutable std::optional<T> item_;
  };
  Iterator begin() { return Iterator(*this); }
  std::default_sentinel_t end() const noexcept { return {}; }

  /// For codecs.
  const std::shared_ptr<sync::QueueCore>& core() const noexcept { return core_; }
  static std::string type() { return "Queue<" + std::string(wire::type_name<T>()) + ">"; }

 private:
  explicit Queue(std::shared_ptr<sync::QueueCore> core) noexcept : core_(std::move(core)) {}

  static std::shared_ptr<shm::Block> make(const sync::Naming& name, const QueueOptions& options) {
    return sync::make_queue_block(name, {.type = type(),
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
struct Codec<Queue<T>> {
  static void encode(Writer& writer, const Queue<T>& queue) {
    static_cast<void>(writer.keep(queue.core()));  // not only its block: the queue shall not look deserted on its way
    sync::encode_block(writer, queue.core()->shared_block());
  }
  static Queue<T> decode(Reader& reader) {
    return Queue<T>::adopt(sync::decode_block(reader, sync::queue_kind(Queue<T>::type())));
  }
};

}  // namespace drover::inline v1::wire
