// SPDX-License-Identifier: Apache-2.0
// expect: a raw pointer cannot travel between processes
#include "drover/pool/pool.h"

void print(const char*);

void use(drover::Pool& pool) { auto future = pool.submit<print>("text"); }
