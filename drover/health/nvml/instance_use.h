// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "drover/health/sample.h"

namespace drover::inline v1::health::nvml {

/// What the processes of a divided GPU (MIG) did, from the use of its parts, which is all that is told: when nothing
/// ran in a part, nobody there did anything, and a process that is alone in its part did what was done. Of several
/// nothing is known, unless the part rests. Fills in `active`, `activity` and the rows' `use_code`. Pure.
void judge_instances(GpuSample& sample);

}  // namespace drover::inline v1::health::nvml
