// SPDX-License-Identifier: Apache-2.0
#include "drover/health/probe/proc_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "drover/os/file_system.h"

namespace drover::inline v1::health {
namespace {

using os::parse_number;
using os::take_line;
using os::take_word;

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t kMaxCpus = 65'536;
constexpr std::size_t kMostOfVariable = 256;  // a user could write megabytes of it into everybody's report

std::uint64_t sum(std::uint64_t a, std::uint64_t b) { return a > kMost - b ? kMost : a + b; }

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::optional<int> parse_int(std::string_view text) {
  int value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

/// What follows `key` and a colon in the first line that begins so, without blanks around it.
std::optional<std::string_view> value_of(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (line.size() > key.size() && line.substr(0, key.size()) == key && line[key.size()] == ':') {
      return trimmed(line.substr(key.size() + 1));
    }
  }
  return std::nullopt;
}

bool has_kill_bit(std::optional<std::string_view> mask) {
  std::uint64_t bits = 0;
  if (!mask || std::from_chars(mask->data(), mask->data() + mask->size(), bits, 16).ec != std::errc()) return false;
  constexpr unsigned kSigkill = 9;
  return (bits >> (kSigkill - 1) & 1U) != 0;
}

/// The port of "0100007F:1F90"; 0 when there is none.
int port_of(std::string_view address) {
  const std::string_view digits = address.substr(std::min(address.rfind(':'), address.size() - 1) + 1);
  int port = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, port, 16);
  return error == std::errc() && stop == end && port <= 0xFFFF ? port : 0;
}

/// The number at `index` of a line of numbers; 0 when it is not there.
std::uint64_t number_at(std::string_view line, int index) {
  for (; index > 0; --index) take_word(line);
  return parse_number(take_word(line)).value_or(0);
}

CpuTimes times_of(std::string_view numbers) {
  std::array<std::uint64_t, 8> column{};  // user nice system idle iowait irq softirq steal; guest is part of user
  for (std::uint64_t& value : column) value = parse_number(take_word(numbers)).value_or(0);
  CpuTimes times;
  for (const std::uint64_t value : column) times.total = sum(times.total, value);
  const std::uint64_t rest = sum(column[3], column[4]);
  times.busy = times.total - std::min(times.total, rest);
  times.iowait = column[4];
  times.steal = column[7];
  return times;
}

double share_of(std::string_view line, std::string_view key) {
  const std::size_t at = line.find(key);
  if (at == line.npos) return 0;
  double value = 0;
  std::from_chars(line.data() + at + key.size(), line.data() + line.size(), value);
  return value >= 0 && value <= 100 ? value / 100 : 0;
}

}  // namespace

bool parse_stat(std::string_view text, ProcessBrief& brief) {
  const std::size_t open = text.find('('), close = text.rfind(')');
  if (open == text.npos || close == text.npos || close < open) return false;
  const auto pid = parse_number(text.substr(0, open));
  if (!pid || *pid == 0 || *pid > std::numeric_limits<int>::max()) return false;
  brief.pid = static_cast<int>(*pid);
  brief.name.assign(text.substr(open + 1, close - open - 1));
  std::string_view rest = text.substr(close + 1);
  rest = rest.substr(0, rest.find('\n'));
  const std::string_view state = take_word(rest);
  if (state.size() != 1) return false;
  brief.state = state.front();
  brief.parent = parse_int(take_word(rest)).value_or(0);
  brief.group = parse_int(take_word(rest)).value_or(0);
  brief.session = parse_int(take_word(rest)).value_or(0);
  // Behind the session (field 6): utime and stime are fields 14 and 15, num_threads is 20, starttime is 22.
  for (int field = 7; field < 14; ++field) take_word(rest);
  const auto user = parse_number(take_word(rest)), system = parse_number(take_word(rest));
  for (int field = 16; field < 20; ++field) take_word(rest);
  brief.threads = parse_int(take_word(rest)).value_or(0);
  take_word(rest);
  const auto start = parse_number(take_word(rest));
  if (!user || !system || !start) return false;
  brief.cpu_ticks = sum(*user, *system);
  brief.start_ticks = *start;
  return true;
}

StatusFields parse_status(std::string_view text) {
  StatusFields fields;
  if (auto uids = value_of(text, "Uid")) {
    take_word(*uids, '\t');
    const auto uid = parse_number(take_word(*uids, '\t'));
    if (uid && *uid <= std::numeric_limits<std::uint32_t>::max()) fields.uid = static_cast<std::uint32_t>(*uid);
  }
  fields.kill_pending = has_kill_bit(value_of(text, "SigPnd")) || has_kill_bit(value_of(text, "ShdPnd"));
  fields.tracer = parse_int(value_of(text, "TracerPid").value_or("0")).value_or(0);
  if (auto numbers = value_of(text, "NSpid")) {
    int count = 0;
    while (!numbers->empty()) {
      fields.inner_pid = parse_int(take_word(*numbers, '\t')).value_or(0);
      ++count;
    }
    if (count < 2) fields.inner_pid = 0;
  }
  return fields;
}

std::optional<std::uint64_t> parse_io(std::string_view text) {
  const auto read = os::keyed_number(text, "rchar:"), written = os::keyed_number(text, "wchar:");
  if (!read || !written) return std::nullopt;
  return sum(*read, *written);
}

std::map<std::string, std::string> parse_environ(std::string_view text, const std::vector<std::string>& wanted) {
  std::map<std::string, std::string> found;
  while (!text.empty()) {
    const std::string_view entry = text.substr(0, text.find('\0'));
    text.remove_prefix(std::min(entry.size() + 1, text.size()));
    const std::size_t equals = entry.find('=');
    if (equals == entry.npos) continue;
    const std::string name(entry.substr(0, equals));
    if (std::find(wanted.begin(), wanted.end(), name) != wanted.end())
      found.emplace(name, entry.substr(equals + 1, kMostOfVariable));
  }
  return found;
}

std::string parse_cmdline(std::string_view text, std::size_t most) {
  while (!text.empty() && text.back() == '\0') text.remove_suffix(1);
  std::string command(text.substr(0, most));
  std::replace(command.begin(), command.end(), '\0', ' ');
  return command;
}

std::string parse_process_cgroup(std::string_view text) {
  std::string_view best;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    const std::size_t slash = line.find(":/");
    if (slash == line.npos) continue;
    const std::string_view path = line.substr(slash + 1);
    if (path.size() > best.size()) best = path;
  }
  return std::string(best.substr(0, 4096));
}

std::optional<CpuTable> parse_cpu_times(std::string_view text) {
  CpuTable table;
  bool found = false;
  while (!text.empty()) {
    std::string_view line = take_line(text);
    const std::string_view name = take_word(line);
    if (name.substr(0, 3) != "cpu") break;  // the CPUs come first
    if (name.size() == 3) {
      table.all = times_of(line);
      found = true;
      continue;
    }
    const auto number = parse_number(name.substr(3));
    if (!number || *number >= kMaxCpus) continue;
    if (table.cpus.size() <= *number) table.cpus.resize(static_cast<std::size_t>(*number) + 1);
    table.cpus[static_cast<std::size_t>(*number)] = times_of(line);
  }
  return found ? std::optional(std::move(table)) : std::nullopt;
}

std::map<std::string, std::uint64_t> parse_meminfo(std::string_view text) {
  std::map<std::string, std::uint64_t> result;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    const std::size_t colon = line.find(':');
    if (colon == line.npos || colon == 0 || colon > 64) continue;
    std::string_view value = trimmed(line.substr(colon + 1));
    const auto number = parse_number(take_word(value));
    if (!number) continue;
    const bool kib = trimmed(value) == "kB";  // the kernel's kB are 1,024 bytes
    result.emplace(line.substr(0, colon), !kib ? *number : *number > (kMost >> 10U) ? kMost : *number << 10U);
  }
  return result;
}

std::optional<Pressure> parse_pressure(std::string_view text) {
  Pressure pressure;
  bool found = false;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (line.substr(0, 5) == "some ") {
      found = true;
      pressure.some10 = share_of(line, "avg10=");
      pressure.some60 = share_of(line, "avg60=");
    } else if (line.substr(0, 5) == "full ") {
      pressure.full10 = share_of(line, "avg10=");
      pressure.full60 = share_of(line, "avg60=");
    }
  }
  return found ? std::optional(pressure) : std::nullopt;
}

int parse_first_free_port(std::string_view text) {
  constexpr std::uint64_t kLowest = 10'000, kUsual = 32'768, kHighest = 65'536;
  const auto first = parse_number(text.substr(0, text.find_first_not_of("0123456789")));
  return static_cast<int>(std::clamp(first.value_or(kUsual), kLowest, kHighest));
}

bool is_port_of_service(int port, int first_free) {
  constexpr int kGrpc = 50'051;
  // ncclras; the port of PyTorch's tutorial, and of its examples. Not TensorBoard's: that is a process of its own, and
  // where only its port is forwarded others serve there.
  static constexpr std::array<int, 3> kOfTraining = {28'028, 12'355, 23'456};
  if (std::find(kOfTraining.begin(), kOfTraining.end(), port) != kOfTraining.end()) return false;
  if (port >= 29'500 && port < 29'600) return false;  // PyTorch's default, and the next ones of further jobs
  return port < first_free || port == kGrpc;
}

std::vector<std::uint64_t> parse_listening(std::string_view text, int first_free) {
  std::vector<std::uint64_t> inodes;
  take_line(text);  // the heading
  while (!text.empty()) {
    std::string_view line = take_line(text);
    take_word(line);  // number
    const std::string_view local = take_word(line);
    take_word(line);                        // remote address
    if (take_word(line) != "0A") continue;  // TCP_LISTEN
    const int port = port_of(local);
    const std::uint64_t inode = number_at(line, 5);  // queues, timer, retransmits, uid, timeout
    if (inode != 0 && port > 0 && is_port_of_service(port, first_free)) inodes.push_back(inode);
  }
  return inodes;
}

std::optional<std::uint64_t> socket_inode(std::string_view link) {
  constexpr std::string_view kStart = "socket:[";
  if (link.substr(0, kStart.size()) != kStart || link.back() != ']') return std::nullopt;
  return parse_number(link.substr(kStart.size(), link.size() - kStart.size() - 1));
}

std::optional<int> nvidia_minor(std::string_view path) {
  constexpr std::string_view kStart = "/dev/nvidia";
  if (path.substr(0, kStart.size()) != kStart || path.size() > kStart.size() + 4) return std::nullopt;
  const std::string_view digits = path.substr(kStart.size());
  if (digits.empty() || digits.find_first_not_of("0123456789") != digits.npos) return std::nullopt;
  return parse_int(digits);
}

bool is_nvidia_control(std::string_view path) {
  return path == "/dev/nvidiactl" || path.substr(0, 15) == "/dev/nvidia-uvm";
}

}  // namespace drover::inline v1::health
