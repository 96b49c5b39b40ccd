// SPDX-License-Identifier: Apache-2.0
#include "drover/health/drm/probe_client.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "drover/os/host_files.h"

namespace drover::inline v1::health::drm {
namespace {

std::string argument(const std::string& root, bool container, bool wake) {
  const char bits = static_cast<char>((container ? kContainer : 0) | (wake ? kWake : 0));
  return static_cast<char>('0' + bits) + root;
}

}  // namespace

ProbeClient::ProbeClient(std::string root, bool container, bool wake, Duration deadline)
    : root_(std::move(root)), argument_(argument(root_, container, wake)), deadline_(deadline) {}

bool ProbeClient::needed() {
  auto names = os::HostFolder(root_ + "/sys/class/drm").names().value_or(std::vector<std::string>());
  std::sort(names.begin(), names.end());
  if (names != names_) {
    names_ = std::move(names);
    devices_ = find_devices(root_);
    helper_.reset();  // it counts them anew
    hung_.clear();
  }
  return !devices_.empty();
}

const ProbeClient::Hung* ProbeClient::hung(std::size_t device) const {
  const auto at = std::find_if(hung_.begin(), hung_.end(),
                               [&](const Hung& one) { return one.device == device || one.device == kAny; });
  return at != hung_.end() ? &*at : nullptr;
}

std::vector<std::uint32_t> ProbeClient::all_hung() const {
  std::vector<std::uint32_t> indices;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    if (hung(i) != nullptr) indices.push_back(static_cast<std::uint32_t>(i));
  }
  return indices;
}

void ProbeClient::begin(const std::vector<ProcessBrief>& processes, double at) {
  round_.assign(devices_.size(), std::nullopt);
  asked_at_ = Clock::now();
  std::erase_if(hung_, [&](const Hung& one) { return asked_at_ >= one.until && one.helper->end(); });
  not_asked_.clear();
  helper::Request request{.limit_s = deadline_.count(), .at = at, .leave_alone = all_hung(), .processes = processes};
  if (request.leave_alone.size() == devices_.size()) return;
  try {
    if (!helper_ || helper_->ended()) helper_ = std::make_unique<helper::Process>(kRole, argument_);
    started_ = true;
    helper_->send(helper::encode(request), asked_at_ + std::chrono::duration_cast<Clock::duration>(deadline_));
  } catch (const std::system_error& error) {  // no process, no descriptor left: nothing is known of them in this look
    not_asked_ = std::string("no process could be started to look at it: ") + error.what();
    helper_.reset();
  }
}

std::vector<GpuSample> ProbeClient::finish() {
  const auto end = asked_at_ + std::chrono::duration_cast<Clock::duration>(deadline_) + helper::kTelling;
  bool going_on = helper_ != nullptr;
  while (going_on) {
    const auto message = helper_->receive(end);
    going_on = message && take(*message);
    if (!message) explain_silence();
  }
  std::vector<GpuSample> result;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    const Hung* const reason = hung(i);
    result.push_back(round_[i] ? std::move(*round_[i]) : silent(i, reason != nullptr ? reason->what : std::string()));
  }
  return result;
}

/// Not even what hangs was told.
void ProbeClient::explain_silence() {
  if (helper_->ended()) {
    not_asked_ = "the process that looks at it was killed, or ended by a fault; look again";
  } else if (helper_->uninterruptible()) {
    give_up(kAny, "reading its files");
  } else {
    not_asked_ = helper::kDoesNotRun;
    helper_.reset();
  }
}

/// False when it was the last one of this round.
bool ProbeClient::take(const helper::MessageReader::Message& message) {
  if (message.kind == helper::MessageKind::kStuck) {
    const auto stuck = helper::decode_stuck(message.payload);
    if (!stuck || stuck->gpu >= devices_.size()) return true;
    give_up(stuck->gpu, stuck->call);
    not_asked_ = "in this look another GPU hung before it was its turn; look again";
    return helper_ != nullptr;
  }
  if (message.kind != helper::MessageKind::kGpu) return false;
  auto answer = helper::decode_answer(message.payload);
  if (!answer) return true;
  GpuSample& gpu = answer->gpu;
  for (std::size_t i = 0; i < devices_.size(); ++i) {  // one that has come this moment may have moved the others
    if (devices_[i].slot != gpu.bus) continue;
    gpu.index = static_cast<int>(i);
    round_[i] = std::move(gpu);
    break;
  }
  return true;
}

/// The next look has a helper that leaves this GPU alone.
void ProbeClient::give_up(std::size_t device, const std::string& what) {
  helper_->end();
  const auto pause = std::chrono::duration_cast<Clock::duration>(2 * deadline_);
  hung_.push_back({std::move(helper_), device, what, Clock::now() + pause});
}

GpuSample ProbeClient::silent(std::size_t device, const std::string& what) const {
  GpuSample gpu;
  gpu.index = static_cast<int>(device);
  devices_[device].identify(gpu);
  helper::mark_unanswered(gpu, what, not_asked_);
  return gpu;
}

std::vector<GpuSample> ProbeClient::unasked(const std::string& what) const {
  std::vector<GpuSample> result;
  for (std::size_t i = 0; i < devices_.size(); ++i) result.push_back(silent(i, what));
  return result;
}

}  // namespace drover::inline v1::health::drm
