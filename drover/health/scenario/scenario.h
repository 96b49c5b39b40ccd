// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

/// Situations that are played instead of looked at: for people who want to see what a finding looks like, and for
/// tests, where the same text drives a false driver and a false /proc. docs/inspector.md describes the format.
namespace drover::inline v1::health {

/// Something of a situation with its properties: a GPU, a process, a process on a GPU.
struct Thing {
  std::string kind;  ///< "gpu", "proc", "on", "host"
  int id = 0;        ///< index of the GPU, or pid
  int other = 0;     ///< of "on": the pid
  std::map<std::string, std::string> values;
  /// Of cpu, io, power, nvlink, sm over the time so far: core seconds, bytes, joules, percent times seconds.
  std::map<std::string, double> sums;

  std::string text(const std::string& key, const std::string& otherwise = {}) const;
  double number(const std::string& key, double otherwise = 0) const;  ///< 0.5, 12e6, 0x40
  bool has(const std::string& key) const { return values.count(key) > 0; }
};

/// The things of a situation at one time, in the order of the text.
struct World {
  double at = 0;
  std::vector<Thing> things;

  std::vector<const Thing*> all(std::string_view kind) const;
  const Thing* find(std::string_view kind, int id, int other = 0) const;
  /// The processes that exist: not yet ended, and started already.
  std::vector<const Thing*> processes() const;
};

/// What a situation must lead to: the severity is "none" when nothing above info may be found.
struct Expectation {
  std::string rule, severity;
  int pid = 0;  ///< 0: any
};

/// A situation. A value; const methods may run concurrently.
class Scenario {
 public:
  /// Throws InvalidArgument with the line that makes no sense.
  static Scenario parse(std::string name, std::string_view text);

  const std::string& name() const noexcept { return name_; }
  const std::string& title() const noexcept { return title_; }
  double window() const noexcept { return window_; }
  bool container() const noexcept { return container_; }
  const std::vector<Expectation>& expectations() const noexcept { return expectations_; }
  const std::vector<std::string>& settings() const noexcept { return settings_; }

  /// Time 0 is so many seconds after boot.
  static constexpr double kUptime = 1'000'000;
  World at(double seconds) const;

 private:
  struct Change {
    double at;
    Thing thing;
  };
  void parse_line(std::string_view line);
  void parse_thing(double at, std::vector<std::string> words);

  std::string name_, title_;
  double window_ = 0;
  bool container_ = false;
  std::vector<Expectation> expectations_;
  std::vector<std::string> settings_;
  std::vector<Change> changes_;  ///< in order of time
};

/// Text of a shipped situation.
struct Situation {
  const char* name;
  const char* text;
};
/// All that are shipped, in a fixed order.
std::vector<Situation> situations();

}  // namespace drover::inline v1::health
