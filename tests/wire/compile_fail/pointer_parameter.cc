// SPDX-License-Identifier: Apache-2.0
// expect: a raw pointer cannot travel between processes
#include "drover/wire/arguments.h"

void print(const char*);

void use() { drover::wire::check_callable<print>(); }
