// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace drover::inline v1 {

/// Must be the first thing in main. In a process that Drover started it runs what that process was started for and ends
/// it: the call does not return, and nothing after it in main happens there. Elsewhere it notes that this program can
/// be started again, installs handlers for SIGINT and SIGTERM where the default ones stand (waiting calls then throw
/// Interrupted; a second signal ends the program), and raises the soft limit of open descriptors. Later calls do
/// nothing.
void init(int argc, char** argv);

/// True once init has been called in this process. A pool or process without it is an InvalidArgument.
bool initialized() noexcept;

namespace worker {

/// Throws InvalidArgument, saying what to write, unless init has been called. `what` is "a Pool", "spawn".
void require_init(const char* what);

}  // namespace worker
}  // namespace drover::inline v1
