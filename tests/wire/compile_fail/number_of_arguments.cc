// SPDX-License-Identifier: Apache-2.0
// expect: the number of arguments is not the number of
#include "drover/wire/arguments.h"

double area(double width, double height);

void use(drover::wire::Writer& writer) { drover::wire::encode_arguments<area>(writer, 1.0); }
