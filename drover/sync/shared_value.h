// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "drover/base/hash.h"
#include "drover/sync/lock_word.h"
#include "drover/sync/shared.h"
#include "drover/wire/image.h"
#include "drover/wire/memcpy_trait.h"

namespace drover::inline v1 {

namespace sync {

/// A value as words, which are read and written one by one; padding is zero.
template <class T>
using Image = std::array<std::uint64_t, (sizeof(T) + 7) / 8>;

template <class T>
Image<T> image_of(const T& value) noexcept {
  Image<T> image{};
  wire::store_image(reinterpret_cast<std::byte*>(image.data()), value);
  return image;
}
/// Throws Incompatible for bytes that are no T (a bool that is neither true nor false).
template <class T>
T value_of(const Image<T>& image) {
  wire::Reader reader(std::as_bytes(std::span(image)));
  return wire::load_image<T>(reader);
}

/// Two places: the one that is valid, and the one that the next writer fills. `version` says which is which, so a
/// writer that is killed at any instruction leaves the old value or the new one.
class DoubleBuffer {
 public:
  explicit DoubleBuffer(std::atomic<std::uint64_t>& version, std::span<std::atomic<std::uint64_t>> words) noexcept
      : version_(version), words_(words) {}

  /// False when writers were faster, several times.
  bool try_load(std::span<std::uint64_t> image) const noexcept;
  /// These two under the lock.
  void load(std::span<std::uint64_t> image) const noexcept;
  void store(std::span<const std::uint64_t> image) noexcept;

 private:
  std::span<std::atomic<std::uint64_t>> place(std::uint64_t version) const noexcept {
    const std::size_t half = words_.size() / 2;
    return words_.subspan(version % 2 * half, half);
  }

  std::atomic<std::uint64_t>& version_;
  std::span<std::atomic<std::uint64_t>> words_;
};

template <class T>
struct SharedValueState {
  static constexpr bool kIsWord = sizeof(T) <= 8;
  static std::string kind_name() { return "SharedValue<" + std::string(wire::type_name<T>()) + ">"; }
  /// Two types whose names begin alike differ here.
  static std::uint64_t type_hash() noexcept { return base::hash_text(wire::type_name<T>()) + sizeof(T); }
  static constexpr std::uint32_t kVersion = 1;
  void join() noexcept { lock.join(); }

  DoubleBuffer buffer() noexcept { return DoubleBuffer(version, words); }

  LockWord lock;                       ///< of writers, and of readers that had no luck
  std::atomic<std::uint64_t> version;  ///< these two only for values of more than 8 bytes
  std::array<std::atomic<std::uint64_t>, kIsWord ? 1 : 2 * std::tuple_size_v<Image<T>>> words;
};

}  // namespace sync

/// A value that processes share. Nobody ever reads one that is half written, also not when a writer is killed: then the
/// old value stays. Values of up to 8 bytes are lock-free; larger ones are read without waiting and written under a
/// lock: for as long as its holder is stopped, calls wait, and throw Interrupted when SIGINT or SIGTERM comes.
///
/// T as what travels by memcpy. Thread-safe. Any process that has a handle. Copies refer to the same value.
template <class T>
requires wire::travels_by_memcpy<T> &&(!std::is_array_v<T>)class SharedValue
    : public sync::Handle<sync::SharedValueState<T>> {
  using State = sync::SharedValueState<T>;
  static constexpr bool kIsWord = State::kIsWord;

 public:
  SharedValue() : SharedValue(T{}) {}
  explicit SharedValue(const T& value) : SharedValue(make(std::nullopt, value), Adopted{}) {}

  /// Throws InvalidArgument, OutOfMemory, std::system_error, Error when the name is taken.
  static SharedValue create(std::string_view name, const T& value = T{}) { return adopt(make(name, value)); }
  static SharedValue create() { return SharedValue(T{}); }
  /// Throws Error when there is none, Incompatible, naming both, when it is something else, or has another type.
  static SharedValue open(std::string_view name) { return adopt(sync::open_block(name, sync::kind_of<State>())); }
  /// What is there keeps its value.
  static SharedValue open_or_create(std::string_view name, const T& value = T{}) {
    return adopt(make({name, sync::Naming::kOrOpen}, value));
  }
  /// For codecs.
  static SharedValue adopt(std::shared_ptr<shm::Block> block) { return SharedValue(std::move(block), Adopted{}); }

  T load() const {
    sync::Image<T> image{};
    if constexpr (kIsWord) {
      image[0] = word().load(std::memory_order_acquire);
    } else if (!state().buffer().try_load(image)) {
      const Locked locked(*this);
      state().buffer().load(image);
    }
    return sync::value_of<T>(image);
  }

  void store(const T& value) { store_image(sync::image_of(value)); }

  /// Stores f(value) and returns it; no other change comes in between. Up to 8 bytes f may be called several times,
  /// else it runs under the lock: it must not use this SharedValue (std::system_error), and should not wait. What it
  /// throws leaves the old value.
  template <std::invocable<const T&> F>
  T update(const F& f) {
    if constexpr (kIsWord) {
      std::uint64_t seen = word().load(std::memory_order_acquire);
      for (;;) {
        const T next = f(sync::value_of<T>({seen}));
        if (word().compare_exchange_weak(seen, sync::image_of(next)[0], std::memory_order_acq_rel)) return next;
      }
    } else {
      const Locked locked(*this);
      sync::Image<T> image{};
      state().buffer().load(image);
      const T next = f(sync::value_of<T>(image));
      state().buffer().store(sync::image_of(next));
      return next;
    }
  }

  /// Adds, modulo the size of T, and returns the value before.
  T fetch_add(T summand) requires(std::integral<T> && !std::same_as<T, bool>) {
    if constexpr (sizeof(T) == 8) {
      return static_cast<T>(word().fetch_add(static_cast<std::uint64_t>(summand), std::memory_order_acq_rel));
    } else {
      const auto sum = [summand](T value) {
        return static_cast<T>(static_cast<Wide>(value) + static_cast<Wide>(summand));
      };
      return static_cast<T>(static_cast<Wide>(update(sum)) - static_cast<Wide>(summand));
    }
  }

 private:
  using Wide = std::uint64_t;
  struct Adopted {};
  SharedValue(std::shared_ptr<shm::Block> block, Adopted) : sync::Handle<State>(std::move(block)) {}
  using sync::Handle<State>::state;

  /// Holds the lock. What it guards is whole whoever died.
  class Locked {
   public:
    explicit Locked(const SharedValue& value) : lock_(value.state().lock) {
      const sync::Lock result = lock_.lock({.interruptible = true});
      if (result == sync::Lock::kRelocked) sync::throw_relocked(sync::describe("shared value", *value.block()));
      if (!sync::is_locked(result)) sync::throw_interrupted();
    }
    ~Locked() { static_cast<void>(lock_.unlock()); }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;

   private:
    sync::LockWord& lock_;
  };

  static std::shared_ptr<shm::Block> make(const sync::Naming& name, const T& value) {
    return sync::make_state<State>(name, [&value](State& state) {
      const auto image = sync::image_of(value);
      for (std::size_t i = 0; i < image.size(); ++i) state.words[i].store(image[i], std::memory_order_relaxed);
    });
  }

  void store_image(const sync::Image<T>& image) {
    if constexpr (kIsWord) {
      word().store(image[0], std::memory_order_release);
    } else {
      const Locked locked(*this);
      state().buffer().store(image);
    }
  }

  std::atomic<std::uint64_t>& word() const noexcept { return state().words[0]; }
};

}  // namespace drover::inline v1
