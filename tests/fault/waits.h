// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace drover_test {

/// Waits for ever at a primitive of drover/sync; says "waits at WHAT" on stdout before. "mutex", "pop" ...
void wait_at(const std::string& what);

}  // namespace drover_test
