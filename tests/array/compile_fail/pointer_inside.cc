// SPDX-License-Identifier: Apache-2.0
// expect: the elements of an array must be plain data
#include "drover/array/shared_array.h"

struct Node {
  double value;
  Node* next;
};

auto array = drover::SharedArray<Node, 1>::create({10});
