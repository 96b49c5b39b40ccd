// SPDX-License-Identifier: Apache-2.0
#include "drover/health/scenario/scenario.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "drover/base/errors.h"

namespace drover::inline v1::health {
namespace {

/// What adds up over time; the sum has the same name.
constexpr const char* kRates[] = {"cpu", "io", "power", "nvlink", "sm"};
constexpr double kSwingPeriod = 60, kTwoPi = 6.283185307179586;  // of power that goes up and down

bool same(const Thing& a, const Thing& b) { return a.kind == b.kind && a.id == b.id && a.other == b.other; }

/// Words at blanks; key="two words" is one.
std::vector<std::string> split(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if ((c == ' ' || c == '\t') && !quoted) {
      if (!word.empty()) words.push_back(std::move(word));
      word.clear();
    } else {
      word += c;
    }
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

double to_number(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != '\0' || !std::isfinite(value))
    throw InvalidArgument("'" + text + "' is no number");
  return value;
}

int to_id(const std::string& text) {
  const double value = to_number(text);
  if (value < 0 || value > 9'999'999 || value != std::floor(value))
    throw InvalidArgument("'" + text + "' is no pid or index");
  return static_cast<int>(value);
}

void add_up(World& world, double until) {
  const double seconds = until - world.at;
  for (Thing& thing : world.things) {
    for (const char* const rate : kRates) {
      if (!thing.has(rate)) continue;
      const double value = thing.number(rate);
      double sum = value * seconds;
      if (std::string_view(rate) == "power") {
        const double turn = kTwoPi / kSwingPeriod;
        sum += value * thing.number("swing") / turn * (std::cos(turn * world.at) - std::cos(turn * until));
      }
      thing.sums[rate] += sum;
    }
  }
  world.at = until;
}

void apply(World& world, const Thing& change) {
  const auto at =
      std::find_if(world.things.begin(), world.things.end(), [&](const Thing& thing) { return same(thing, change); });
  if (at == world.things.end()) {
    world.things.push_back(change);
    return;
  }
  for (const auto& [key, value] : change.values) at->values[key] = value;
}

}  // namespace

std::string Thing::text(const std::string& key, const std::string& otherwise) const {
  const auto at = values.find(key);
  return at == values.end() ? otherwise : at->second;
}

double Thing::number(const std::string& key, double otherwise) const {
  const auto at = values.find(key);
  return at == values.end() ? otherwise : std::strtod(at->second.c_str(), nullptr);
}

std::vector<const Thing*> World::all(std::string_view kind) const {
  std::vector<const Thing*> result;
  for (const Thing& thing : things) {
    if (thing.kind == kind) result.push_back(&thing);
  }
  return result;
}

const Thing* World::find(std::string_view kind, int id, int other) const {
  for (const Thing& thing : things) {
    if (thing.kind == kind && thing.id == id && thing.other == other) return &thing;
  }
  return nullptr;
}

std::vector<const Thing*> World::processes() const {
  std::vector<const Thing*> result = all("proc");
  std::erase_if(result, [](const Thing* thing) { return thing->number("ended") != 0; });
  std::sort(result.begin(), result.end(), [](const Thing* a, const Thing* b) { return a->id < b->id; });
  return result;
}

Scenario Scenario::parse(std::string name, std::string_view text) {
  Scenario scenario;
  scenario.name_ = std::move(name);
  int number = 0;
  while (!text.empty()) {
    const std::size_t length = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, length);
    text.remove_prefix(std::min(length + 1, text.size()));
    ++number;
    try {
      scenario.parse_line(line.substr(0, line.find('#')));
    } catch (const InvalidArgument& error) {
      throw InvalidArgument("situation " + scenario.name_ + ", line " + std::to_string(number) + ": " + error.what());
    }
  }
  std::stable_sort(scenario.changes_.begin(), scenario.changes_.end(),
                   [](const Change& a, const Change& b) { return a.at < b.at; });
  return scenario;
}

void Scenario::parse_line(std::string_view line) {
  std::vector<std::string> words = split(line);
  if (words.empty()) return;
  const std::string first = words.front();
  if (first == "title") {
    const std::size_t start = line.find("title") + 5;
    title_ = line.substr(std::min(line.find_first_not_of(' ', start), line.size()));
  } else if (first == "window" && words.size() == 2) {
    window_ = to_number(words[1]);
  } else if (first == "container") {
    container_ = true;
  } else if (first == "set" && words.size() == 2) {
    settings_.push_back(words[1]);
  } else if (first == "expect" && words.size() >= 2) {
    expectations_.push_back({words[1] == "none" ? "" : words[1], words.size() > 2 ? words[2] : "none",
                             words.size() > 3 ? to_id(words[3]) : 0});
  } else if (first == "at" && words.size() > 3) {
    const double at = to_number(words[1]);
    words.erase(words.begin(), words.begin() + 2);
    parse_thing(at, std::move(words));
  } else {
    parse_thing(0, std::move(words));
  }
}

void Scenario::parse_thing(double at, std::vector<std::string> words) {
  Thing thing;
  thing.kind = words.front();
  std::size_t next = 1;
  const std::size_t ids = thing.kind == "on"                            ? 2
                          : thing.kind == "gpu" || thing.kind == "proc" ? 1
                          : thing.kind == "host"                        ? 0
                                                                        : 9;
  if (words.size() < 1 + ids) throw InvalidArgument("'" + thing.kind + "' is not known here");
  if (ids > 0) thing.id = to_id(words[next++]);
  if (ids > 1) thing.other = to_id(words[next++]);
  for (; next < words.size(); ++next) {
    const std::size_t equals = words[next].find('=');
    if (equals == std::string::npos || equals == 0) throw InvalidArgument("'" + words[next] + "' is not KEY=VALUE");
    thing.values[words[next].substr(0, equals)] = words[next].substr(equals + 1);
  }
  changes_.push_back({at, std::move(thing)});
}

World Scenario::at(double seconds) const {
  World world;
  for (const Change& change : changes_) {
    if (change.at > seconds) break;
    add_up(world, change.at);
    apply(world, change.thing);
  }
  add_up(world, std::max(seconds, world.at));
  return world;
}

}  // namespace drover::inline v1::health
