// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "benchmarks/harness/bench.h"

namespace bench {

/// S3: items of 64 bytes between two processes, against the ring; and against Python's Queue, shown.
void queue_64b(Bench& bench);
/// S3: items of 1 MB, std::vector on both sides, against warm memcpy; and against Python's Queue, shown.
void queue_1mb(Bench& bench);

/// The file name, beside the benchmark, of peers/python_queue.py.
inline constexpr const char* kPythonQueue = "drover-peer-python-queue";

}  // namespace bench
