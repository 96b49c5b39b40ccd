// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "drover/health/rules/tracker.h"

namespace drover::inline v1::health {

/// A small file in which the looks of repeated runs (cron) add up: for how long each condition has held, and counters
/// to go on from. Lines of text, docs/inspector.md describes them; it is replaced in one step, so a run that is killed
/// leaves the old one. Of runs that save at the same moment one wins. A file of another boot, or one that makes no
/// sense, is left aside.
class History {
 public:
  /// Reads `path`, if it is there, into `tracker`. Throws std::system_error for an I/O error.
  History(std::string path, std::string boot, Tracker& tracker);

  /// Replaces the file. Throws std::system_error.
  void save(const Tracker& tracker, double now) const;

 private:
  std::string path_, boot_;
};

/// The two directions, for tests. `now` bounds the times: those of the future are nonsense.
std::string history_text(const Tracker& tracker, const std::string& boot, double now);
void read_history(std::string_view text, const std::string& boot, Tracker& tracker);

}  // namespace drover::inline v1::health
