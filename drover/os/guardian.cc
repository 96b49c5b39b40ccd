// SPDX-License-Identifier: Apache-2.0
#include "drover/os/guardian.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <exception>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "drover/base/errors.h"
#include "drover/base/log.h"
#include "drover/os/fault_point.h"
#include "drover/os/file_limit.h"
#include "drover/os/fork_count.h"
#include "drover/os/futex.h"

extern "C" {
extern const std::byte drover_guardian_begin[];
extern const std::byte drover_guardian_end[];
}

namespace drover::inline v1::os {
namespace {

#ifndef MFD_EXEC
constexpr unsigned kExecutable = 0x0010U;  // MFD_EXEC, Linux 6.3
#else
constexpr unsigned kExecutable = MFD_EXEC;
#endif

Fd create_image() {
  int fd = ::memfd_create("drover-guardian", MFD_CLOEXEC | kExecutable);
  if (fd < 0 && errno == EINVAL) fd = ::memfd_create("drover-guardian", MFD_CLOEXEC);  // an older kernel
  if (fd < 0) throw_errno("memfd_create of the guardian");
  return Fd(fd);
}

void write_image(const Fd& file) {
  std::span<const std::byte> rest(drover_guardian_begin, drover_guardian_end);
  check_file_limit(rest.size());
  while (!rest.empty()) rest = rest.subspan(file.write_some(rest).value_or(0));
}

Fd own_pidfd() {
  const long fd = ::syscall(SYS_pidfd_open, ::getpid(), 0);
  if (fd < 0) throw_errno("pidfd_open");
  return Fd(static_cast<int>(fd));
}

/// Each message is a packet: it arrives whole or not at all.
std::pair<Fd, Fd> make_channel() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) throw_errno("socketpair");
  return {Fd(ends[0]), Fd(ends[1])};
}

constexpr int kPatienceMs = 1000;

bool has_ended(const Fd& pidfd, int patience_ms) noexcept {
  pollfd ended{.fd = pidfd.get(), .events = POLLIN, .revents = 0};
  int result = 0;
  do result = ::poll(&ended, 1, patience_ms);
  while (result < 0 && errno == EINTR);
  return result > 0;
}

}  // namespace

std::shared_ptr<Guardian> Guardian::shared() {
  struct Current {
    std::mutex mutex;
    std::weak_ptr<Guardian> guardian;
  };
  static constinit PerProcess<Current> of_process;
  Current& current = of_process.get();
  const std::scoped_lock lock(current.mutex);
  std::shared_ptr<Guardian> guardian = current.guardian.lock();
  if (!guardian || guardian->owner_ != ::getpid()) {  // a fork that ran no handlers has the other's
    guardian = std::shared_ptr<Guardian>(new Guardian);
    current.guardian = guardian;
  }
  guardian->ensure_running();
  return guardian;
}

Guardian::Guardian() : owner_(::getpid()) { names_.kill_guardian_at(fault_of("guardian")); }

Guardian::~Guardian() {
  if (::getpid() == owner_) let_end();
}

Guardian::Running Guardian::start() const {
  fill_standard_streams();  // also for a program that never calls init
  const Fd image = create_image();
  write_image(image);
  auto [ours, its] = make_channel();
  const Fd owner = own_pidfd();
  std::vector<int> descriptors(4);
  descriptors[guardian::kFromOwner] = its.get();
  descriptors[guardian::kOwner] = owner.get();
  descriptors[guardian::kTable] = names_.fd().get();
  descriptors[guardian::kImage] = image.get();
  ChildProcess process = ChildProcess::spawn({
      .program = "/proc/self/fd/" + std::to_string(guardian::kImage),
      .arguments = {"drover-guardian"},
      .environment = {},
      .descriptors = descriptors,
  });
  return {std::move(ours), std::move(process)};
}

void Guardian::ensure_running() {
  const std::scoped_lock lock(mutex_);
  if (!running_ || has_ended(running_->process.pidfd(), 0)) start_anew();
}

void Guardian::start_anew() {
  let_end();
  try {
    running_.emplace(start());
    if (send_all()) return;
    let_end();
    throw Error("it does not read what it is told");
  } catch (const std::exception& error) {
    log(LogLevel::kError, std::string("no guardian: if this program is killed, programs that its workers have started "
                                      "and its blocks with names stay behind: ") +
                              error.what());
  }
}

void Guardian::let_end() noexcept {
  if (!running_) return;
  running_->process.send(SIGKILL);  // there is nothing left to guard
  has_ended(running_->process.pidfd(), kPatienceMs);
  running_->process.try_reap();
  running_.reset();
}

bool Guardian::running() const {
  const std::scoped_lock lock(mutex_);
  return running_.has_value();
}

Fd Guardian::pidfd() const {
  const std::scoped_lock lock(mutex_);
  if (!running_) return Fd();
  Fd copy(::fcntl(running_->process.pidfd().get(), F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) throw_errno("fcntl F_DUPFD_CLOEXEC");
  return copy;
}

void Guardian::watch_group(int leader) {
  const std::scoped_lock lock(mutex_);
  if (groups_.insert(leader).second) tell(leader);
}

void Guardian::forget_group(int leader) {
  const std::scoped_lock lock(mutex_);
  if (groups_.erase(leader) != 0) tell(-leader);
}

NameTable::Slot Guardian::add_name(std::string_view name, const FileId& file) {
  const std::scoped_lock lock(mutex_);
  const NameTable::Slot slot = names_.add(name, file);
  if (running_ && !running_->keeps_names) {
    running_->keeps_names = true;
    tell(guardian::kNamesBegin);
  }
  return slot;
}

void Guardian::set_name_live(NameTable::Slot slot, bool live) {
  const std::scoped_lock lock(mutex_);
  names_.set_live(slot, live);
}

void Guardian::remove_name(NameTable::Slot slot) {
  const std::scoped_lock lock(mutex_);
  names_.remove(slot);
}

/// A message that is lost would be a group that lives on, or, worse, one that is killed when it is another's.
void Guardian::tell(int message) {
  if (running_ && !send(message)) start_anew();  // which tells the new one everything
}

bool Guardian::send_all() noexcept {
  for (const int leader : groups_) {
    if (!send(leader)) return false;
  }
  running_->keeps_names = !names_.empty();
  return names_.empty() || send(guardian::kNamesBegin);
}

/// True also when the guardian is gone (EPIPE, which is no signal to us): ensure_running sees that. False for one that
/// was stopped, which does not stop us for ever.
bool Guardian::send(int message) noexcept {
  const int channel = running_->channel.get();
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
  while (::send(channel, &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    if (errno != EAGAIN && errno != EINTR && errno != ENOBUFS) return true;
    const int left = milliseconds_until(give_up);
    if (left == 0) return false;
    pollfd room{.fd = channel, .events = POLLOUT, .revents = 0};
    ::poll(&room, 1, left);
  }
  return true;
}

}  // namespace drover::inline v1::os
