// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "drover/health/helper/records.h"

namespace drover_test {

/// Reads bytes as the inspector reads those of its helper, every message as each kind; up to 100 of them.
inline void read_messages(std::string_view bytes) {
  drover::health::helper::MessageReader reader;
  reader.add(std::as_bytes(std::span(bytes.data(), bytes.size())));
  for (int i = 0; i < 100; ++i) {
    const auto message = reader.next();
    if (!message) break;
    drover::health::helper::decode_request(message->payload);
    drover::health::helper::decode_answer(message->payload);
    drover::health::helper::decode_ready(message->payload);
    drover::health::helper::decode_stuck(message->payload);
  }
}

}  // namespace drover_test
