// SPDX-License-Identifier: Apache-2.0
#include "drover/sync/queue_core.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <exception>
#include <utility>

#include "drover/base/errors.h"
#include "drover/base/hash.h"
#include "drover/os/cpu.h"
#include "drover/os/signals.h"
#include "drover/sync/in_process.h"

namespace drover::inline v1::sync {
namespace {

// A wake-up across cores costs about as much, see the pool's.
constexpr std::chrono::microseconds kSpin(25);

constexpr std::uint64_t kTravel = std::uint64_t{1} << 32U;  // one in the upper half of QueueState::travels

constexpr std::uint64_t kAutomaticRing = std::uint64_t{1} << 20U;          // for items of any size
constexpr std::uint64_t kLargestAutomaticRing = std::uint64_t{64} << 20U;  // for large items of one size

std::size_t cpus() noexcept {
  static const std::size_t count = [] {
    try {
      return os::usable_cpus();
    } catch (const std::exception&) {
      return std::size_t{1};
    }
  }();
  return count;
}

std::uint64_t ring_bytes(const QueueShape& shape) {
  const auto refuse = [&shape](const std::string& why) { throw InvalidArgument("a " + shape.type + " " + why); };
  constexpr std::size_t kMostItems = std::size_t{1} << 31U;
  if (shape.items == 0) refuse("must have room for at least one item");
  if (shape.items > kMostItems) refuse("has room for 2^31 items at most, not " + std::to_string(shape.items));
  if (shape.ring_bytes > ByteChannel::kLargestRing) {
    refuse("has 4 GiB at most, not " + std::to_string(shape.ring_bytes) + " bytes");
  }
  std::uint64_t bytes = shape.ring_bytes;
  if (bytes == 0 && shape.item_bytes == 0) bytes = kAutomaticRing;
  if (bytes == 0) {
    // One record may be lost at the end of the ring; and one may not be larger than half of it.
    const std::uint64_t record = std::uint64_t{RecordHead::units(shape.item_bytes)} * ByteChannel::kUnit;
    bytes = std::min(record, kLargestAutomaticRing) * std::max<std::uint64_t>(shape.items + 1, 3);
    bytes = std::min(bytes, kLargestAutomaticRing);
  }
  return std::bit_ceil(std::max(bytes, ByteChannel::kSmallestRing));
}

QueueState& state_of(const shm::Block& block) noexcept {
  return *reinterpret_cast<QueueState*>(block.data() + sizeof(SharedHeader));
}

ByteChannel channel_of(const shm::Block& block, std::uint32_t index, const std::string& type) {
  QueueState& state = state_of(block);
  const std::uint64_t bytes = state.ring_bytes;  // once: others may write over it
  const std::uint32_t items = state.max_items, channels = state.channels;
  constexpr std::uint64_t kRings = sizeof(SharedHeader) + sizeof(QueueState);
  const bool good = std::has_single_bit(bytes) && bytes >= ByteChannel::kSmallestRing &&
                    bytes <= ByteChannel::kLargestRing && items != 0 && index < channels && channels <= 2 &&
                    block.size() >= kRings + channels * bytes;
  if (!good) throw Incompatible(sync::describe(type, block) + " is damaged: its sizes do not fit its block");
  return {&state.headers[index], block.data() + kRings + index * bytes, bytes, items};
}

}  // namespace

Kind queue_kind(const std::string& type) {
  return {
      .name = type, .type = base::hash_text(type), .version = QueueState::kVersion, .state_size = sizeof(QueueState)};
}

std::shared_ptr<shm::Block> make_queue_block(const Naming& name, const QueueShape& shape) {
  const std::uint64_t bytes = ring_bytes(shape);
  const auto fill = [&](std::byte* data) {
    QueueState& state = *reinterpret_cast<QueueState*>(data);
    state.ring_bytes = bytes;
    state.max_items = static_cast<std::uint32_t>(shape.items);
    state.channels = shape.channels;
  };
  return make_block(name, queue_kind(shape.type), fill, shape.channels * bytes);
}

std::shared_ptr<QueueCore> QueueCore::of_this_process(const std::shared_ptr<shm::Block>& block, const std::string& type,
                                                      Side side) {
  static auto& all = *new InProcess<std::pair<const shm::Block*, Side>, QueueCore>;  // handles may outlive statics
  return all.get({block.get(), side}, [&] { return std::make_shared<QueueCore>(block, type, side); });
}

QueueCore::QueueCore(std::shared_ptr<shm::Block> block, std::string type, Side side)
    : block_(std::move(block)),
      type_(std::move(type)),
      state_(state_of(*block_)),
      side_(side),
      out_(channel_of(*block_, side == Side::kSecond ? 1 : 0, type_)),
      in_(channel_of(*block_, side == Side::kFirst ? 1 : 0, type_)) {
  out_.join();
  in_.join();
  state_.travels[own_end()].fetch_add(kTravel, std::memory_order_acq_rel);
  os::fault_point();
  place_ = own_parties().join();
}

QueueCore::~QueueCore() {
  if (os::current_pid() != creator_) return;  // a fork of it: the place in the table is not its own
  own_parties().leave(place_);
  // The last one to leave an end of a pipe closes it. If it is killed before, a waiter at the other end does.
  if (side_ != Side::kBoth && was_let_go(own_end())) close();
}

/// Whether all who had that end of a pipe have let it go, in order, and no handle to it is on its way. A handle that is
/// sent on is first counted as sent, then its sender leaves; one that arrives is first listed, then no longer counted.
/// So if nothing has travelled between two looks, who had the end stood in the list all the time, wherever in it.
bool QueueCore::was_let_go(std::size_t end) const noexcept {
  const std::atomic<std::uint64_t>& travels = state_.travels[end];
  const std::uint64_t before = travels.load(std::memory_order_acquire);
  if (before / kTravel == 0 || before % kTravel != 0) return false;
  return state_.parties[end].empty() && travels.load(std::memory_order_acquire) == before;
}

void QueueCore::close_if_let_go() noexcept {
  if (side_ != Side::kBoth && was_let_go(other_end())) close();
}

void QueueCore::sent() noexcept {
  state_.travels[own_end()].fetch_add(kTravel + 1, std::memory_order_acq_rel);
  os::fault_point();
}

void QueueCore::received() noexcept {
  auto& travels = state_.travels[own_end()];
  std::uint64_t seen = travels.load(std::memory_order_acquire);
  while (seen % kTravel != 0 && !travels.compare_exchange_weak(seen, seen - 1, std::memory_order_acq_rel)) {
  }
  os::fault_point();
}

void QueueCore::close() noexcept {
  out_.close();
  if (side_ != Side::kBoth) in_.close();
}

std::chrono::nanoseconds QueueCore::spin() const noexcept {
  const std::size_t active = own_parties().active() + (side_ == Side::kBoth ? 0 : other_parties().active());
  return active <= cpus() && cpus() > 1 ? kSpin : std::chrono::nanoseconds(0);
}

void QueueCore::mark(Role role, std::atomic<bool>& marked) noexcept {
  if (marked.load(std::memory_order_relaxed)) return;
  own_parties().mark(place_, role);
  marked.store(true, std::memory_order_relaxed);
}

std::optional<os::ThreadId> QueueCore::deserted_by(Role role, std::uint64_t began) const {
  const std::scoped_lock lock(mutex_);
  const std::span known(told_.data(), std::min<std::size_t>(began, told_.size()));
  // Who has the other end of a pipe may always answer.
  return other_parties().deserted_by(side_ == Side::kBoth ? role : Role::kAny, known);
}

bool QueueCore::nobody_pushes(void* core, std::uint64_t began) {
  auto& self = *static_cast<QueueCore*>(core);
  self.close_if_let_go();
  return self.deserted_by(Role::kPushes, began).has_value();
}

bool QueueCore::nobody_pops(void* core, std::uint64_t began) {
  auto& self = *static_cast<QueueCore*>(core);
  self.close_if_let_go();
  return self.deserted_by(Role::kPops, began).has_value();
}

Patience QueueCore::patience_to_push(bool sleeps, const os::Deadline& deadline) noexcept {
  mark(Role::kPushes, pushed_);
  return {.sleeps = sleeps,
          .deadline = deadline,
          .deserted = &nobody_pops,
          .context = this,
          .began = told_count_.load(std::memory_order_relaxed),
          .spin = spin()};
}

Patience QueueCore::patience_to_pop(bool sleeps, const os::Deadline& deadline) noexcept {
  mark(Role::kPops, popped_);
  return {.sleeps = sleeps,
          .deadline = deadline,
          .deserted = &nobody_pushes,
          .context = this,
          .began = told_count_.load(std::memory_order_relaxed),
          .spin = spin()};
}

std::string QueueCore::describe() const { return sync::describe(type_, *block_); }

void QueueCore::refuse_deserted(Role role, std::uint64_t began) {
  const auto dead = deserted_by(role, began);  // nobody, when somebody has come meanwhile
  if (dead) {
    const std::scoped_lock lock(mutex_);
    told_.push_back(*dead);
    told_count_.store(told_.size(), std::memory_order_relaxed);
  }
  const std::string who = dead ? "process " + std::to_string(os::thread_number(*dead)) : "a process";
  const bool pop = role == Role::kPushes;
  throw OwnerDied(who + ", which used " + describe() + ", died, and nobody is left who could " +
                  (pop ? "add an item: nothing more will come" : "take an item: there will never be room"));
}

void QueueCore::check_common(ChannelResult result) const {
  if (result == ChannelResult::kInterrupted) throw_interrupted();
  if (result == ChannelResult::kReentered) {
    throw InvalidArgument(describe() + " was used by the codec of one of its own items, which would wait for itself");
  }
  if (result == ChannelResult::kDamaged) {
    throw Incompatible(describe() + " was written over by another process: what it held is lost");
  }
}

void QueueCore::check_pushed(ChannelResult result, std::size_t size, const Patience& patience) {
  check_common(result);
  if (result == ChannelResult::kTimedOut && patience.sleeps) close_if_let_go();  // its slices may all have been short
  if (result == ChannelResult::kDeserted) refuse_deserted(Role::kPops, patience.began);
  if (result == ChannelResult::kClosed) {
    throw Cancelled(describe() + " is closed: nothing can be added any more");
  }
  if (result == ChannelResult::kTooLarge) {
    throw InvalidArgument("an item of " + std::to_string(size) + " bytes does not fit into " + describe() +
                          ", which holds items of up to " + std::to_string(out_.largest_whole()) +
                          " bytes: wait for a consumer, or give it a larger ring (option bytes)");
  }
}

void QueueCore::check_popped(ChannelResult result, const Patience& patience) {
  check_common(result);
  if (result == ChannelResult::kTimedOut && patience.sleeps) close_if_let_go();
  if (result == ChannelResult::kDeserted) refuse_deserted(Role::kPushes, patience.began);
}

bool read_stream(ChannelRead& read, wire::Writer& message) {
  message.write(read.bytes().data(), read.bytes().size());
  while (read.streamed()) {
    if (!read.next()) return false;
    message.write(read.bytes().data(), read.bytes().size());
  }
  return true;
}

ChannelResult write_message(ChannelWrite& write, ByteChannel& channel, const Patience& patience,
                            std::span<const std::byte> message) {
  write.release();
  if (message.size() > channel.largest_whole()) {
    return patience.sleeps ? write.stream(message) : ChannelResult::kTooLarge;
  }
  const ChannelResult result = write.begin(message.size());
  if (result != ChannelResult::kDone) return result;
  if (!message.empty()) std::memcpy(write.room().data(), message.data(), message.size());
  write.commit(message.size());
  return result;
}

}  // namespace drover::inline v1::sync
