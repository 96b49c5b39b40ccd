// SPDX-License-Identifier: Apache-2.0
// expect: deleted
#include "drover/array/shared_array.h"

double sum() {
  double sum = 0;
  for (const double value : drover::SharedArray<double, 2>::open("field").span()) sum += value;
  return sum;
}
