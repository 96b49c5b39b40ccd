// SPDX-License-Identifier: Apache-2.0
#include "drover/health/probe/program_reader.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "drover/health/probe/proc_text.h"
#include "drover/health/sample.h"

namespace drover::inline v1::health {
namespace {

Program read_program(const os::HostFolder& folder) {
  Program program;
  program.command = parse_cmdline(folder.text("cmdline").value_or(std::string()));
  program.cgroup = parse_process_cgroup(folder.text("cgroup").value_or(std::string()));
  const auto environment = folder.text("environ", 1U << 20U);
  program.environment_known = environment.has_value();
  program.environment = parse_environ(environment.value_or(std::string()), job_variables());
  return program;
}

}  // namespace

/// Belongs to all requests and to the thread that serves them.
struct ProgramReader::Request::Batch {
  std::vector<std::shared_ptr<const os::HostFolder>> folders;
  std::vector<Program> programs;
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t done = 0;   // under mutex; the programs before it never change again
  bool given_up = false;  // under mutex: nobody wants what comes after the one that hangs
};

const Program* ProgramReader::Request::answer() const noexcept {
  if (batch_ == nullptr) return nullptr;
  const std::lock_guard lock(batch_->mutex);
  return index_ < batch_->done ? &batch_->programs[index_] : nullptr;
}

void ProgramReader::run(Request::Batch& batch) {
  for (std::size_t i = 0; i < batch.folders.size(); ++i) {
    try {
      batch.programs[i] = read_program(*batch.folders[i]);
    } catch (const std::bad_alloc&) {  // then nothing is known of it
    }
    const std::lock_guard lock(batch.mutex);
    batch.done = i + 1;
    if (batch.given_up) return;
  }
  batch.changed.notify_all();
}

/// How many it read before one hung: no more came within `patience`.
std::size_t ProgramReader::wait_for(Request::Batch& batch, std::chrono::milliseconds patience) {
  std::unique_lock lock(batch.mutex);
  const auto all = [&] { return batch.done == batch.folders.size(); };
  for (std::size_t before = 0; !batch.changed.wait_for(lock, patience, all); before = batch.done) {
    if (batch.done == before) break;
  }
  batch.given_up = true;
  return batch.done;
}

std::vector<ProgramReader::Request> ProgramReader::read(std::vector<std::shared_ptr<const os::HostFolder>> folders) {
  std::vector<Request> requests;
  auto patience = kPatience;
  while (!folders.empty()) {
    const auto batch = std::make_shared<Request::Batch>();
    batch->folders = folders;
    batch->programs.resize(folders.size());
    try {
      std::thread([batch] { run(*batch); }).detach();
    } catch (const std::system_error&) {  // no thread left: it is read here, come what may
      run(*batch);
    }
    const std::size_t asked = std::min(wait_for(*batch, patience) + 1, folders.size());  // with the one that hangs
    for (std::size_t i = 0; i < asked; ++i) requests.push_back(Request(batch, i));
    folders.erase(folders.begin(), folders.begin() + static_cast<std::ptrdiff_t>(asked));
    patience = kMoment;
  }
  return requests;
}

}  // namespace drover::inline v1::health
