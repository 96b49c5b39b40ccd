// SPDX-License-Identifier: Apache-2.0
// expect: a member function needs an object
#include "drover/wire/arguments.h"

struct Counter {
  int next();
};

void use() { drover::wire::check_callable<&Counter::next>(); }
