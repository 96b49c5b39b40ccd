// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "benchmarks/harness/bench.h"

namespace bench {

/// The whole of `drover demo matrix` at full size, a new program each time, against peers/python_matrix.py: wall time,
/// and the memory of all processes together (PSS) while they hold the matrix.
void matrix_demo(Bench& bench);

}  // namespace bench
