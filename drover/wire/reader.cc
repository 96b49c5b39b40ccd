// SPDX-License-Identifier: Apache-2.0
#include "drover/wire/reader.h"

#include <string>

#include "drover/base/errors.h"

namespace drover::inline v1::wire {

void Reader::fail(std::string_view type, std::string_view problem) const {
  throw Incompatible("cannot read a " + std::string(type) + " from another process: " + std::string(problem) +
                     " (byte " + std::to_string(position()) + " of the message)");
}

void Reader::refuse_alignment() {
  throw InvalidArgument("a message must begin at a multiple of " + std::to_string(kMessageAlignment) + " bytes");
}

}  // namespace drover::inline v1::wire
