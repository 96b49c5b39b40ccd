// SPDX-License-Identifier: Apache-2.0
// expect: the type cannot travel between processes: give it a public serialize
#include "drover/wire/arguments.h"

class Socket {
 public:
  explicit Socket(int descriptor) : descriptor_(descriptor) {}

 private:
  int descriptor_;
};

void send(const std::vector<Socket>& sockets);

void use() { drover::wire::check_callable<send>(); }
