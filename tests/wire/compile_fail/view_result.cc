// SPDX-License-Identifier: Apache-2.0
// expect: a view cannot travel inside another value or as a result
#include "drover/wire/arguments.h"

std::string_view name();

void use() { drover::wire::check_callable<name>(); }
