// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "drover/os/child_process.h"

namespace drover::inline v1::cli {

/// Changes a request so that the child is killed when this process ends, however it ends: started from this program's
/// own image, which ties itself to its parent and then becomes the program that was asked for (before main, by a hidden
/// variable of the environment). `life`: the read end of a pipe whose write end this process keeps open. What the child
/// starts itself is not tied. The calling thread's end counts as the end of this process.
void tie(os::SpawnRequest& request, const os::Fd& life);

}  // namespace drover::inline v1::cli
