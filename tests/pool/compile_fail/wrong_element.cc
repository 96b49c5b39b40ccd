// SPDX-License-Identifier: Apache-2.0
// expect: the function takes neither an element of the range nor its parts
#include "drover/pool/pool.h"

double area(double width, double height);

void use(drover::Pool& pool) { auto results = pool.map<area>(drover::range(0, 3)); }
