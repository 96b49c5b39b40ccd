// SPDX-License-Identifier: Apache-2.0
// expect: a parameter that is a non-const reference cannot travel between processes
#include "drover/wire/arguments.h"

void fill(std::vector<int>& result);

void use() { drover::wire::check_callable<fill>(); }
