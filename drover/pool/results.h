// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "drover/os/signals.h"
#include "drover/pool/map_job.h"
#include "drover/wire/arguments.h"

namespace drover::inline v1 {

/// The results of a map: a move-only input range that is filled while it is read. The work began when it was made;
/// dropping it cancels what has not begun. One thread at a time.
///
/// An item whose task failed throws at `*it`; `++it` goes on to the next. After a range-for that was left by an
/// exception or by break, another one goes on behind the item that was looked at last.
///
/// In a fork of the process they can only be dropped, which does nothing there: the next step throws Error.
template <class T>
class [[nodiscard]] Results {
 public:
  explicit Results(detail::MapPtr map) : map_(std::move(map)) {}

  class Iterator {
   public:
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using iterator_concept = std::input_iterator_tag;

    Iterator() = default;
    explicit Iterator(Results* results) : results_(results) {}

    /// The result, decoded once; it may be moved from. Throws the item's error.
    T&& operator*() const { return results_->value(); }
    /// Which input it belongs to, counted from 0. Never throws.
    std::size_t index() const { return results_->item_->index; }
    /// Waits for the next item. Throws Interrupted, what the input range threw, or why the pool has ended.
    Iterator& operator++() {
      results_->advance();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return results_->item_ == nullptr; }

   private:
    Results* results_ = nullptr;
  };

  /// Waits for the first item that was not looked at yet. Throws as ++ does.
  Iterator begin() {
    if (!started_ || looked_at_) advance();
    return Iterator(this);
  }
  std::default_sentinel_t end() const noexcept { return {}; }

  /// All results that are left. Throws the first error; the rest can still be read.
  std::vector<T> collect() {
    std::vector<T> values;
    for (auto it = begin(); it != end(); ++it) values.push_back(*it);
    return values;
  }

  /// The same results as (index, value) pairs, for range-for: `for (auto&& [index, value] : results.indexed())`.
  /// Borrows.
  class Indexed {
   public:
    class Iterator {
     public:
      using value_type = std::pair<std::size_t, T>;
      using difference_type = std::ptrdiff_t;
      using iterator_concept = std::input_iterator_tag;
      Iterator() = default;
      explicit Iterator(typename Results::Iterator at) : at_(at) {}
      std::pair<std::size_t, T&&> operator*() const { return {at_.index(), *at_}; }
      Iterator& operator++() {
        ++at_;
        return *this;
      }
      void operator++(int) { ++at_; }
      bool operator==(std::default_sentinel_t end) const { return at_ == end; }

     private:
      typename Results::Iterator at_;
    };
    explicit Indexed(Results& results) : results_(results) {}
    Iterator begin() const { return Iterator(results_.begin()); }
    std::default_sentinel_t end() const noexcept { return {}; }

   private:
    Results& results_;
  };
  Indexed indexed() & { return Indexed(*this); }

 private:
  void advance() {
    if (const int signal = os::pending_interrupt()) throw Interrupted(signal);
    map_->core()->require_owner();  // what a batch holds is memory that the other process gives back
    started_ = true;
    value_.reset();
    if (item_ != nullptr) {
      ++consumed_;
      if (to_next_of_batch()) {
        looked_at_ = false;
        if (consumed_ == due_) top_up();
        return;
      }
      item_ = nullptr;
    }
    looked_at_ = true;  // when next() throws, a new begin() has to go on from here
    map_->count_delivered(std::exchange(consumed_, 0));
    const std::span<detail::MapItem> batch = map_->next();
    looked_at_ = false;
    item_ = batch.empty() ? nullptr : batch.data();
    end_ = batch.data() + batch.size();
    due_ = map_->due();
  }

  bool to_next_of_batch() noexcept {
    if constexpr (std::is_same_v<T, std::monostate>) {
      if (item_->more != 0) {
        --item_->more;
        ++item_->index;
        return true;
      }
    }
    return ++item_ != end_;
  }

  void top_up() {
    map_->count_delivered(std::exchange(consumed_, 0));
    map_->top_up();
    due_ = map_->due();
  }

  T&& value() {
    looked_at_ = true;
    if (item_->failed) std::rethrow_exception(map_->error());
    if (!value_) decode();
    return std::move(*value_);
  }

  void decode() {
    if constexpr (std::is_same_v<T, std::monostate>) {
      value_.emplace();
    } else if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
      std::memcpy(&value_.emplace(), item_->data, sizeof(T));
    } else {
      wire::Reader reader(std::span(item_->data, item_->size));
      value_.emplace(wire::decode<T>(reader));
    }
  }

  detail::MapPtr map_;
  detail::MapItem* item_ = nullptr;  ///< in a batch that ends at end_; nullptr at the end of all
  detail::MapItem* end_ = nullptr;
  std::uint64_t consumed_ = 0;  ///< items that map_ was not told of yet
  std::uint64_t due_ = 0;       ///< as many as it wants to be told of at once
  std::optional<T> value_;
  bool started_ = false;
  bool looked_at_ = false;
};

}  // namespace drover::inline v1
