// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "drover/health/report.h"
#include "drover/health/scenario/scenario.h"

/// How well verdicts agree with what situations were made to be. Pure.
namespace drover::inline v1::health {

/// What came out for one situation.
struct Outcome {
  std::string name, title;
  bool problem = false;            ///< it was made to lead to a warning or worse
  bool alarm = false;              ///< a finding above info and unknown came
  bool naive = false;              ///< the rule that everybody writes gave an alarm
  std::vector<std::string> wrong;  ///< what was expected and did not come, or came unexpected
};

/// Compares the findings with the expectations: each must be there, and nothing else above info.
Outcome compare(const Scenario& scenario, const Report& report);

/// The rule that everybody writes, at one look at the end: utilisation 0, over 2 GB and sleeping; or a pid that is not
/// in the process table.
bool naive_alarm(const Scenario& scenario);

/// Of many outcomes: problems that gave an alarm, problems that gave none, and so on.
struct Confusion {
  int hits = 0, misses = 0, false_alarms = 0, rests = 0;
  void add(bool problem, bool alarm) { ++(problem ? (alarm ? hits : misses) : alarm ? false_alarms : rests); }
};

/// Plays all shipped situations.
std::vector<Outcome> play_all();

}  // namespace drover::inline v1::health
