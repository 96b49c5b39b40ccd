// SPDX-License-Identifier: Apache-2.0
// expect: the argument cannot be converted
#include "drover/wire/arguments.h"

double area(double width, double height);

void use(drover::wire::Writer& writer) { drover::wire::encode_arguments<area>(writer, 1.0, std::string("2")); }
