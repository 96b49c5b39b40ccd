// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <type_traits>
#include <utility>

#include "drover/pool/future.h"
#include "drover/pool/options.h"
#include "drover/pool/range.h"
#include "drover/pool/results.h"
#include "drover/pool/stats.h"
#include "drover/pool/thunks.h"

namespace drover::inline v1 {
namespace detail {

/// A user's range as a source of encoded inputs: a borrowed lvalue, or an rvalue that moved in.
template <auto F, class Range>
class RangeSource final : public InputSource {
 public:
  explicit RangeSource(Range&& range) : range_(std::forward<Range>(range)) {}

  bool next(wire::Writer& writer) override {
    if (!at_) {
      at_.emplace(std::ranges::begin(range_));
    } else if (!ended_) {
      ++*at_;
    }
    ended_ = ended_ || *at_ == std::ranges::end(range_);
    if (ended_) return false;
    wire::encode_element<F>(writer, **at_);
    return true;
  }

 private:
  Range range_;  // a reference when the user's range is an lvalue
  std::optional<std::ranges::iterator_t<std::remove_reference_t<Range>>> at_;
  bool ended_ = false;
};

template <class T>
inline constexpr bool is_index_range = false;
template <class T>
inline constexpr bool is_index_range<IndexRange<T>> = true;

template <auto F, wire::Thunk T>
MapSpec map_spec(const MapOptions& options) {
  check_options(options);
  MapSpec spec;
  spec.options = options;
  spec.job.function = wire::Registered<F, T>::index();
  spec.job.value_size = fixed_result_size<wire::ResultOf<F>>;
  spec.job.measured = options.chunk == 0;
  spec.job.timeout_ns = static_cast<std::uint64_t>(options.timeout.count() * 1e9);
  spec.name = wire::function_name(wire::function_text<decltype(F), F>());
  return spec;
}

}  // namespace detail

/// Worker processes that run functions of this program. Functions are given as template arguments; their arguments and
/// results travel (see wire/codec.h), exceptions come back.
///
/// Threads: thread-safe. Processes: only the creating one; a worker may make pools of its own.
/// Needs drover::init first in main. What it gave out (Results, Future) may outlive it.
class Pool {
 public:
  /// Starts the workers and does not wait for them. Throws InvalidArgument without init, std::system_error and Error
  /// when processes cannot be started.
  template <std::same_as<PoolOptions> S = PoolOptions>
  explicit Pool(S options = {}) : core_(detail::PoolCore::make(options)) {}
  /// Cancels what no worker has begun, waits for running tasks at most PoolOptions::grace, and ends the workers.
  ~Pool() {
    if (core_) core_->close();
  }
  Pool(Pool&&) noexcept = default;
  Pool& operator=(Pool&&) = delete;

  /// Calls F for each element of an input range; the results stream back. A range that is an lvalue is borrowed until
  /// the Results are gone, an rvalue moves in. An element is spread over F's parameters when F does not take it whole.
  template <auto F, std::ranges::input_range Range>
  Results<detail::ResultValue<wire::ResultOf<F>>> map(Range&& range, const MapOptions& options = {}) {
    wire::check_callable<F>();
    using Element = std::ranges::range_reference_t<Range>;
    static_assert(!wire::Callable<F> || wire::TakesElement<F, Element>,
                  "the function takes neither an element of the range nor its parts");
    using Plain = std::remove_cvref_t<Range>;
    if constexpr (detail::is_index_range<Plain>) {
      detail::MapSpec spec = detail::map_spec<F, &detail::index_thunk<F, std::ranges::range_value_t<Plain>>>(options);
      spec.job.indexed = true;
      spec.job.base = static_cast<std::int64_t>(range.front());
      spec.count = range.size();
      return make_results<F>(std::move(spec), nullptr);
    } else {
      return make_results<F>(detail::map_spec<F, &detail::input_thunk<F>>(options),
                             std::make_unique<detail::RangeSource<F, Range>>(std::forward<Range>(range)));
    }
  }

  /// Calls F once, some time. Arguments are converted to the parameter types, encoded and, when they are large, copied
  /// to shared memory here; workers, and what other threads submit, are not waited for. Throws OutOfMemory.
  template <auto F, class... Argument>
  Future<wire::ResultOf<F>> submit(Argument&&... argument) {
    return submit_with<F>({}, std::forward<Argument>(argument)...);
  }

  /// A pool with options for one call: `pool.with({.retries = 2}).submit<area>(2.0, 3.0)`. Borrows the pool.
  class With {
   public:
    With(Pool& pool, const CallOptions& options) : pool_(pool), options_(options) {}
    template <auto F, class... Argument>
    Future<wire::ResultOf<F>> submit(Argument&&... argument) const {
      return pool_.submit_with<F>(options_, std::forward<Argument>(argument)...);
    }

   private:
    Pool& pool_;
    CallOptions options_;
  };
  With with(const CallOptions& options) {
    detail::check_options(options);
    return {*this, options};
  }

  /// What the workers did so far, and what they are at.
  PoolStats stats() const { return core_->stats(); }

 private:
  template <auto F>
  Results<detail::ResultValue<wire::ResultOf<F>>> make_results(detail::MapSpec spec,
                                                               std::unique_ptr<detail::InputSource> source) {
    return Results<detail::ResultValue<wire::ResultOf<F>>>(
        detail::start_map(core_, std::move(spec), std::move(source)));
  }

  template <auto F, class... Argument>
  Future<wire::ResultOf<F>> submit_with(const CallOptions& options, Argument&&... argument) {
    wire::check_callable<F>();
    if constexpr (wire::Callable<F>) {  // one message about what is refused is enough
      alignas(wire::kMessageAlignment) std::byte lent[detail::SubmitEntry::kInlineArguments];
      wire::Kept kept;
      wire::Writer writer(lent);
      writer.keep_in(&kept);
      wire::encode_arguments<F>(writer, std::forward<Argument>(argument)...);
      const std::uint32_t function = wire::Registered<F, &detail::submit_thunk<F>>::index();
      detail::SubmitEntry& entry = core_->submits().submit(function, writer.bytes(), std::move(kept), options);
      return Future<wire::ResultOf<F>>(detail::TaskHandle(core_, entry));
    } else {
      return {};
    }
  }

  std::shared_ptr<detail::PoolCore> core_;
};

}  // namespace drover::inline v1
