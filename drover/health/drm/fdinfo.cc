// SPDX-License-Identifier: Apache-2.0
#include "drover/health/drm/fdinfo.h"

#include <algorithm>
#include <array>
#include <limits>

#include "drover/os/file_system.h"

namespace drover::inline v1::health::drm {
namespace {

using os::parse_number;
using os::take_line;
using os::take_word;

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
constexpr std::size_t kMostNames = 64;  // engines, and regions of memory
constexpr std::uint32_t kMostCapacity = 1024;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlanks);
  return first == text.npos ? std::string_view() : text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

/// "123 KiB", "5 MiB", or bytes without a unit.
std::optional<std::uint64_t> memory_value(std::string_view text) {
  const auto number = parse_number(take_word(text));
  const std::string_view unit = trimmed(text);
  if (!number || !(unit.empty() || unit == "KiB" || unit == "MiB" || unit == "GiB")) return std::nullopt;
  const unsigned shift = unit == "KiB" ? 10 : unit == "MiB" ? 20 : unit == "GiB" ? 30 : 0;
  return *number > (kMost >> shift) ? kMost : *number << shift;
}

/// Memory by where it lies. Some drivers tell the same under several keys: what is resident counts, or else its older
/// name, or else what was allocated.
struct Region {
  std::string name;
  std::array<std::optional<std::uint64_t>, 3> told;  ///< resident, memory, total

  std::optional<std::uint64_t> bytes() const {
    const auto first = std::find_if(told.begin(), told.end(), [](const auto& value) { return value.has_value(); });
    return first == told.end() ? std::nullopt : *first;
  }
  bool video() const { return name.substr(0, 4) == "vram" || name.substr(0, 5) == "local"; }
};

template <class Named>
Named* named(std::vector<Named>& all, std::string_view name) {
  const auto at = std::find_if(all.begin(), all.end(), [&](const Named& one) { return one.name == name; });
  if (at != all.end()) return &*at;
  if (name.empty() || name.size() > 32 || all.size() >= kMostNames) return nullptr;
  Named& added = all.emplace_back();
  added.name = name;
  return &added;
}

/// Whether `key` begins with `prefix`, which is then taken off.
bool take_prefix(std::string_view& key, std::string_view prefix) {
  if (key.substr(0, prefix.size()) != prefix) return false;
  key.remove_prefix(prefix.size());
  return true;
}

void read_engine(Client& client, std::string_view key, std::string_view value) {
  enum class Kind { kCapacity, kNanoseconds, kTotal, kCycles };
  Kind kind = Kind::kCapacity;  // the longer names first: one begins like another
  if (take_prefix(key, "drm-engine-capacity-")) {
  } else if (take_prefix(key, "drm-engine-")) {
    kind = Kind::kNanoseconds;
  } else if (take_prefix(key, "drm-total-cycles-")) {
    kind = Kind::kTotal;
  } else if (take_prefix(key, "drm-cycles-")) {
    kind = Kind::kCycles;
  } else {
    return;
  }
  const auto number = parse_number(take_word(value));
  Engine* const engine = number ? named(client.engines, key) : nullptr;
  if (engine == nullptr) return;
  if (kind == Kind::kNanoseconds) engine->ns = number;
  if (kind == Kind::kTotal) engine->total_cycles = number;
  if (kind == Kind::kCycles) engine->cycles = number;
  if (kind == Kind::kCapacity && *number > 0 && *number <= kMostCapacity)
    engine->capacity = static_cast<std::uint32_t>(*number);
}

void read_region(std::vector<Region>& regions, std::string_view key, std::string_view value) {
  if (key.find("-cycles-") != key.npos) return;
  static constexpr std::array<std::string_view, 3> kPrefixes = {"drm-resident-", "drm-memory-", "drm-total-"};
  for (std::size_t i = 0; i < kPrefixes.size(); ++i) {
    if (!take_prefix(key, kPrefixes[i])) continue;
    const auto bytes = memory_value(value);
    Region* const region = bytes ? named(regions, key) : nullptr;
    if (region != nullptr) region->told[i] = bytes;
    return;
  }
}

void add_up(Client& client, const std::vector<Region>& regions) {
  for (const Region& region : regions) {
    const auto bytes = region.bytes();
    if (!bytes) continue;
    auto& sum = region.video() ? client.video_bytes : client.system_bytes;
    sum = *bytes > kMost - sum.value_or(0) ? kMost : sum.value_or(0) + *bytes;
  }
}

}  // namespace

std::optional<Client> parse_fdinfo(std::string_view text) {
  Client client;
  std::vector<Region> regions;
  bool has_id = false;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    const std::size_t colon = line.find(':');
    if (colon == line.npos || line.substr(0, 4) != "drm-") continue;
    const std::string_view key = line.substr(0, colon), value = trimmed(line.substr(colon + 1));
    if (key == "drm-driver") {
      client.driver = value.substr(0, 64);
    } else if (key == "drm-pdev") {
      client.device = value.substr(0, 64);
    } else if (key == "drm-client-id") {
      const auto number = parse_number(value);
      has_id = number.has_value();
      client.id = number.value_or(0);
    } else {
      read_engine(client, key, value);
      read_region(regions, key, value);
    }
  }
  add_up(client, regions);
  return has_id && !client.driver.empty() ? std::optional(std::move(client)) : std::nullopt;
}

std::string_view node_of(std::string_view path) {
  if (!take_prefix(path, "/dev/dri/")) return {};
  std::string_view digits = path;
  if (!take_prefix(digits, "renderD") && !take_prefix(digits, "card")) return {};
  const bool good = !digits.empty() && digits.size() <= 6 && digits.find_first_not_of("0123456789") == digits.npos;
  return good ? path : std::string_view();
}

}  // namespace drover::inline v1::health::drm
