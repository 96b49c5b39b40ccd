// SPDX-License-Identifier: Apache-2.0
#include "drover/worker/process.h"

#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <exception>
#include <mutex>
#include <string>

#include "drover/base/errors.h"
#include "drover/os/self.h"
#include "drover/os/signals.h"
#include "drover/os/throw_trace.h"
#include "drover/worker/child.h"
#include "drover/worker/init.h"

namespace drover::inline v1 {
namespace worker {
namespace {

constexpr Duration kTerminateGrace(2);
constexpr std::uint64_t kLengthOffset = kLaunchPageSize;
constexpr std::uint64_t kArgumentsOffset = kLengthOffset + 8;

}  // namespace

/// A spawned process, shared with the service thread.
class ProcessState {
 public:
  ProcessState(std::uint32_t entry, std::string_view function, std::span<const std::byte> arguments, wire::Kept kept)
      : service_(Service::shared()), file_(os::MemoryFile::create("drover-process")), kept_(std::move(kept)) {
    write_launch_page(file_);
    const std::uint64_t length = arguments.size();
    file_.write_at(kLengthOffset, std::as_bytes(std::span(&length, 1)));
    file_.write_at(kArgumentsOffset, arguments);
    ChildSpec spec;
    spec.entry = entry;
    spec.name = std::string(function);
    spec.file = &file_;
    spec.inherited = os::environment();
    spec.on_end = [this](const ChildEnd& end) { note_end(end); };
    service_->call([&] {
      child_ = Child::start(*service_, std::move(spec));
      interrupt_key_ = service_->on_interrupt([this] { note_interrupt(); });
    });
    pid_ = child_->pid();
  }

  ~ProcessState() {
    service_->call([this] {
      service_->remove_on_interrupt(interrupt_key_);
      child_.reset();
    });
  }
  ProcessState(const ProcessState&) = delete;
  ProcessState& operator=(const ProcessState&) = delete;

  const Service& service() const noexcept { return *service_; }
  int pid() const noexcept { return pid_; }

  std::optional<ExitStatus> status() const {
    const std::scoped_lock lock(mutex_);
    return status_;
  }

  bool wait(const os::Deadline& deadline, bool interruptible) {
    const auto done = [&] { return status_ || (interruptible && os::pending_interrupt() != 0); };
    std::unique_lock lock(mutex_);
    if (deadline) {
      changed_.wait_until(lock, *deadline, done);
    } else {
      changed_.wait(lock, done);
    }
    if (!status_ && interruptible && os::pending_interrupt() != 0) throw Interrupted(os::pending_interrupt());
    return status_.has_value();
  }

  void send(int signal) {
    service_->call([&] { child_->send(signal); });
  }

  void end() noexcept {
    if (status()) return;
    send(SIGTERM);
    if (os::pending_interrupt() == 0 && wait(os::deadline_after(kTerminateGrace), false)) return;
    send(SIGKILL);
    wait(os::deadline_after(kTerminateGrace),
         false);  // bounded: a process that hangs in the kernel must not take us along
  }

 private:
  void note_interrupt() {
    const std::scoped_lock lock(mutex_);  // not between a waiter's look and its sleep
    changed_.notify_all();
  }

  void note_end(const ChildEnd& end) {
    kept_.clear();
    {
      const std::scoped_lock lock(mutex_);
      status_ = end.status;
    }
    changed_.notify_all();
  }

  const std::shared_ptr<Service> service_;
  os::MemoryFile file_;
  wire::Kept kept_;               // what the arguments refer to, while the process runs; service thread
  std::shared_ptr<Child> child_;  // service thread
  Service::Key interrupt_key_ = 0;
  int pid_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<ExitStatus> status_;  // protected by mutex_
};

void EndProcess::operator()(ProcessState* state) const noexcept {
  if (!state->service().belongs_to_this_process()) return;
  state->end();
  delete state;
}

ProcessPtr start_process(std::uint32_t entry, std::string_view function, std::span<const std::byte> arguments,
                         wire::Kept kept) {
  require_init("spawn");
  return ProcessPtr(new ProcessState(entry, function, arguments, std::move(kept)));
}

SpawnedCall::SpawnedCall(ChildContext& context) {
  std::uint64_t length = 0;
  context.file.read_at(kLengthOffset, std::as_writable_bytes(std::span(&length, 1)));
  arguments_.resize(length);
  context.file.read_at(kArgumentsOffset, arguments_);
}

int SpawnedCall::report_uncaught(std::string_view function) noexcept {
  std::string what = "an exception that is no std::exception";
  try {
    throw;
  } catch (const std::exception& error) {
    what = error.what();
  } catch (...) {  // NOLINT(bugprone-empty-catch): `what` says it
  }
  std::fprintf(stderr, "drover: process %d, running %.*s, ended by an exception: %s\n", os::current_pid(),
               static_cast<int>(function.size()), function.data(), what.c_str());
  return EXIT_FAILURE;
}

}  // namespace worker

worker::ProcessState& Process::state() const {
  if (!state_) throw InvalidArgument("this Process is empty: it was moved from or never started");
  state_->service().require_owner();  // in a fork nothing tells of its end, and the mutex may be locked for ever
  return *state_;
}

int Process::pid() const { return state().pid(); }
void Process::join() { state().wait({}, true); }
bool Process::join_for(Duration duration) { return state().wait(os::deadline_after(duration), true); }
std::optional<ExitStatus> Process::exit_status() const { return state().status(); }
void Process::terminate() { state().send(SIGTERM); }
void Process::kill() { state().send(SIGKILL); }

}  // namespace drover::inline v1
