// SPDX-License-Identifier: Apache-2.0
// expect: a lambda or function object cannot be called in another process
#include "drover/pool/pool.h"

void use(drover::Pool& pool) {
  auto results = pool.map<[](int seed) { return seed; }>(drover::range(0, 3));
}
