// SPDX-License-Identifier: Apache-2.0
#include "drover/health/probe/xid_log.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "drover/os/file_system.h"

namespace drover::inline v1::health {
namespace {

constexpr std::size_t kMostSeen = 4096;  // of which the newest are kept
constexpr double kLongest = 1e10;        // seconds since boot

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" '");
  return first == text.npos ? std::string_view() : text.substr(first, text.find_last_not_of(" '") - first + 1);
}

/// Takes what stands before `separator` off `text`; nothing when there is none.
std::optional<std::string_view> take_until(std::string_view& text, char separator) {
  const std::size_t at = text.find(separator);
  if (at == text.npos) return std::nullopt;
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(at + 1);
  return part;
}

/// The heading "priority,sequence,microseconds,flags": the time in seconds, if the kernel itself wrote it.
std::optional<double> time_of_kernel(std::string_view heading) {
  const auto priority = take_until(heading, ',');
  const auto sequence = take_until(heading, ',');
  if (!priority || !sequence) return std::nullopt;
  const auto level = os::parse_number(*priority), time = os::parse_number(heading.substr(0, heading.find(',')));
  if (!level || !time || *level >= 8) return std::nullopt;  // 8 and more: a facility, so a program wrote it
  const double seconds = 1e-6 * static_cast<double>(*time);
  return seconds <= kLongest ? std::optional(seconds) : std::nullopt;
}

std::optional<std::array<std::uint64_t, 3>> parts_of(std::string_view bus) {
  std::array<std::uint64_t, 3> parts{};
  bus = bus.substr(0, bus.find('.'));
  for (std::uint64_t& part : parts) {
    const std::string_view text = bus.substr(0, bus.find(':'));
    bus.remove_prefix(std::min(text.size() + 1, bus.size()));
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), part, 16);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  }
  return bus.empty() ? std::optional(parts) : std::nullopt;
}

}  // namespace

std::optional<LoggedXid> parse_xid_record(std::string_view line) {
  const auto heading = take_until(line, ';');
  const auto time = heading ? time_of_kernel(*heading) : std::nullopt;
  constexpr std::string_view kStart = "NVRM: Xid (";
  if (!time || line.substr(0, kStart.size()) != kStart) return std::nullopt;
  line.remove_prefix(kStart.size());
  if (line.substr(0, 4) == "PCI:") line.remove_prefix(4);
  const auto bus = take_until(line, ')');
  if (!bus || !parts_of(*bus) || line.substr(0, 2) != ": ") return std::nullopt;
  line.remove_prefix(2);
  const auto number = os::parse_number(line.substr(0, line.find(',')));
  if (!number || *number > 100'000) return std::nullopt;
  LoggedXid xid{*number, *time, std::string(*bus), 0, {}};
  while (take_until(line, ',')) {
    const std::string_view item = trimmed(line.substr(0, line.find(',')));
    if (item.substr(0, 4) == "pid=") {
      const auto pid = os::parse_number(trimmed(item.substr(4)));
      if (pid && *pid <= (1U << 22U)) xid.pid = static_cast<int>(*pid);
    } else if (item.substr(0, 5) == "name=") {
      xid.name = trimmed(item.substr(5)).substr(0, 64);
    }
  }
  return xid;
}

bool same_bus(std::string_view a, std::string_view b) {
  const auto one = parts_of(a), other = parts_of(b);
  return one && other && *one == *other;
}

void XidLog::fill(DriverSample& driver, double suspended) {
  if (!log_) log_.emplace(path_);
  text_.clear();
  const os::Access access = log_->read_new(text_);
  if (access == os::Access::kDenied) driver.log_problem = "the kernel's log may not be read (needs root)";
  if (access == os::Access::kGone) driver.log_problem = "there is no kernel's log here (in a container it is hidden)";
  std::string_view rest = text_;
  while (!rest.empty()) {
    if (auto xid = parse_xid_record(os::take_line(rest))) seen_.push_back(std::move(*xid));
  }
  if (seen_.size() > kMostSeen) seen_.erase(seen_.begin(), seen_.end() - kMostSeen);
  for (const LoggedXid& xid : seen_) {
    const auto at = std::find_if(driver.gpus.begin(), driver.gpus.end(),
                                 [&](const GpuSample& gpu) { return same_bus(gpu.bus, xid.bus); });
    std::vector<LoggedXid>& logged = at != driver.gpus.end() ? at->logged : driver.logged_elsewhere;
    logged.push_back(xid);
    logged.back().at += suspended;
  }
}

}  // namespace drover::inline v1::health
