// SPDX-License-Identifier: Apache-2.0
#include "drover/health/nvml/client.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "drover/health/nvml/abi.h"
#include "drover/health/probe/proc_text.h"
#include "drover/os/host_files.h"

namespace drover::inline v1::health::nvml {
namespace {

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

void Client::begin() {
  if (session_ && session_->helper.ended() && Clock::now() - session_->started_at >= kRestart) session_.reset();
  if (!session_) session_.emplace();
  session_->round.assign(session_->last.size(), std::nullopt);
  asked_at_ = Clock::now();
  // It tells what hangs a little before the deadline. Nobody waits for one that does not read its requests.
  if (!session_->silent) session_->helper.send(encode(helper::Request{.limit_s = deadline_.count() * 0.9}), asked_at_);
}

DriverSample Client::finish() {
  const auto end = asked_at_ + std::chrono::duration_cast<Clock::duration>(deadline_);
  const bool was_silent = session_->silent;
  receive_until(was_silent ? Clock::now() : end);
  if (was_silent && session_->ready) receive_until(end);  // the answers to the first request come right behind
  session_->silent = !session_->ready && !session_->helper.ended();
  return assemble();
}

bool Client::Session::complete() const {
  if (!ready) return false;
  for (std::size_t i = 0; i < round.size(); ++i) {
    if (!round[i] && stuck[i].empty()) return false;
  }
  return true;
}

void Client::receive_until(Clock::time_point end) {
  while (!session_->complete()) {
    const auto message = session_->helper.receive(end);
    if (!message) return;
    take(*message);
  }
}

void Client::take(const helper::MessageReader::Message& message) {
  Session& session = *session_;
  if (message.kind == helper::MessageKind::kReady) {
    auto ready = helper::decode_ready(message.payload);
    if (!ready || session.ready) return session.helper.call_ended();
    session.round.assign(ready->gpus, std::nullopt);
    session.last = session.round;
    session.stuck.assign(ready->gpus, {});
    session.ready = std::move(ready);
  } else if (message.kind == helper::MessageKind::kStuck) {
    const auto stuck = helper::decode_stuck(message.payload);
    if (stuck && stuck->gpu < session.stuck.size()) session.stuck[stuck->gpu] = stuck->call;
  } else if (auto gpu = helper::decode_gpu(message.payload)) {
    const auto index = static_cast<std::size_t>(gpu->index);
    if (index >= session.round.size()) return;
    session.stuck[index].clear();
    session.last[index] = session.round[index] = std::move(gpu);
  }
}

DriverSample Client::assemble() const {
  DriverSample sample;
  describe_failure(sample);
  const auto& [helper, started_at, ready, silent, round, last, stuck] = *session_;
  for (std::size_t i = 0; i < round.size(); ++i) {
    if (round[i]) {
      sample.gpus.push_back(*round[i]);
      continue;
    }
    GpuSample gpu;
    if (last[i]) {  // who it is and what was on it; the numbers are old
      gpu = *last[i];
      gpu.readings.fill({Reading::kTimeout, 0});
      gpu.active.clear();
      gpu.xids.clear();
    }
    gpu.index = static_cast<int>(i);
    gpu.processes = gpu.activity = {Reading::kTimeout, 0};
    gpu.stuck_in = !stuck[i].empty() ? stuck[i] : helper.ended() ? "a call that ended the process" : "a call";
    sample.gpus.push_back(std::move(gpu));
  }
  return sample;
}

/// What is known about an initialisation that does not come back: it may be slow, or never return.
void Client::describe_silence(DriverSample& sample) const {
  const std::string pid = std::to_string(session_->helper.pid());
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
  const auto& ready = session_->ready;
  const bool ended = session_->helper.ended();
  if (!ready) {
    sample.state = ended ? DriverState::kFailed : DriverState::kNotAnswering;
    sample.problem = "the process that calls the driver's library ended at once; see dmesg";
    if (!ended) describe_silence(sample);
    if (ended && devices_ == 0) sample.state = DriverState::kNoGpu;  // started by a loader or valgrind, perhaps
    return;
  }
  sample.version = ready->version;
  sample.cuda = ready->cuda;
  sample.state = DriverState::kOk;
  if (!ready->load_error.empty()) {
    sample.state = devices_ > 0 ? DriverState::kNoLibrary : DriverState::kNoGpu;
    sample.problem = devices_ > 0
                         ? "there is an NVIDIA device, but libnvidia-ml.so.1 cannot be loaded; install the driver (" +
                               ready->load_error + ")"
                         : "";
  } else if (ready->code != kSuccess) {
    const Failure failure = failure_of(ready->code);
    sample.state = failure.state;
    sample.problem = failure.problem != nullptr
                         ? failure.problem
                         : "the driver answered error " + std::to_string(ready->code) + "; see dmesg";
    if (devices_ == 0 && failure.state == DriverState::kNotLoaded) {
      sample.state = DriverState::kNoGpu;
      sample.problem = "libnvidia-ml is installed, but there is no NVIDIA device";
    }
  } else if (ready->gpus == 0) {
    sample.state = DriverState::kNoGpu;
    sample.problem = "the driver runs, but shows no GPU (hidden from this container or user, or off the bus)";
  }
}

}  // namespace drover::inline v1::health::nvml
