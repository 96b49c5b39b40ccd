// SPDX-License-Identifier: Apache-2.0
// expect: the elements of an array must be plain data
#include "drover/array/shared_array.h"

auto array = drover::SharedArray<const char*, 1>::create({10});
