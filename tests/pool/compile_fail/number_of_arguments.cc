// SPDX-License-Identifier: Apache-2.0
// expect: the number of arguments is not the number of
#include "drover/pool/pool.h"

double area(double width, double height);

void use(drover::Pool& pool) { auto future = pool.submit<area>(1.0); }
