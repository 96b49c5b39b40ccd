// SPDX-License-Identifier: Apache-2.0
// expect: a parameter that is a non-const reference cannot travel between processes
#include "drover/worker/process.h"

void fill(int& result);

void use(int& result) { auto process = drover::spawn<fill>(result); }
