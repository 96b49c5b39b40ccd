// SPDX-License-Identifier: Apache-2.0
#include "drover/health/helper/role.h"

#include <array>
#include <optional>

#include "drover/os/self.h"

namespace drover::inline v1::health::helper {

Request Conversation::next() {
  for (;;) {
    while (const auto message = reader_.next()) {
      if (auto request = decode_request(message->payload)) return std::move(*request);
      os::exit_now(1);
    }
    std::array<std::byte, 16'384> buffer;
    const auto count = requests_.read_some(buffer);
    if (!count || *count == 0 || reader_.broken()) os::exit_now(0);
    reader_.add({buffer.data(), *count});
  }
}

void Conversation::send(const std::string& message) {
  const std::lock_guard lock(sending_);
  std::span<const std::byte> rest = std::as_bytes(std::span(message.data(), message.size()));
  try {
    while (!rest.empty()) rest = rest.subspan(answers_.write_some(rest).value_or(0));
  } catch (...) {
    os::exit_now(0);  // nobody is there to read it
  }
}

void become_if_told(const Role& role, const std::function<void(const std::string& argument)>& serve) {
  const std::optional<std::string> argument = os::take_environment(role.variable);
  if (!argument) return;
  os::set_process_name(role.name);
  try {
    serve(*argument);
  } catch (...) {  // no descriptor, no memory
  }
  os::exit_now(1);
}

}  // namespace drover::inline v1::health::helper
