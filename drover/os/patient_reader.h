// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace drover::inline v1::os {

/// Asks one question of many subjects, where an answer may never come. Commands, environments and memory maps of a
/// process lie in its memory, and the kernel gives them only while nobody there has locked the map of that memory: when
/// a thread hangs in the kernel with that lock, whoever reads them waits with it (so `ps` hangs on such a machine). So
/// another thread asks, and one that does not come back is left behind. It can be killed while it waits, so it keeps
/// nobody from ending. `question` may throw std::bad_alloc: the answer is Answer{} then. One thread at a time.
template <class Subject, class Answer>
class PatientReader {
  struct Batch;

 public:
  using Question = Answer (*)(const Subject&);

  /// Of one subject. A value; copies are the same request.
  class Request {
   public:
    Request() = default;
    /// nullptr: it has not come back, or nothing was asked. An answer may come late.
    const Answer* answer() const noexcept {
      if (batch_ == nullptr) return nullptr;
      const std::lock_guard lock(batch_->mutex);
      return index_ < batch_->done ? &batch_->answers[index_] : nullptr;
    }
    /// It has not come back yet.
    bool pending() const noexcept { return batch_ != nullptr && answer() == nullptr; }

   private:
    friend class PatientReader;
    Request(std::shared_ptr<Batch> batch, std::size_t index) : batch_(std::move(batch)), index_(index) {}
    std::shared_ptr<Batch> batch_;
    std::size_t index_ = 0;
  };

  /// Waited for without any answer: for the first one that hangs, and for each other.
  static constexpr std::chrono::milliseconds kPatience{250}, kMoment{20};

  /// One request for each subject. Comes back when all have answered, or those that have not were waited for; the first
  /// one for `patience`. A subject is let go once it has answered: only those that hang are kept.
  std::vector<Request> ask(std::vector<Subject> subjects, Question question,
                           std::chrono::milliseconds patience = kPatience) {
    std::vector<Request> requests;
    while (!subjects.empty()) {
      const auto batch = std::make_shared<Batch>();
      batch->subjects = subjects;
      batch->answers.resize(subjects.size());
      try {
        std::thread([batch, question] { run(*batch, question); }).detach();
      } catch (const std::system_error&) {  // no thread left: it is asked here, come what may
        run(*batch, question);
      }
      const std::size_t asked = std::min(wait_for(*batch, patience) + 1, subjects.size());  // with the one that hangs
      for (std::size_t i = 0; i < asked; ++i) requests.push_back(Request(batch, i));
      subjects.erase(subjects.begin(), subjects.begin() + static_cast<std::ptrdiff_t>(asked));
      patience = kMoment;
    }
    return requests;
  }

 private:
  /// Belongs to all requests and to the thread that serves them.
  struct Batch {
    std::vector<Subject> subjects;
    std::vector<Answer> answers;
    std::mutex mutex;
    std::condition_variable changed;
    std::size_t done = 0;   // under mutex; the answers before it never change again
    bool given_up = false;  // under mutex: nobody wants what comes after the one that hangs
  };

  static void run(Batch& batch, Question question) {
    for (std::size_t i = 0; i < batch.subjects.size(); ++i) {
      try {
        batch.answers[i] = question(batch.subjects[i]);
      } catch (const std::bad_alloc&) {  // then nothing is known of it
      }
      batch.subjects[i] = Subject();
      const std::lock_guard lock(batch.mutex);
      batch.done = i + 1;
      if (batch.given_up) return;
    }
    batch.changed.notify_all();
  }

  /// How many answered before one hung: no more came within `patience`.
  static std::size_t wait_for(Batch& batch, std::chrono::milliseconds patience) {
    std::unique_lock lock(batch.mutex);
    const auto all = [&] { return batch.done == batch.subjects.size(); };
    for (std::size_t before = 0; !batch.changed.wait_for(lock, patience, all); before = batch.done) {
      if (batch.done == before) break;
    }
    batch.given_up = true;
    // It is at the one that hangs, if any, and looks at no other one any more.
    for (std::size_t i = batch.done + 1; i < batch.subjects.size(); ++i) batch.subjects[i] = Subject();
    return batch.done;
  }
};

}  // namespace drover::inline v1::os
