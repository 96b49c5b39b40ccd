// SPDX-License-Identifier: Apache-2.0
#include "drover/worker/launch.h"

#include <cstdio>
#include <span>

#include "drover/wire/function_table.h"

namespace drover::inline v1::worker {

std::string LaunchOrder::to_text() const {
  return std::to_string(entry) + ":" + std::to_string(slot) + ":" + std::to_string(incarnation) + ":" +
         std::to_string(parent);
}

std::optional<LaunchOrder> LaunchOrder::from_text(const std::string& text) {
  LaunchOrder order;
  if (std::sscanf(text.c_str(), "%u:%u:%u:%d", &order.entry, &order.slot, &order.incarnation, &order.parent) != 4) {
    return std::nullopt;
  }
  return order;
}

void write_launch_page(const os::MemoryFile& file) {
  file.grow_to(kLaunchPageSize);
  LaunchPage page;
  page.digest = wire::program_functions().digest();
  file.write_at(0, std::as_bytes(std::span(&page, 1)));
}

}  // namespace drover::inline v1::worker
