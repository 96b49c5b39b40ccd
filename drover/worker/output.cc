// SPDX-License-Identifier: Apache-2.0
#include "drover/worker/output.h"

#include <array>
#include <system_error>
#include <utility>

#include "drover/os/stream.h"

namespace drover::inline v1::worker {
namespace {

constexpr std::size_t kTailBytes = 4096;
constexpr std::size_t kLongestLine = 64 * 1024;  // a longer one is passed on in pieces
constexpr std::size_t kAtOnce = 4096;            // what write_if_ready takes whole

/// As many lines as can be written at once, so that lines of two children do not mix; a piece of one that is longer.
std::string_view whole_lines(std::string_view text) {
  if (text.size() <= kAtOnce) return text;
  const std::size_t end = text.rfind('\n', kAtOnce - 1);
  return text.substr(0, end == std::string_view::npos ? kAtOnce : end + 1);
}

constexpr auto kRetry = std::chrono::milliseconds(10);

}  // namespace

OutputPump::OutputPump(Service& service, os::Fd source, int target)
    : service_(service), source_(std::move(source)), target_(target) {
  source_.set_nonblocking();
  flush();
}

OutputPump::~OutputPump() {
  stop_watching();
  service_.forget(timer_);
}

void OutputPump::stop_watching() {
  if (key_ != 0) service_.unwatch(source_, std::exchange(key_, 0));
}

void OutputPump::on_readable() {
  if (read_some() == Read::kEnd) ended_ = true;
  flush();
}

void OutputPump::flush() {
  pass_on(false);
  const bool full = pending_.size() >= kLongestLine;
  if (full || ended_) stop_watching();  // full: our own stream takes nothing now, so the writer has to wait
  const bool watching = full || ended_ || key_ != 0 || watch_source();
  const bool blocked = full || !watching || pending_.find('\n') != std::string::npos;
  if (!blocked || timer_ != 0) return;
  timer_ = service_.at(std::chrono::steady_clock::now() + kRetry, [this] {
    timer_ = 0;
    flush();
  });
}

/// False when the system has no memory for it now.
bool OutputPump::watch_source() noexcept {
  try {
    key_ = service_.watch(source_, [this] { on_readable(); });
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

OutputPump::Read OutputPump::read_some() {
  std::array<std::byte, 16 * 1024> buffer;
  const auto n = source_.read_some(buffer);
  if (!n) return Read::kNothing;
  if (*n == 0) return Read::kEnd;
  const std::string_view text(reinterpret_cast<const char*>(buffer.data()), *n);
  pending_ += text;
  tail_ += text;
  if (tail_.size() > kTailBytes) tail_.erase(0, tail_.size() - kTailBytes);
  return Read::kMore;
}

void OutputPump::pass_on(bool whole) {
  std::size_t end = pending_.rfind('\n') + 1;  // npos + 1 is 0
  if (whole || (end == 0 && pending_.size() >= kLongestLine)) end = pending_.size();
  std::size_t written = 0;
  while (written < end) {
    const std::string_view rest = std::string_view(pending_).substr(written, end - written);
    const std::size_t n = os::write_if_ready(target_, whole_lines(rest));
    if (n == 0) break;
    written += n;
  }
  pending_.erase(0, written);
}

void OutputPump::read_rest() {
  while (pending_.size() < 2 * kLongestLine && read_some() == Read::kMore) {
  }
}

void OutputPump::finish(std::unique_ptr<OutputPump> pump) {
  pump->read_rest();
  pump->stop_watching();
  pump->service_.forget(std::exchange(pump->timer_, 0));
  drain(std::shared_ptr<OutputPump>(std::move(pump)));
}

void OutputPump::drain(const std::shared_ptr<OutputPump>& pump) {
  pump->pass_on(true);
  if (pump->pending_.empty()) return;
  pump->service_.linger(std::chrono::steady_clock::now() + kRetry, [pump] { drain(pump); });
}

}  // namespace drover::inline v1::worker
