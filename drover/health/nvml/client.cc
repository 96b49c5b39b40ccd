// SPDX-License-Identifier: Apache-2.0
#include "drover/health/nvml/client.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <string_view>
#include <system_error>
#include <utility>

#include "drover/health/nvml/abi.h"
#include "drover/health/nvml/helper.h"
#include "drover/health/probe/proc_text.h"
#include "drover/os/epoll.h"
#include "drover/os/futex.h"
#include "drover/os/host_files.h"
#include "drover/os/socket_pair.h"

namespace drover::inline v1::health::nvml {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Duration kEndGrace{0.05};           // a helper that can end does so at once
constexpr std::chrono::seconds kRestart{10};  // after which a helper that ended is tried anew, in a long watch

struct Failure {
  DriverState state;
  const char* problem;
};

/// What nvmlInit's answer means, and what to do about it.
Failure failure_of(int code) {
  switch (code) {
    case kDriverNotLoaded:
      return {DriverState::kNotLoaded,
              "the kernel module nvidia is not loaded; load it (modprobe nvidia), or see dmesg"};
    case kMismatch:
      return {DriverState::kMismatch,
              "driver and library are of different versions; reboot, or unload and load the kernel module"};
    case kNoPermission:
      return {DriverState::kNoPermission,
              "no permission for the device files /dev/nvidia*; run it as root, or ask for access"};
    case kOperatingSystem:
      return {
          DriverState::kBlocked,
          "the operating system blocks the device files: in a container its cgroup does; give the container the GPUs"};
    case kGpuIsLost:
    case kResetRequired:
      return {DriverState::kFailed,
              "a GPU has failed and keeps the driver from starting; see dmesg for Xid, reset or reboot"};
    default:
      return {DriverState::kFailed, nullptr};
  }
}

}  // namespace

Client::~Client() { end_helper(); }

void Client::end_helper() noexcept {
  requests_.reset();  // the helper ends by itself when it can
  answers_.reset();
  if (!helper_) return;
  helper_->send(SIGKILL);
  try {
    const os::Epoll epoll;
    epoll.add(helper_->pidfd(), 0);
    epoll.wait(os::deadline_after(kEndGrace));
    helper_->try_reap();
  } catch (const std::system_error&) {  // no descriptor left: it ends all the same, unreaped
  }
}

void Client::begin() {
  if (ended_ && Clock::now() - started_at_ >= kRestart) forget_helper();
  if (!helper_) start_helper();
  round_.assign(last_.size(), std::nullopt);
  asked_at_ = Clock::now();
  // The helper tells what hangs a little before the deadline.
  const double tenths = std::clamp(std::floor(deadline_.count() * 10 * 0.9), 1.0, 255.0);
  if (!ended_ && !silent_ && !os::send_byte(requests_, static_cast<std::byte>(tenths))) {
    ended_ = true;  // it is gone, or 64 KiB of requests were never read
  }
}

void Client::forget_helper() {
  end_helper();
  helper_.reset();
  reader_ = {};
  ready_.reset();
  round_.clear();
  last_.clear();
  stuck_.clear();
  ended_ = silent_ = false;
}

void Client::start_helper() {
  started_at_ = Clock::now();
  os::SocketPair requests = os::make_socket_pair();
  os::Pipe answers = os::make_pipe();
  const os::Fd null = os::open_null();
  helper_.emplace(os::ChildProcess::spawn({.program = "/proc/self/exe",
                                           .arguments = {kHelperName},
                                           .environment = helper_environment(),
                                           .descriptors = {requests.far.get(), answers.write_end.get(), null.get()}}));
  requests_ = std::move(requests.near);
  answers_ = std::move(answers.read_end);
  requests_.set_nonblocking();
  answers_.set_nonblocking();
}

DriverSample Client::finish() {
  const auto end = asked_at_ + std::chrono::duration_cast<Clock::duration>(deadline_);
  receive_until(silent_ ? Clock::now() : end);
  if (silent_ && ready_) receive_until(end);  // the answers to the first request come right behind
  silent_ = !ready_ && !ended_;
  return assemble();
}

bool Client::complete() const {
  if (ended_) return true;
  if (!ready_) return false;
  for (std::size_t i = 0; i < round_.size(); ++i) {
    if (!round_[i] && stuck_[i].empty()) return false;
  }
  return true;
}

void Client::receive_until(Clock::time_point end) {
  const os::Epoll epoll;
  epoll.add(answers_, 0);
  while (!complete()) {
    if (epoll.wait(end).empty() && Clock::now() >= end) return;
    std::array<std::byte, 16'384> buffer;
    const auto count = answers_.read_some(buffer);
    if (!count) continue;
    if (*count == 0) ended_ = true;
    reader_.add({buffer.data(), *count});
    while (const auto message = reader_.next()) take(*message);
    if (reader_.broken()) ended_ = true;
  }
}

void Client::take(const MessageReader::Message& message) {
  if (message.kind == MessageKind::kReady) {
    auto ready = decode_ready(message.payload);
    if (!ready || ready_) {
      ended_ = true;
      return;
    }
    last_.assign(ready->gpus, std::nullopt);
    round_ = last_;
    stuck_.assign(ready->gpus, {});
    ready_ = std::move(ready);
  } else if (message.kind == MessageKind::kStuck) {
    if (auto stuck = decode_stuck(message.payload); stuck && stuck->gpu < stuck_.size())
      stuck_[stuck->gpu] = stuck->call;
  } else if (auto gpu = decode_gpu(message.payload); gpu && static_cast<std::size_t>(gpu->index) < round_.size()) {
    const auto index = static_cast<std::size_t>(gpu->index);
    stuck_[index].clear();
    last_[index] = round_[index] = std::move(gpu);
  }
}

DriverSample Client::assemble() {
  DriverSample sample;
  describe_failure(sample);
  for (std::size_t i = 0; i < round_.size(); ++i) {
    if (round_[i]) {
      sample.gpus.push_back(*round_[i]);
      continue;
    }
    GpuSample gpu;
    if (last_[i]) {  // who it is and what was on it; the numbers are old
      gpu = *last_[i];
      gpu.readings.fill({Reading::kTimeout, 0});
      gpu.active.clear();
      gpu.xids.clear();
    }
    gpu.index = static_cast<int>(i);
    gpu.processes = gpu.activity = {Reading::kTimeout, 0};
    gpu.stuck_in = !stuck_[i].empty() ? stuck_[i] : ended_ ? "a call that ended the process" : "a call";
    sample.gpus.push_back(std::move(gpu));
  }
  return sample;
}

/// What is known about an initialisation that does not come back: it may be slow, or never return.
void Client::describe_silence(DriverSample& sample) const {
  const std::string pid = std::to_string(helper_->pid());
  const os::HostFolder tasks("/proc/" + pid + "/task");
  for (const int tid : tasks.numbers()) {
    ProcessBrief brief;
    const auto text = tasks.text((std::to_string(tid) + "/stat").c_str(), 4096);
    if (!text || !parse_stat(*text, brief) || brief.state != 'D') continue;
    sample.uninterruptible = true;
    sample.problem =
        "the driver does not answer: pid " + pid + " hangs in it, uninterruptible; see dmesg for Xid or NVRM";
    return;
  }
  sample.problem =
      "the driver did not answer while it was initialised; without persistence mode that can take several seconds: try "
      "a "
      "longer --deadline";
}

void Client::describe_failure(DriverSample& sample) const {
  if (!ready_) {
    sample.state = ended_ ? DriverState::kFailed : DriverState::kNotAnswering;
    sample.problem = "the process that calls the driver's library ended at once; see dmesg";
    if (!ended_) describe_silence(sample);
    if (ended_ && devices_ == 0) sample.state = DriverState::kNoGpu;  // started by a loader or valgrind, perhaps
    return;
  }
  sample.version = ready_->version;
  sample.cuda = ready_->cuda;
  sample.state = DriverState::kOk;
  if (!ready_->load_error.empty()) {
    sample.state = devices_ > 0 ? DriverState::kNoLibrary : DriverState::kNoGpu;
    sample.problem = devices_ > 0
                         ? "there is an NVIDIA device, but libnvidia-ml.so.1 cannot be loaded; install the driver (" +
                               ready_->load_error + ")"
                         : "";
  } else if (ready_->code != kSuccess) {
    const Failure failure = failure_of(ready_->code);
    sample.state = failure.state;
    sample.problem = failure.problem != nullptr
                         ? failure.problem
                         : "the driver answered error " + std::to_string(ready_->code) + "; see dmesg";
    if (devices_ == 0 && failure.state == DriverState::kNotLoaded) {
      sample.state = DriverState::kNoGpu;
      sample.problem = "libnvidia-ml is installed, but there is no NVIDIA device";
    }
  } else if (ready_->gpus == 0) {
    sample.state = DriverState::kNoGpu;
    sample.problem = "the driver runs, but shows no GPU (hidden from this container or user, or off the bus)";
  }
}

}  // namespace drover::inline v1::health::nvml
