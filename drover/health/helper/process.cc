// SPDX-License-Identifier: Apache-2.0
#include "drover/health/helper/process.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <system_error>
#include <utility>
#include <vector>

#include "drover/health/probe/proc_text.h"
#include "drover/os/epoll.h"
#include "drover/os/host_files.h"
#include "drover/os/self.h"
#include "drover/os/socket_pair.h"

namespace drover::inline v1::health::helper {
namespace {

constexpr std::chrono::milliseconds kEndGrace(50);  // a helper that can end does so at once

std::vector<std::string> environment_of(const Role& role, const std::string& argument) {
  std::vector<std::string> result = os::environment();
  result.push_back(std::string(role.variable) + "=" + argument);
  return result;
}

}  // namespace

struct Process::Ends {
  os::SocketPair requests = os::make_socket_pair();
  os::Pipe answers = os::make_pipe();
  os::Fd null = os::open_null();
};

Process::Process(const Role& role, const std::string& argument) : Process(role, argument, Ends()) {}

Process::Process(const Role& role, const std::string& argument, Ends ends)
    : requests_(std::move(ends.requests.near)),
      answers_(std::move(ends.answers.read_end)),
      process_(os::ChildProcess::spawn(
          {.program = "/proc/self/exe",
           .arguments = {role.name},
           .environment = environment_of(role, argument),
           .descriptors = {ends.requests.far.get(), ends.answers.write_end.get(), ends.null.get()}})) {
  answers_.set_nonblocking();
}

Process::~Process() {
  if (end()) return;
  try {
    const os::Epoll epoll;
    epoll.add(process_.pidfd(), 0);
    epoll.wait(Clock::now() + kEndGrace);
  } catch (const std::system_error&) {  // no descriptor left: it ends all the same, unreaped
    return;
  }
  end();
}

bool Process::end() noexcept {
  ended_ = true;
  requests_.reset();  // it ends by itself when it can
  answers_.reset();
  if (reaped_) return true;
  process_.send(SIGKILL);
  try {
    reaped_ = process_.try_reap().has_value();
  } catch (const std::system_error&) {  // as above
  }
  return reaped_;
}

bool Process::uninterruptible() const {
  const os::HostFolder tasks("/proc/" + std::to_string(process_.pid()) + "/task");
  const std::vector<int> tids = tasks.numbers();
  return std::any_of(tids.begin(), tids.end(), [&](int tid) {
    ProcessBrief brief;
    const auto text = tasks.text((std::to_string(tid) + "/stat").c_str(), 4096);
    return text && parse_stat(*text, brief) && brief.state == 'D';
  });
}

void mark_unanswered(GpuSample& gpu, const std::string& stuck_in, const std::string& not_asked) {
  const Reading nothing{stuck_in.empty() ? Reading::kNotAsked : Reading::kTimeout, 0};
  gpu.active.clear();
  gpu.xids.clear();
  gpu.readings.fill(nothing);
  gpu.processes = gpu.activity = nothing;
  gpu.stuck_in = stuck_in;
  gpu.not_asked = stuck_in.empty() ? not_asked : std::string();
}

bool Process::send(const std::string& message, Clock::time_point end) {
  if (!ended_) ended_ = !os::send_all(requests_, std::as_bytes(std::span(message.data(), message.size())), end);
  return !ended_;
}

std::optional<MessageReader::Message> Process::receive(Clock::time_point end) {
  if (ended_) return std::nullopt;
  const os::Epoll epoll;
  epoll.add(answers_, 0);
  for (;;) {
    if (auto message = reader_.next()) return message;
    if (reader_.broken()) ended_ = true;
    if (ended_ || (epoll.wait(end).empty() && Clock::now() >= end)) return std::nullopt;
    std::array<std::byte, 16'384> buffer;
    const auto count = answers_.read_some(buffer);
    if (!count) continue;
    if (*count == 0) ended_ = true;
    reader_.add({buffer.data(), *count});
  }
}

}  // namespace drover::inline v1::health::helper
