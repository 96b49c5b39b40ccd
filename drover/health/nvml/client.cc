// SPDX-License-Identifier: Apache-2.0
#include "drover/health/nvml/client.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "drover/health/nvml/abi.h"

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
      return {DriverState::kGpuFault,
              "a GPU is lost or needs a reset, and keeps the driver from starting; see dmesg for Xid, reset or reboot"};
    case kInsufficientPower:
      return {DriverState::kFailed, "a GPU's power cables are not attached rightly"};
    case kTimeout:
      return {DriverState::kFailed, "the driver waited for a GPU in vain; see dmesg"};
    case kCorruptedInforom:
      return {DriverState::kFailed, "a GPU's InfoROM is damaged; see dmesg, and ask the vendor"};
    case kUnknown:
      return {DriverState::kFailed, "the driver failed within; see dmesg"};
    default:
      return {DriverState::kFailed, nullptr};
  }
}

}  // namespace

/// It ended, or found no driver: that may be different by now.
bool Client::Session::of_no_use() const {
  return helper.ended() || (ready && (!ready->load_error.empty() || ready->gpus == 0));
}

void Client::begin() {
  const bool again = session_ && session_->of_no_use() && devices_ > 0;
  if (again && Clock::now() - session_->started_at >= kRestart) session_.reset();
  if (!session_) session_.emplace();
  session_->round.assign(session_->last.size(), std::nullopt);
  ++session_->number;
  asked_at_ = Clock::now();
  // Nobody waits for one that does not read its requests.
  if (session_->silent) return;
  const helper::Request request{.round = session_->number, .limit_s = deadline_.count()};
  session_->helper.send(encode(request), asked_at_);
}

DriverSample Client::finish() {
  const auto end = asked_at_ + std::chrono::duration_cast<Clock::duration>(deadline_);
  while (const auto message = session_->helper.receive(asked_at_)) take(*message);  // what came late, without waiting
  const bool was_silent = session_->silent && !session_->ready;
  while (!was_silent && !session_->complete()) {
    const auto message = session_->helper.receive(session_->ready ? end + helper::kTelling : end);
    if (!message) break;
    take(*message);
  }
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
  } else if (auto answer = helper::decode_answer(message.payload)) {
    const auto index = static_cast<std::size_t>(answer->gpu.index);
    if (index >= session.round.size()) return;
    session.stuck[index].clear();
    session.last[index] = answer->gpu;
    if (answer->round == session.number || session.silent) session.round[index] = std::move(answer->gpu);
  }
}

DriverSample Client::assemble() const {
  DriverSample sample;
  describe_failure(sample);
  for (std::size_t i = 0; i < session_->round.size(); ++i) {
    sample.gpus.push_back(session_->round[i] ? *session_->round[i] : without_answer(i));
  }
  return sample;
}

GpuSample Client::without_answer(std::size_t index) const {
  const bool ended = session_->helper.ended();
  GpuSample gpu;
  if (session_->last[index]) gpu = *session_->last[index];
  gpu.index = static_cast<int>(index);
  std::string stuck = session_->stuck[index];
  if (stuck.empty() && !ended && session_->helper.uninterruptible()) stuck = "a call";
  helper::mark_unanswered(gpu, stuck, ended ? "" : helper::kDoesNotRun);
  return gpu;
}

/// What is known about an initialisation that does not come back: it may be slow, or never return. Slow ones wait
/// uninterruptibly, too.
void Client::describe_silence(DriverSample& sample) const {
  const std::string pid = std::to_string(session_->helper.pid());
  sample.uninterruptible =
      session_->helper.uninterruptible() && Clock::now() - session_->started_at >= helper::kSurelyHangs;
  sample.problem =
      sample.uninterruptible
          ? "the driver does not answer: pid " + pid + " hangs in it, uninterruptible; see dmesg for Xid or NVRM"
          : "the driver did not answer while it was initialised; without persistence mode that can take "
            "several seconds: try a longer --deadline, or --window 60s to know whether it hangs";
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
  if (ended) {
    sample.state = DriverState::kFailed;
    sample.problem = "the process that calls the driver's library was killed, or ended by a fault of the library";
  } else if (!ready->load_error.empty()) {
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
