// SPDX-License-Identifier: Apache-2.0
// expect: a lambda or function object cannot be called in another process
#include "drover/pool/pool.h"

void use(drover::Pool& pool) {
  auto future = pool.submit<[](int seed) { return seed; }>(3);
}
