// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "drover/health/health.h"

namespace drover::inline v1::cli {

/// The live view: `drover inspect --watch`, on stdin and stdout. Returns when the user ends it. Throws UsageError when
/// the two are not a terminal that can show it, Interrupted for a signal, InvalidArgument and std::system_error as
/// health::Watch does. The terminal is as it was in each case. Where a look does not come back, it ends the process
/// itself, with `kOk`.
int watch(const health::InspectOptions& options);

}  // namespace drover::inline v1::cli
