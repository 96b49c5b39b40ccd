// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "drover/base/errors.h"
#include "drover/shm/block.h"
#include "drover/sync/lock_word.h"
#include "drover/wire/travels.h"

/// What all primitives have in common: a block in shared memory with a header that says what it holds, and handles that
/// travel.
namespace drover::inline v1::sync {

/// The first bytes of a primitive's block; its state follows.
struct SharedHeader {
  std::array<char, 80> kind;           ///< "Mutex", "SharedValue<double>": text, filled up with zeros
  std::uint64_t type;                  ///< hash of a type's whole name, where the kind has one
  std::uint32_t version;               ///< of the layout of the state
  std::uint32_t state_size;            ///< bytes
  std::array<std::byte, 32> reserved;  ///< zero
};
static_assert(sizeof(SharedHeader) == 128);

/// What a block holds.
struct Kind {
  std::string name;
  std::uint64_t type = 0;
  std::uint32_t version = 1;
  std::size_t state_size = 0;
};

/// The kind of a State, the struct that follows the header: kind_name(), kVersion, join() (called in each process that
/// maps it), and type_hash() if there is a type in its name. Zero-filled is its first state.
template <class State>
Kind kind_of() {
  Kind kind{.name = std::string(State::kind_name()), .version = State::kVersion, .state_size = sizeof(State)};
  if constexpr (requires { State::type_hash(); }) kind.type = State::type_hash();
  return kind;
}

/// Writes what is not zero in a new state.
using FillState = std::function<void(std::byte* state)>;
/// What a new block is called.
struct Naming {
  enum Taken : bool { kRefuse, kOrOpen };
  Naming(std::nullopt_t /*none*/) noexcept {}  // NOLINT(google-explicit-constructor): without a name: it only travels
  Naming(std::string_view text, Taken if_taken = kRefuse) noexcept  // NOLINT(google-explicit-constructor): a name
      : name(text), taken(if_taken) {}

  std::optional<std::string_view> name;
  Taken taken = kRefuse;  ///< kOrOpen: what has the name already, if it is of the same kind
};

/// A new block, whole before it has a name: the header, the state, and `more` bytes. Throws as shm::Block::create, and
/// with kOrOpen as open_block.
std::shared_ptr<shm::Block> make_block(const Naming& name, const Kind& kind, const FillState& fill,
                                       std::uint64_t more = 0);
/// Throws Incompatible, naming both, when it holds something else, or is damaged.
void check_block(const shm::Block& block, const Kind& kind);
/// Throws as shm::Block::open and check_block.
std::shared_ptr<shm::Block> open_block(std::string_view name, const Kind& kind);

void encode_block(wire::Writer& writer, const std::shared_ptr<shm::Block>& block);
std::shared_ptr<shm::Block> decode_block(wire::Reader& reader, const Kind& kind);

/// "the mutex "x"", "a mutex without a name".
std::string describe(std::string_view what, const shm::Block& block);

/// The errors of locks: OwnerDied, system_error, Interrupted. `what` as from describe().
[[noreturn]] void throw_owner_died(const std::string& what, os::ThreadId who);
[[noreturn]] void throw_relocked(const std::string& what);
[[noreturn]] void throw_not_held(const std::string& what);
[[noreturn]] void throw_interrupted();

/// A reference to a State in shared memory: copies refer to the same one, and it lives as long as somebody has it
/// mapped. The base of all primitives. Copying is thread-safe as for shared_ptr; the primitive itself says what it is.
template <class State>
class Handle {
 public:
  using StateType = State;

  Handle(const Handle&) = default;  // no moving: there is no handle that refers to nothing
  Handle& operator=(const Handle&) = default;
  ~Handle() = default;

  /// Empty without one.
  const std::string& name() const noexcept { return block_->name(); }
  /// Removes the name now, see shm::Block::unlink; who has the primitive goes on using it.
  void unlink() { block_->unlink(); }
  /// What travels.
  const std::shared_ptr<shm::Block>& block() const noexcept { return block_; }

 protected:
  explicit Handle(std::shared_ptr<shm::Block> block)
      : block_(std::move(block)), state_(reinterpret_cast<State*>(block_->data() + sizeof(SharedHeader))) {
    state_->join();
  }
  State& state() const noexcept { return *state_; }

 private:
  std::shared_ptr<shm::Block> block_;
  State* state_;
};

/// Makes the block of a State; `fill(state)` writes what is not zero.
template <class State, class Fill>
std::shared_ptr<shm::Block> make_state(const Naming& name, const Fill& fill) {
  return make_block(name, kind_of<State>(), [&](std::byte* state) { fill(*reinterpret_cast<State*>(state)); });
}
template <class State>
std::shared_ptr<shm::Block> make_state(const Naming& name) {
  return make_state<State>(name, [](State&) {});
}

/// A handle that travels by its block.
template <class T>
concept TravelsAsBlock = requires(const T& handle, std::shared_ptr<shm::Block> block) {
  typename T::StateType;
  { handle.block() } -> std::convertible_to<std::shared_ptr<shm::Block>>;
  T::adopt(std::move(block));
};

/// create, open and open_or_create of a primitive that takes no parameters.
template <class Derived, class State>
class Plain : public Handle<State> {
 public:
  /// Others open it by its name, until this process ends or unlinks it. Throws InvalidArgument, OutOfMemory,
  /// std::system_error, Error when the name is taken.
  static Derived create(std::string_view name) { return adopt(make_state<State>(name)); }
  /// Without a name: it travels as an argument.
  static Derived create() { return adopt(make_state<State>(std::nullopt)); }
  /// Throws Error when there is none, Incompatible, naming both, when it is something else.
  static Derived open(std::string_view name) { return adopt(open_block(name, kind_of<State>())); }
  static Derived open_or_create(std::string_view name) { return adopt(make_state<State>({name, Naming::kOrOpen})); }
  /// For codecs: a block that holds the State.
  static Derived adopt(std::shared_ptr<shm::Block> block) { return Derived(std::move(block)); }

 protected:
  using Handle<State>::Handle;
};

}  // namespace drover::inline v1::sync

namespace drover::inline v1::wire {

template <sync::TravelsAsBlock T>
struct Codec<T> {
  static void encode(Writer& writer, const T& handle) { sync::encode_block(writer, handle.block()); }
  static T decode(Reader& reader) {
    return T::adopt(sync::decode_block(reader, sync::kind_of<typename T::StateType>()));
  }
};

}  // namespace drover::inline v1::wire
