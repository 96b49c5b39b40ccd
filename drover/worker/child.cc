// SPDX-License-Identifier: Apache-2.0
#include "drover/worker/child.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <utility>

#include "drover/base/errors.h"
#include "drover/os/build_id.h"
#include "drover/os/memory.h"
#include "drover/os/self.h"
#include "drover/worker/launch.h"

namespace drover::inline v1::worker {
namespace {

constexpr const char* kProgram = "/proc/self/exe";  // the very file that runs here, even if it was replaced or deleted

std::string name_of(const std::string& variable) { return variable.substr(0, variable.find('=') + 1); }

std::vector<std::string> child_environment(const ChildSpec& spec) {
  std::vector<std::string> result = spec.inherited;
  for (const std::string& extra : spec.environment) {
    std::erase_if(result, [name = name_of(extra)](const std::string& v) { return v.starts_with(name); });
    result.push_back(extra);
  }
  const LaunchOrder order{spec.entry, spec.slot, spec.incarnation, os::current_pid()};
  result.push_back(std::string(LaunchOrder::kVariable) + "=" + order.to_text());
  return result;
}

os::ChildProcess start_process(Service& service, const ChildSpec& spec, int out, int err) {
  std::string why;
  if (!os::runs_this_program(why)) throw Error("cannot start workers: " + why);
  const os::Fd null = os::open_null();
  spec.file->require_open();  // or the child would say that its parent speaks another protocol
  return os::ChildProcess::spawn({
      .program = kProgram,
      .arguments = {spec.name},
      .environment = child_environment(spec),
      .descriptors = {null.get(), out, err, spec.file->fd().get(), service.life_line().get()},
  });
}

std::string mebibytes(std::uint64_t bytes) { return std::to_string((bytes + (1U << 19)) >> 20) + " MiB"; }

}  // namespace

std::string ChildEnd::describe() const {
  std::string text = status.describe();
  if (killed_for_memory) text += ", killed for memory (the control group's limit or the machine's memory was used up)";
  if (peak_memory != 0) {
    char age[32];
    std::snprintf(age, sizeof age, "%.1f", peak_memory_age);
    text += "; peak memory " + mebibytes(peak_memory) + " as seen " + age + " s before";
  }
  if (!last_output.empty()) text += "; its last lines on stderr:\n" + last_output;
  return text;
}

std::shared_ptr<Child> Child::start(Service& service, ChildSpec spec) {
  return std::make_shared<Child>(service, std::move(spec));
}

/// What can fail is done before the process is there, or it ends again: nobody else knows of it.
Child::Child(Service& service, ChildSpec spec)
    : service_(service), spec_(std::move(spec)), oom_kills_at_start_(os::oom_kills_if_known()), process_([&] {
        if (spec_.output == Output::kInherit) return start_process(service_, spec_, 1, 2);
        os::Pipe out = os::make_pipe(), err = os::make_pipe();
        out_ = std::make_unique<OutputPump>(service_, std::move(out.read_end), 1);
        err_ = std::make_unique<OutputPump>(service_, std::move(err.read_end), 2);
        return start_process(service_, spec_, out.write_end.get(), err.write_end.get());
      }()) {
  spec_.inherited = {};  // large, and of no more use
  spec_.environment = {};
  try {
    service_.guard_group(pid());
    key_ = service_.watch(process_.pidfd(), [this] { on_pidfd(); });
  } catch (...) {
    service_.unguard_group(pid());
    process_.kill_and_reap();
    throw;
  }
}

Child::~Child() {
  if (key_ != 0) service_.unwatch(process_.pidfd(), key_);
  service_.forget(retry_);
}

void Child::sample_memory() {
  if (const auto memory = os::process_memory_if_known(pid())) {
    peak_memory_ = memory->peak_rss_bytes;
    sampled_ = std::chrono::steady_clock::now();
  }
}

void Child::on_pidfd() {
  service_.unguard_group(pid());  // it is dead; once it is reaped its number may be another's
  if (key_ != 0) service_.unwatch(process_.pidfd(), std::exchange(key_, 0));
  const auto status = process_.try_reap();
  if (status) return on_reaped(*status);
  // Dead, and not to be reaped while a tracer holds it: its descriptor stays readable.
  constexpr std::chrono::milliseconds kRetry(10);
  retry_ = service_.at(std::chrono::steady_clock::now() + kRetry, [this] { on_pidfd(); });
}

void Child::on_reaped(const os::ExitStatus& status) {
  ended_ = true;
  ChildEnd end;
  end.pid = pid();
  end.status = status;
  end.last_output = last_output();
  end.killed_for_memory =
      status.signal == SIGKILL && service_.oom_ledger().explains(oom_kills_at_start_, os::oom_kills_if_known());
  end.peak_memory = peak_memory_;
  end.peak_memory_age = std::chrono::duration<double>(std::chrono::steady_clock::now() - sampled_).count();
  if (const auto on_end = std::exchange(spec_.on_end, nullptr)) on_end(end);  // may destroy this
}

/// Its end is told whatever becomes of its output.
std::string Child::last_output() noexcept {
  if (!err_) return {};
  try {
    err_->read_rest();
    std::string tail = err_->tail();
    OutputPump::finish(std::move(out_));
    OutputPump::finish(std::move(err_));
    return tail;
  } catch (...) {
    return {};
  }
}

}  // namespace drover::inline v1::worker
