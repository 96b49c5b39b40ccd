// SPDX-License-Identifier: Apache-2.0
// expect: this view cannot be a parameter
#include "drover/wire/arguments.h"

void fill(std::span<double> values);

void use() { drover::wire::check_callable<fill>(); }
