// SPDX-License-Identifier: Apache-2.0
// expect: an array has 1 to 8 dimensions
#include "drover/array/shared_array.h"

drover::SharedArray<double, 0> array;
