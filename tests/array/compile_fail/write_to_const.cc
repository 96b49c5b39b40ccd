// SPDX-License-Identifier: Apache-2.0
// expect: array(0)
#include "drover/array/shared_array.h"

void write() {
  const auto array = drover::SharedArray<const double, 1>::open("field");
  array(0) = 1;
}
