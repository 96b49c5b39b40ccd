// SPDX-License-Identifier: Apache-2.0
// expect: a raw pointer cannot travel between processes
#include "drover/wire/codec.h"

struct Node {
  std::string name;
  Node* parent;
};

void use(drover::wire::Writer& writer, const std::map<int, std::vector<Node>>& nodes) {
  drover::wire::encode(writer, nodes);
}
