// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "benchmarks/harness/bench.h"

namespace bench {

/// S1 of targets.md: opening a named array of 800 MB and of 8 MB, against mmap of the same block.
void attach_800mb(Bench& bench);
/// S2: the sums of the rows of a matrix of 800 MB, and filling it, on all cores: against plain threads and NumPy.
void sum_rows(Bench& bench);
void fill(Bench& bench);

/// The file name, beside the benchmark, of peers/python_arrays.py.
inline constexpr const char* kPythonArrays = "drover-peer-python-arrays";

}  // namespace bench
