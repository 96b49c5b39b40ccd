// SPDX-License-Identifier: Apache-2.0
#include "fault/jobs.h"

#include <numeric>
#include <stdexcept>
#include <type_traits>
#include <variant>

namespace drover_test {
namespace {

constexpr std::size_t kWideBytes = 20'000;  // stands in the ring, thirteen times; the next is spilled
constexpr drover::Duration kLongLimit(60);
constexpr std::size_t kSpilledBytes = 100'000;  // fits no ring and no entry

std::int64_t answer(std::int64_t i) { return i * i * 7 + 3; }

std::int64_t small_task(std::int64_t i) { return answer(i); }

std::int64_t text_task(const std::string& text) { return answer(std::stoll(text)); }

std::vector<std::int64_t> filled(std::int64_t i, std::size_t bytes) {
  std::vector<std::int64_t> values(bytes / 8);
  std::iota(values.begin(), values.end(), answer(i));
  return values;
}

std::vector<std::int64_t> wide_task(std::int64_t i) { return filled(i, kWideBytes); }

std::vector<std::int64_t> spilled_task(std::int64_t i) { return filled(i, kSpilledBytes); }

std::vector<std::int64_t> echo_task(const std::vector<std::int64_t>& values) { return values; }

void void_task(std::int64_t i) {
  if (i < 0) throw std::runtime_error("no such item");
}

std::int64_t offset_by_initializer = 0;
void set_offset(std::int64_t offset) { offset_by_initializer = offset; }
std::int64_t initialized_task(std::int64_t i) { return answer(i) - 5 + offset_by_initializer; }

bool right(std::monostate, std::size_t) { return true; }
bool right(std::int64_t value, std::size_t i) { return value == answer(static_cast<std::int64_t>(i)); }

bool right(const std::vector<std::int64_t>& values, std::size_t i) {
  const std::size_t bytes = values.size() * 8;
  return (bytes == kWideBytes || bytes == kSpilledBytes) && values == filled(static_cast<std::int64_t>(i), bytes);
}

template <class Take>
void count_one(Tally& tally, std::size_t index, const Take& take) {
  try {
    if (right(take(), index)) {
      ++tally.delivered.at(index);
    } else {
      tally.problems.push_back("item " + std::to_string(index) + " has a wrong result");
    }
  } catch (const drover::WorkerLost& lost) {
    ++tally.lost.at(index);
    if (lost.pid() == 0) tally.problems.push_back(std::string("a loss without a cause: ") + lost.what());
  }
}

template <class R>
void count_results(Tally& tally, drover::Results<R> results, bool ordered, bool leave = false) {
  std::size_t expected = 0;
  for (auto it = results.begin(); it != results.end(); ++it) {
    const std::size_t index = it.index();
    if (ordered && index != expected++) tally.problems.push_back("item " + std::to_string(index) + " out of order");
    count_one(tally, index, [&]() -> R { return *it; });
    if (leave && expected == tally.delivered.size()) return;
  }
}

template <auto F, class MakeArgument>
void count_futures(Tally& tally, drover::Pool& pool, const drover::CallOptions& options, const MakeArgument& argument,
                   bool drop_others = false) {
  using R = decltype(pool.submit<F>(argument(0)).get());
  std::vector<drover::Future<R>> futures;
  for (std::size_t i = 0; i < tally.delivered.size(); ++i) {
    futures.push_back(pool.with(options).submit<F>(argument(static_cast<std::int64_t>(i))));
    if (drop_others) static_cast<void>(pool.with(options).submit<F>(argument(static_cast<std::int64_t>(i))));
  }
  for (std::size_t i = 0; i < futures.size(); ++i) {
    count_one(tally, i, [&] {
      if constexpr (std::is_void_v<R>) {
        futures[i].get();
        return std::monostate();
      } else {
        return futures[i].get();
      }
    });
  }
}

}  // namespace

std::size_t Tally::total_lost() const { return static_cast<std::size_t>(std::accumulate(lost.begin(), lost.end(), 0)); }

std::string Tally::complaint() const {
  std::string text;
  for (const std::string& problem : problems) text += problem + "\n";
  for (std::size_t i = 0; i < delivered.size(); ++i) {
    if (delivered[i] + lost[i] == 1) continue;
    text += "item " + std::to_string(i) + ": delivered " + std::to_string(delivered[i]) + " times, lost " +
            std::to_string(lost[i]) + " times\n";
  }
  return text;
}

drover::PoolOptions pool_for(Job job, std::size_t workers) {
  drover::PoolOptions options{.workers = workers};
  if (job == Job::kInitialized) options.initializer = drover::call<set_offset>(5);
  return options;
}

namespace {

void run_submits(Tally& tally, drover::Pool& pool, Job job, std::size_t retries) {
  const auto number = [](std::int64_t i) { return i; };
  const drover::CallOptions options{.retries = retries};
  switch (job) {
    case Job::kSubmitSpilled:
      return count_futures<echo_task>(tally, pool, options, [](std::int64_t i) { return filled(i, kSpilledBytes); });
    case Job::kSubmitVoid:
      return count_futures<void_task>(tally, pool, options, number);
    case Job::kSubmitTimed:
      return count_futures<small_task>(tally, pool, {.retries = retries, .timeout = kLongLimit}, number);
    case Job::kDropped:
      return count_futures<spilled_task>(tally, pool, options, number, true);
    case Job::kInitialized:
      return count_futures<initialized_task>(tally, pool, options, number);
    default:
      return count_futures<small_task>(tally, pool, options, number);
  }
}

}  // namespace

Tally run_job(drover::Pool& pool, Job job, std::size_t items, std::size_t retries) {
  Tally tally(items);
  const auto indices = drover::range(std::int64_t{0}, static_cast<std::int64_t>(items));
  switch (job) {
    case Job::kOrdered:
      count_results(tally, pool.map<small_task>(indices, {.chunk = 1, .retries = retries}), true);
      break;
    case Job::kUnordered:
      count_results(tally, pool.map<small_task>(indices, {.ordered = false, .retries = retries}), false);
      break;
    case Job::kChunked:
      count_results(tally, pool.map<small_task>(indices, {.chunk = 4, .retries = retries}), true);
      break;
    case Job::kStream: {
      std::vector<std::string> inputs;
      for (std::size_t i = 0; i < items; ++i)
        inputs.push_back(std::string(i % 5 == 4 ? 300 : 1, '0') + std::to_string(i));
      count_results(tally, pool.map<text_task>(std::move(inputs), {.chunk = 3, .retries = retries}), true);
      break;
    }
    case Job::kWide:
      count_results(tally, pool.map<wide_task>(indices, {.ordered = false, .chunk = 2, .retries = retries}), false);
      break;
    case Job::kSpilled:
      count_results(tally, pool.map<spilled_task>(indices, {.retries = retries}), true);
      break;
    case Job::kVoid:
      count_results(tally, pool.map<void_task>(indices, {.chunk = 1, .retries = retries}), true);
      break;
    case Job::kVoidChunked:
      count_results(tally, pool.map<void_task>(indices, {.ordered = false, .chunk = 4, .retries = retries}), false);
      break;
    case Job::kTimed:
      count_results(tally, pool.map<small_task>(indices, {.chunk = 2, .timeout = kLongLimit, .retries = retries}),
                    true);
      break;
    case Job::kLeft: {
      const auto more = drover::range(std::int64_t{0}, static_cast<std::int64_t>(items) * 3);
      count_results(tally, pool.map<small_task>(more, {.chunk = 2, .retries = retries}), true, true);
      break;
    }
    default:
      run_submits(tally, pool, job, retries);
  }
  return tally;
}

}  // namespace drover_test
