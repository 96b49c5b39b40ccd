// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "drover/cli/command.h"
#include "drover/cli/process_survey.h"
#include "drover/cli/text.h"
#include "drover/os/terminal.h"
#include "drover/shm/block_list.h"

namespace drover::inline v1::cli {
namespace {

using shm::ListedBlock;
using Json = nlohmann::ordered_json;

struct Options {
  bool json = false, clean = false;
};

struct Survey {
  std::vector<ListedBlock> blocks;  ///< one for each file
  std::vector<ListedProcess> processes;
};

/// Hidden links count only where the block has no other name.
std::vector<ListedBlock> one_for_each_file(const std::vector<ListedBlock>& all) {
  std::set<std::uint64_t> named;
  for (const ListedBlock& block : all) {
    if (!block.hidden) named.insert(block.file.inode);
  }
  std::vector<ListedBlock> blocks;
  for (const ListedBlock& block : all) {
    if (!block.hidden || !named.contains(block.file.inode)) blocks.push_back(block);
  }
  return blocks;
}

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

std::string what_it_is(const ListedProcess& process, const Survey& survey) {
  if (process.role == ListedProcess::Role::kGuardian) return fmt::format("guardian of {}", process.parent);
  std::string text = process.role == ListedProcess::Role::kWorker ? fmt::format("worker of {}", process.parent) : "";
  const auto add = [&text](const std::string& what) { text += (text.empty() ? "" : ", ") + what; };
  if (process.pools > 0) add(count_text(static_cast<std::size_t>(process.pools), "pool"));
  const auto blocks = std::count_if(survey.blocks.begin(), survey.blocks.end(), [&](const ListedBlock& block) {
    return block.owner.pid == process.pid && block.owner_state == os::Liveness::kAlive;
  });
  if (blocks > 0) add(count_text(static_cast<std::size_t>(blocks), "block"));
  return text;
}

void print_processes(const Survey& survey) {
  fmt::print("{:>7}  {:<16} {:>8} {:>8}  {}\n", "PID", "PROGRAM", "MEMORY", "AGE", "WHAT");
  for (const ListedProcess& process : survey.processes) {
    fmt::print("{:>7}  {:<16} {:>8} {:>8}  {}\n", process.pid, fit(process.program, 16), size_text(process.memory),
               age_text(process.age), what_it_is(process, survey));
  }
}

void print_text(const Survey& survey) {
  if (survey.blocks.empty() && survey.processes.empty()) fmt::print("No blocks and no processes of Drover's.\n");
  if (!survey.blocks.empty()) print_blocks(survey.blocks);
  if (!survey.blocks.empty() && !survey.processes.empty()) fmt::print("\n");
  if (!survey.processes.empty()) print_processes(survey);
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
          {"pools", process.pools}};
}

template <class T>
Json to_json(const std::vector<T>& items) {
  Json array = Json::array();
  for (const T& item : items) array.push_back(to_json(item));
  return array;
}

void print_json(const Json& json) { fmt::print("{}\n", json.dump(2)); }

int show(const Options& options) {
  const Survey survey{one_for_each_file(shm::list_blocks()), list_processes()};
  if (options.json)
    print_json({{"blocks", to_json(survey.blocks)}, {"processes", to_json(survey.processes)}});
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
    if (removed.empty() && kept.empty()) fmt::print("Nothing to remove: the owners of all blocks are alive.\n");
  }
  return kept.empty() ? kOk : kFailed;
}

}  // namespace

void add_status(CLI::App& app, Action& action) {
  CLI::App& status = *app.add_subcommand("status", "List blocks with names, and processes of Drover's");
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
