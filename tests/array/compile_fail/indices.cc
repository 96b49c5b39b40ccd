// SPDX-License-Identifier: Apache-2.0
// expect: no match
#include "drover/array/shared_array.h"

double element(const drover::SharedArray<double, 2>& array) { return array(1); }
