// SPDX-License-Identifier: Apache-2.0
#include "drover/os/user_directory.h"

#include <pwd.h>

#include <future>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

namespace drover::inline v1::os {
namespace {

constexpr std::chrono::minutes kLeftAlone{1};

std::string name_in_service(std::uint32_t uid) {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(16U << 10U);
  if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) return {};
  return found->pw_name == nullptr ? std::string() : std::string(found->pw_name);
}

}  // namespace

UserDirectory::UserDirectory() : ask_(name_in_service) {}

std::string UserDirectory::name(std::uint32_t uid, double limit_s) {
  {
    const std::lock_guard lock(mutex_);
    if (Clock::now() < silent_until_) return {};
  }
  // A thread that nobody waits for: when the service hangs, it ends with the process.
  const auto promise = std::make_shared<std::promise<std::string>>();
  std::future<std::string> answer = promise->get_future();
  try {
    std::thread([promise, ask = ask_, uid] { promise->set_value(ask(uid)); }).detach();
  } catch (const std::system_error&) {
    return {};
  }
  if (answer.wait_for(std::chrono::duration<double>(limit_s)) == std::future_status::ready) return answer.get();
  const std::lock_guard lock(mutex_);
  silent_until_ = Clock::now() + kLeftAlone;
  return {};
}

}  // namespace drover::inline v1::os
