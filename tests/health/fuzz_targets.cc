// SPDX-License-Identifier: Apache-2.0
#include "health/fuzz_targets.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "drover/base/errors.h"
#include "drover/health/drm/fdinfo.h"
#include "drover/health/drm/kfd.h"
#include "drover/health/helper/records.h"
#include "drover/health/history.h"
#include "drover/health/probe/proc_text.h"
#include "drover/health/probe/xid_log.h"
#include "drover/health/scenario/scenario.h"
#include "drover/health/thresholds.h"
#include "drover/os/cgroup.h"
#include "drover/os/cpu.h"
#include "drover/os/file_system.h"
#include "drover/os/terminal.h"
#include "health/read_messages.h"

namespace drover_test {
namespace {

using namespace drover::health;
namespace os = drover::os;

std::string unless(bool good, const char* what) { return good ? std::string() : std::string(what); }

bool share(double value) { return value >= 0 && value <= 1; }

std::string run_stat(std::string_view text) {
  ProcessBrief brief;
  return unless(!parse_stat(text, brief) || (brief.pid > 0 && brief.name.size() <= text.size()), "a pid of 0");
}

std::string run_status(std::string_view text) {
  parse_status(text);
  return {};
}

std::string run_cpu_times(std::string_view text) {
  const auto table = parse_cpu_times(text);
  if (!table) return {};
  const bool good = table->cpus.size() <= 65'536 && table->all.busy <= table->all.total;
  return unless(good, "more busy than time, or too many CPUs");
}

std::string run_pressure(std::string_view text) {
  const auto found = parse_pressure(text);
  return unless(
      !found || (share(found->some10) && share(found->some60) && share(found->full10) && share(found->full60)),
      "a share beyond 1");
}

std::string run_cpu_list(std::string_view text) {
  const auto cpus = os::parse_cpu_list(text);
  if (!cpus) return {};
  const bool good = std::is_sorted(cpus->begin(), cpus->end()) &&
                    std::adjacent_find(cpus->begin(), cpus->end()) == cpus->end() &&
                    (cpus->empty() || cpus->back() < 65'536);
  return unless(good, "CPUs that are not ascending, twice there or too large");
}

std::string run_cgroup(std::string_view text) {
  parse_process_cgroup(text);
  for (const os::CgroupMembership& one : os::parse_cgroup_memberships(text)) {
    if (one.path.size() > text.size()) return "a path from nowhere";
  }
  return {};
}

std::string run_mountinfo(std::string_view text) {
  for (const os::CgroupMount& one : os::parse_cgroup_mounts(text)) {
    if (one.mount_point.size() > text.size()) return "a mount point from nowhere";
  }
  return {};
}

std::string run_limits(std::string_view text) {
  const auto quota = os::parse_cpu_max(text);
  os::parse_memory_limit(text);
  os::keyed_number(text, "usage_usec");
  return unless(!quota || (quota->period_us > 0 && quota->quota_us > 0 && quota->cpus() > 0), "a quota of nothing");
}

std::string run_fdinfo(std::string_view text) {
  const auto client = drm::parse_fdinfo(text);
  if (!client) return {};
  const bool good = client->engines.size() <= 64 &&
                    std::all_of(client->engines.begin(), client->engines.end(),
                                [](const drm::Engine& engine) { return engine.capacity > 0 && !engine.name.empty(); });
  return unless(good, "too many engines, or one without a name");
}

std::string run_xid(std::string_view text) {
  while (!text.empty()) {
    const auto xid = parse_xid_record(os::take_line(text));
    if (xid &&
        !(xid->at >= 0 && xid->at <= 1e10 && xid->pid >= 0 && xid->name.size() <= 64 && same_bus(xid->bus, xid->bus)))
      return "an Xid at no time or of no GPU";
  }
  return {};
}

std::string run_scenario(std::string_view text) {
  try {
    const Scenario scenario = Scenario::parse("fuzz", text);
    scenario.at(10).processes();
    Thresholds limits;
    for (const std::string& setting : scenario.settings()) limits.set(setting);
  } catch (const drover::InvalidArgument&) {
  }
  return {};
}

std::string run_history(std::string_view text) {
  Tracker tracker{Thresholds()};
  read_history(text, "boot", tracker);
  for (const auto& [key, track] : tracker.processes()) {
    if (track.stuck.since > track.stuck.last || !std::isfinite(track.seen))
      return "a streak that ends before it begins";
  }
  const std::string again = history_text(tracker, "boot", 1000);
  Tracker second{Thresholds()};
  read_history(again, "boot", second);
  return unless(second.processes().size() == tracker.processes().size(), "a history that does not read itself");
}

std::string run_messages(std::string_view text) {
  read_messages(text);
  return {};
}

std::string run_sanitize(std::string_view text) {
  for (const char c : os::sanitize(text)) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\t') || byte == 0x7F) return "a control character";
  }
  return {};
}

std::string seed_message() {
  GpuSample sample;
  sample.name = "NVIDIA H100";
  sample.rows = {{5, 1, {0, 77}, 0, 3, 1}};
  sample.active = {{5, 90, 40}};
  sample.xids = {79};
  sample.instances = {{3, 1, "part", "MIG-x", {0, 5}, {0, 6}, {0, 7}}};
  return encode(helper::Answer{1, sample}) + helper::encode(helper::Stuck{1, "nvmlInit_v2"}) +
         helper::encode(helper::Ready{"", 0, "550", 12040, 2});
}

std::string seed_history() {
  Tracker tracker{Thresholds()};
  ProcessTrack& process = tracker.processes()[{4000, 123'456}];
  process.seen = 990;
  process.stuck = {900, 990, 7, 0, true};
  tracker.holds()[{"GPU-1", {4000, 123'456}}].seen = 990;
  tracker.gpus()["GPU-1"].seen = 990;
  return history_text(tracker, "boot", 1000);
}

}  // namespace

const std::vector<FuzzTarget>& fuzz_targets() {
  static const std::vector<FuzzTarget> targets = {
      {"stat",
       {"4242 (a) b (c)) D 1 4240 4239 0 -1 4194304 100 0 0 0 250 30 0 0 20 0 17 0 123456 1000000 500 "
        "18446744073709551615 0 0\n"},
       run_stat},
      {"status",
       {"Name:\tx\nUid:\t5\t6\t7\t8\nTracerPid:\t77\nNSpid:\t4242\t12\t1\nVmRSS:\t  2048 "
        "kB\nSigPnd:\t0000000000000100\n"
        "ShdPnd:\t0000000000000100\n"},
       run_status},
      {"io",
       {"rchar: 100\nwchar: 20\nsyscr: 1\n"},
       [](std::string_view text) { return parse_io(text), std::string(); }},
      {"environ",
       {std::string("A=b\0RANK=3\0WORLD_SIZE=8\0", 24)},
       [](std::string_view text) {
         return unless(parse_environ(text, job_variables()).size() <= job_variables().size(), "a stranger");
       }},
      {"cmdline",
       {std::string("python\0-c\0x y\0", 14)},
       [](std::string_view text) { return unless(parse_cmdline(text, 16).size() <= 16, "too long"); }},
      {"cpu times",
       {"cpu  10 2 3 80 5 1 1 4 7 1\ncpu0 10 2 3 80 5 1 1 4 7 1\ncpu2 1 0 0 9 0 0 0 0\nintr 5\n"},
       run_cpu_times},
      {"meminfo",
       {"MemTotal:       1024 kB\nMemAvailable: 512 kB\nHugePages_Total:       3\nHugepagesize: 2048 kB\n"},
       [](std::string_view text) { return parse_meminfo(text), std::string(); }},
      {"pressure",
       {"some avg10=12.50 avg60=3.00 avg300=0.00 total=1\nfull avg10=1.00 avg60=50.00 avg300=0 total=2\n"},
       run_pressure},
      {"tcp",
       {"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
        "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 x\n"},
       [](std::string_view text) { return parse_listening(text, parse_first_free_port(text)), std::string(); }},
      {"links",
       {"socket:[4711]", "/dev/nvidia12", "/dev/nvidia-uvm", "/dev/dri/renderD128"},
       [](std::string_view text) {
         socket_inode(text);
         is_nvidia_control(text);
         return unless(nvidia_minor(text).value_or(0) >= 0 && drm::node_of(text).size() <= text.size(),
                       "a strange GPU");
       }},
      {"cpulist", {"0-3,8,10-11\n", "0-1535\n", "0,2,4\n"}, run_cpu_list},
      {"cgroup", {"12:cpu,cpuacct:/\n3:memory:/slurm/uid_1/job_7\n1:name=systemd:/x\n0::/user.slice\n"}, run_cgroup},
      {"mountinfo",
       {"30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n33 25 0:29 /a /sys/x\\040y rw - cgroup "
        "cgroup rw,cpu\n"},
       run_mountinfo},
      {"limits",
       {"150000 100000\n", "max 100000\n", "1073741824\n", "usage_usec 5\nnr_periods 9\nnr_throttled 7\n"},
       run_limits},
      {"fdinfo",
       {"pos:\t0\ndrm-driver:\tamdgpu\ndrm-client-id:\t42\ndrm-pdev:\t0000:0b:00.0\ndrm-memory-vram:\t2048 "
        "KiB\ndrm-resident-vram:\t2 MiB\ndrm-engine-gfx:\t100 ns\n",
        "drm-driver:\txe\ndrm-client-id:\t3\ndrm-total-vram0:\t9 KiB\ndrm-cycles-ccs:\t5\ndrm-total-cycles-ccs:\t50\n"
        "drm-engine-capacity-ccs:\t4\n"},
       run_fdinfo},
      {"kfd",
       {"cpu_cores_count 0\nsimd_count 416\nsimd_per_cu 4\nlocation_id 768\ndomain 0\n"},
       [](std::string_view text) { return unless(drm::slot_of_properties(text).size() < 32, "a long slot"); }},
      {"kmsg",
       {"6,1,0,-;Linux\n4,812,7200000000,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen "
        "off.\n "
        "KEY=v\n3,1,5,c;NVRM: Xid (0000:03:00): 31, Ch 00000010\n"},
       run_xid},
      {"scenario",
       {"title A\nwindow 20\nexpect R3 warning 4000\nset r8.warn=30m\ngpu 0 power=70\nproc 4000 ppid=1 cmd=\"a b\" "
        "cpu=1\non 0 4000 vram=30 sm=5\nat 10 on 0 4000 ended=1\n"},
       run_scenario},
      {"history", {seed_history()}, run_history},
      {"messages", {seed_message()}, run_messages},
      {"terminal", {"text \x1b[0m \x1b]0;x\x07 \xC2\x9B \xE2\x80\xAE \xF0\x9F\x90\x91 \r\n"}, run_sanitize},
  };
  return targets;
}

namespace {

constexpr std::array<const char*, 12> kNumbers = {"0",          "-1",         "1",          "2147483647",
                                                  "4294967295", "4294967296", "65535",      "9223372036854775807",
                                                  "1e308",      "nan",        "0x7fffffff", "18446744073709551615999"};

std::size_t below(std::mt19937_64& random, std::size_t most) { return static_cast<std::size_t>(random() % most); }

/// Another number where one stands.
void change_number(std::string& text, std::mt19937_64& random) {
  const std::size_t from = text.find_first_of("0123456789", below(random, text.size()));
  if (from == text.npos) return;
  const std::size_t end = std::min(text.find_first_not_of("0123456789", from), text.size());
  text.replace(from, end - from, kNumbers[below(random, kNumbers.size())]);
}

/// A line is doubled, lost, or moved to the end.
void change_line(std::string& text, std::mt19937_64& random) {
  const std::size_t at = text.rfind('\n', below(random, text.size()));
  const std::size_t from = at == text.npos ? 0 : at + 1;
  const std::size_t end = std::min(text.find('\n', from), text.size() - 1) + 1;
  if (end <= from) return;
  const std::string line = text.substr(from, end - from);
  const std::size_t kind = below(random, 3);
  if (kind != 0) text.erase(from, end - from);
  if (kind == 0) text.insert(from, line);
  if (kind == 2) text += line;
}

void change_bytes(std::string& text, std::mt19937_64& random) {
  using namespace std::literals;
  constexpr std::string_view kSpecial = "\0\n\t\r :;,=()[]-/\\\"\x1b\x7f\x80\xff"sv;
  const std::size_t at = below(random, text.size());
  switch (below(random, 5)) {
    case 0:
      text[at] = static_cast<char>(below(random, 256));
      break;
    case 1:
      text.erase(at, 1 + below(random, 6));
      break;
    case 2:
      text.insert(at, 1 + below(random, 3), kSpecial[below(random, kSpecial.size())]);
      break;
    case 3:
      text.insert(at, std::string(1 + below(random, 300), static_cast<char>(below(random, 256))));
      break;
    default:
      text.resize(at);
  }
}

}  // namespace

std::string mutated(const std::string& text, std::mt19937_64& random) {
  std::string result = text;
  for (std::size_t edits = 1 + below(random, 6); edits > 0 && !result.empty(); --edits) {
    const std::size_t kind = below(random, 4);
    if (kind == 0) change_number(result, random);
    if (kind == 1) change_line(result, random);
    if (kind >= 2) change_bytes(result, random);
  }
  return result;
}

}  // namespace drover_test
