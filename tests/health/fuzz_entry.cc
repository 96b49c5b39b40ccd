// SPDX-License-Identifier: Apache-2.0
// For clang's libFuzzer (cmake -DDROVER_LIBFUZZER=ON): the first byte chooses the parser, the rest is for it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "health/fuzz_targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto& targets = drover_test::fuzz_targets();
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  if (!targets[data[0] % targets.size()].run(text).empty()) std::abort();
  return 0;
}
