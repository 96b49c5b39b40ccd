// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "benchmarks/harness/figure.h"

namespace bench {

/// S2b of targets.md: lock and unlock of a drover::Mutex against std::mutex in the same process, with a second thread
/// alive, and contended by two.
Figure mutex_uncontended();
Figure mutex_contended();

}  // namespace bench
