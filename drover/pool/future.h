// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "drover/base/errors.h"
#include "drover/pool/core.h"
#include "drover/wire/arguments.h"

namespace drover::inline v1 {
namespace detail {

/// A submitted task, without its type. Move-only; one thread at a time.
class TaskHandle {
 public:
  TaskHandle() = default;
  TaskHandle(std::shared_ptr<PoolCore> core, SubmitEntry& entry) : core_(std::move(core)), entry_(&entry) {}
  ~TaskHandle() { detach(); }
  TaskHandle(TaskHandle&& other) noexcept
      : core_(std::move(other.core_)), entry_(std::exchange(other.entry_, nullptr)) {}
  TaskHandle& operator=(TaskHandle&& other) noexcept {
    if (this == &other) return *this;
    detach();
    core_ = std::move(other.core_);
    entry_ = std::exchange(other.entry_, nullptr);
    return *this;
  }

  bool valid() const noexcept { return entry_ != nullptr; }
  bool ready() const { return SubmitQueue::finished(entry()) || !core_->usable(); }
  bool wait(const os::Deadline& deadline) const {
    SubmitEntry& task = entry();  // throws before the pool, which is not there then, is looked at
    return core_->submits().wait(task, deadline);
  }
  bool cancel() const {
    SubmitEntry& task = entry();
    core_->require_owner();
    return core_->submits().cancel(task);
  }

  /// Waits, then reads the result where it lies. Leaves the handle empty.
  template <class Read>
  void take(const Read& read) {
    wait({});
    const std::shared_ptr<PoolCore> core = std::move(core_);
    core->submits().take(*std::exchange(entry_, nullptr), read);
  }

 private:
  SubmitEntry& entry() const {
    if (entry_ == nullptr) throw InvalidArgument("this Future has no task: it was moved from, or its result was taken");
    return *entry_;
  }
  void detach() noexcept {
    if (entry_ != nullptr) core_->submits().detach(*std::exchange(entry_, nullptr));
  }

  std::shared_ptr<PoolCore> core_;
  SubmitEntry* entry_ = nullptr;
};

}  // namespace detail

/// The result of a submitted task, once it is there. Move-only; one thread at a time, different futures from different
/// threads. A dropped Future detaches: its task runs all the same, unless the pool ends before the task begins. In a
/// fork of the process it can only be dropped, which does nothing there; all else throws Error, and so it is ready().
template <class R>
class [[nodiscard]] Future {
 public:
  Future() = default;
  explicit Future(detail::TaskHandle task) : task_(std::move(task)) {}

  /// False when default-made, moved from, or read.
  bool valid() const noexcept { return task_.valid(); }

  /// Waits and gives the result, once. Throws the task's exception, WorkerLost, Timeout (of its own time limit),
  /// Cancelled, Interrupted, or why the pool has ended.
  R get() {
    if constexpr (std::is_void_v<R>) {
      task_.take([](std::span<const std::byte>) {});
    } else {
      std::optional<R> value;
      task_.take([&value](std::span<const std::byte> bytes) {
        wire::Reader reader(bytes);
        value.emplace(wire::decode<R>(reader));
      });
      return std::move(*value);
    }
  }

  /// Whether get would answer at once: with the result, its error, or why nothing can come any more.
  bool ready() const { return task_.ready(); }
  void wait() const { task_.wait({}); }
  /// Waits at most so long; true when the result, or its error, is there.
  bool wait_for(Duration duration) const { return task_.wait(os::deadline_after(duration)); }
  /// Takes the task back if no worker has begun it: true, and get throws Cancelled. A running task is left alone.
  bool cancel() { return task_.cancel(); }

 private:
  detail::TaskHandle task_;
};

}  // namespace drover::inline v1
