// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "drover/health/helper/role.h"

namespace drover::inline v1::health::nvml {

/// The helper that calls NVIDIA's library, with a thread for each GPU. Not a constant of this header: whoever uses it
/// must be linked with the helper itself.
extern const helper::Role kRole;

}  // namespace drover::inline v1::health::nvml
