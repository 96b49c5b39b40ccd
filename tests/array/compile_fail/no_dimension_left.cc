// SPDX-License-Identifier: Apache-2.0
// expect: an index for each axis has no dimension left
#include "drover/array/shared_array.h"

auto element(const drover::SharedArray<double, 2>& array) { return array.slice(1, 2); }
