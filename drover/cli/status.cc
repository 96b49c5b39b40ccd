// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "drover/cli/command.h"
#include "drover/cli/process_survey.h"
#include "drover/cli/text.h"
#include "drover/os/shared_file.h"
#include "drover/os/terminal.h"
#include "drover/shm/block_list.h"

namespace drover::inline v1::cli {
namespace {

using shm::ListedBlock;
using Json = nlohmann::ordered_json;

struct Options {
  bool json = false, clean = false;
};

const char* state_text(os::Liveness state) {
  switch (state) {
    case os::Liveness::kAlive:
      return "alive";
    case os::Liveness::kDead:
      return "gone";
    case os::Liveness::kUnknown:
      break;
  }
  return "unknown";
}

std::string owner_program(const ListedBlock& block) {
  return block.owner_state == os::Liveness::kAlive ? os::sanitize(program_name(block.owner.pid)) : "";
}

std::string size_text(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
  if (bytes < 1000) return fmt::format("{} B", bytes);
  auto value = static_cast<double>(bytes) / 1000;
  std::size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < std::size(kUnits); ++unit) value /= 1000;
  return fmt::format("{:.{}f} {}", value, value < 99.95 ? 1 : 0, kUnits[unit]);
}

/// Cut to `width` characters, so that a table keeps its columns.
std::string fit(const std::string& text, std::size_t width) {
  std::string printable = os::sanitize(text);
  std::size_t characters = 0, cut = 0;
  for (std::size_t i = 0; i < printable.size(); ++i) {
    if ((static_cast<unsigned char>(printable[i]) & 0xC0U) == 0x80U) continue;  // not the first byte of one
    if (characters == width - 3) cut = i;
    ++characters;
  }
  return characters <= width ? printable : printable.substr(0, cut) + "...";
}

std::string count_text(std::size_t count, const char* one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

std::string age_text(double seconds) {
  constexpr double kDay = 24 * 3600;
  return seconds < 2 * kDay ? clock_text(seconds) : fmt::format("{:.0f} d", std::floor(seconds / kDay));
}

/// Without the namespaces of Drover's own types.
std::string plain_label(std::string label) {
  constexpr std::string_view kNamespace = "drover::v1::";
  for (std::size_t at; (at = label.find(kNamespace)) != label.npos;) label.erase(at, kNamespace.size());
  return os::sanitize(label);
}

// Text. Each line has at most 80 columns.

void print_blocks(const std::vector<ListedBlock>& blocks) {
  fmt::print("{:<18} {:>8}  {:<20} {:>7} {}\n", "BLOCK", "SIZE", "OWNER", "AGE", "WHAT");
  for (const ListedBlock& block : blocks) {
    const std::string program =
        block.owner_state == os::Liveness::kAlive ? owner_program(block) : state_text(block.owner_state);
    fmt::print("{:<18} {:>8}  {:<20} {:>7} {}\n", fit(block.name, 18), size_text(block.size),
               fit(fmt::format("{} ({})", block.owner.pid, program), 20), age_text(block.age),
               fit(plain_label(block.label), 22));
  }
}

std::string unless_known(const ListedPool& pool, std::string text) { return pool.facts ? std::move(text) : "?"; }

/// Fewer than it is to have are there while the pool starts or replaces some.
std::string workers_text(const ListedPool& pool) {
  if (!pool.facts || pool.running == pool.facts->workers) return std::to_string(pool.running);
  return fmt::format("{} of {}", pool.running, pool.facts->workers);
}

void print_pools(const std::vector<ListedPool>& pools) {
  fmt::print("{:<30} {:>12} {:>8} {:>8} {:>16}\n", "POOL OF", "WORKERS", "MEMORY", "AGE", "TASKS DONE");
  for (const ListedPool& pool : pools) {
    const detail::PoolFacts facts = pool.facts.value_or(detail::PoolFacts{});
    fmt::print("{:<30} {:>12} {:>8} {:>8} {:>16}\n", fit(fmt::format("{} ({})", pool.owner, pool.program), 30),
               workers_text(pool), size_text(pool.memory), unless_known(pool, age_text(facts.age)),
               unless_known(pool, fmt::format("{}", facts.tasks)));
  }
}

std::string what_it_is(const ListedProcess& process) {
  if (process.role == ListedProcess::Role::kGuardian) return fmt::format("guardian of {}", process.parent);
  std::string text = process.role == ListedProcess::Role::kWorker ? fmt::format("worker of {}", process.parent) : "";
  const auto add = [&text](const std::string& what) { text += (text.empty() ? "" : ", ") + what; };
  if (process.pools > 0) add(count_text(process.pools, "pool"));
  if (process.blocks > 0) add(count_text(process.blocks, "block"));
  if (!process.attached) add("memory map locked");
  if (process.attached && !process.attached->empty()) add("uses " + count_text(process.attached->size(), "block"));
  return text;
}

void print_processes(const std::vector<ListedProcess>& processes) {
  fmt::print("{:>7}  {:<16} {:>8} {:>8}  {}\n", "PID", "PROGRAM", "MEMORY", "AGE", "WHAT");
  for (const ListedProcess& process : processes) {
    fmt::print("{:>7}  {:<16} {:>8} {:>8}  {}\n", process.pid, fit(process.program, 16), size_text(process.memory),
               age_text(process.age), fit(what_it_is(process), 34));
  }
}

void print_text(const Survey& survey) {
  const char* between = "";
  const auto table = [&between](const auto& items, auto print) {
    if (items.empty()) return;
    fmt::print("{}", std::exchange(between, "\n"));
    print(items);
  };
  table(survey.blocks, print_blocks);
  table(survey.pools, print_pools);
  table(survey.processes, print_processes);
  if (*between == '\0') fmt::print("No blocks, pools or processes of Drover's.\n");
  const auto orphans =
      static_cast<std::size_t>(std::count_if(survey.blocks.begin(), survey.blocks.end(), [](const ListedBlock& block) {
        return block.owner_state == os::Liveness::kDead;
      }));
  if (orphans == 0) return;
  fmt::print(
      "\n{} left by a program that was killed together with its guardian:\n`drover status --clean` removes {}.\n",
      orphans == 1 ? "1 block was" : fmt::format("{} blocks were", orphans), orphans == 1 ? "it" : "them");
}

// JSON.

Json to_json(const ListedBlock& block) {
  return {{"name", os::sanitize(block.name)},
          {"path", os::sanitize(os::shared_path(block.name))},
          {"label", plain_label(block.label)},
          {"size_bytes", block.size},
          {"age_seconds", block.age},
          {"owner",
           {{"pid", block.owner.pid},
            {"start_time", block.owner.start_time},
            {"program", owner_program(block)},
            {"state", state_text(block.owner_state)}}}};
}

/// null: the kernel did not tell in time.
Json attached_json(const ListedProcess& process) {
  if (!process.attached) return nullptr;
  Json names = Json::array();
  for (const std::string& name : *process.attached) names.push_back(os::sanitize(name));
  return names;
}

Json to_json(const ListedProcess& process) {
  const char* const role = process.role == ListedProcess::Role::kGuardian ? "guardian"
                           : process.role == ListedProcess::Role::kWorker ? "worker"
                                                                          : "program";
  return {{"pid", process.pid},
          {"parent", process.parent},
          {"role", role},
          {"program", os::sanitize(process.program)},
          {"memory_bytes", process.memory},
          {"age_seconds", process.age},
          {"pools", process.pools},
          {"blocks", process.blocks},
          {"attached", attached_json(process)}};
}

Json to_json(const ListedPool& pool) {
  Json json = {{"owner", {{"pid", pool.owner}, {"program", os::sanitize(pool.program)}}},
               {"workers", nullptr},
               {"workers_running", pool.running},
               {"memory_bytes", pool.memory},
               {"age_seconds", nullptr},
               {"tasks_done", nullptr}};
  if (pool.facts) {
    json["workers"] = pool.facts->workers;
    json["age_seconds"] = pool.facts->age;
    json["tasks_done"] = pool.facts->tasks;
  }
  return json;
}

template <class T>
Json to_json(const std::vector<T>& items) {
  Json array = Json::array();
  for (const T& item : items) array.push_back(to_json(item));
  return array;
}

void print_json(const Json& json) { fmt::print("{}\n", json.dump(2)); }

int show(const Options& options) {
  const Survey survey = take_survey();
  if (options.json)
    print_json({{"blocks", to_json(survey.blocks)},
                {"pools", to_json(survey.pools)},
                {"processes", to_json(survey.processes)}});
  else
    print_text(survey);
  return kOk;
}

int clean(const Options& options) {
  std::vector<ListedBlock> removed, kept;
  const std::vector<ListedBlock> all = shm::list_blocks();
  for (const ListedBlock& block : all) {
    if (block.owner_state == os::Liveness::kDead) (shm::remove_if_orphaned(block) ? removed : kept).push_back(block);
  }
  removed = one_for_each_file(removed);
  kept = one_for_each_file(kept);
  if (options.json) {
    print_json({{"removed", to_json(removed)}, {"not_removed", to_json(kept)}});
  } else {
    for (const ListedBlock& block : removed) {
      fmt::print("removed {} ({}): process {}, which made it, is gone\n", fit(block.name, 24), size_text(block.size),
                 block.owner.pid);
    }
    for (const ListedBlock& block : kept) fmt::print("could not remove {}\n", os::sanitize(block.name));
    if (removed.empty() && kept.empty())
      fmt::print("Nothing to remove: no block has an owner that is known to be gone.\n");
  }
  return kept.empty() ? kOk : kFailed;
}

}  // namespace

void add_status(CLI::App& app, Action& action) {
  CLI::App& status = *app.add_subcommand("status", "List blocks with names, pools and processes of Drover's");
  const auto options = std::make_shared<Options>();
  status.add_flag("--json", options->json, "Print one JSON object");
  status.add_flag("--clean", options->clean, "Remove names whose owner is gone, and nothing else");
  status.footer(
      "Only what belongs to this user is listed. An owner is known by process number\n"
      "and start time; the state of one in another PID namespace (a container) is\n"
      "unknown, and its blocks are never removed.");
  status.callback(
      [options, &action] { action = [options] { return options->clean ? clean(*options) : show(*options); }; });
}

}  // namespace drover::inline v1::cli
