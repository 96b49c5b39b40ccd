// SPDX-License-Identifier: Apache-2.0
// expect: a lambda or function object cannot be called in another process
#include "drover/wire/arguments.h"

void use() {
  drover::wire::check_callable<[](int seed) { return seed; }>();
}
