// SPDX-License-Identifier: Apache-2.0
// expect: a reference cannot travel between processes
#include "drover/wire/arguments.h"

const std::string& name();

void use() { drover::wire::check_callable<name>(); }
