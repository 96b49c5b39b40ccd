// SPDX-License-Identifier: Apache-2.0
// expect: the function takes neither the elements of the range nor
#include "drover/wire/arguments.h"

double area(double width, double height);

void use(drover::wire::Writer& writer) { drover::wire::encode_element<area>(writer, std::tuple(1, 2, 3)); }
