// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "drover/base/duration.h"
#include "drover/os/child_process.h"
#include "drover/wire/arguments.h"
#include "drover/wire/function_table.h"
#include "drover/worker/launch.h"

namespace drover::inline v1 {

/// How a process ended: `code`, or `signal`, and describe().
using ExitStatus = os::ExitStatus;

namespace worker {

class ProcessState;

/// What a spawned process runs: its arguments, as they were encoded by the parent.
class SpawnedCall {
 public:
  explicit SpawnedCall(ChildContext& context);
  std::span<const std::byte> arguments() const noexcept { return arguments_; }
  /// Prints the exception being handled on stderr, as one that nobody caught, and gives the exit code for it.
  static int report_uncaught(std::string_view function) noexcept;

 private:
  std::vector<std::byte> arguments_;
};

/// Ends the process and lets go of it. In a fork of the creating process it is left as it is, never to be freed.
struct EndProcess {
  void operator()(ProcessState* state) const noexcept;
};
using ProcessPtr = std::unique_ptr<ProcessState, EndProcess>;

ProcessPtr start_process(std::uint32_t entry, std::string_view function, std::span<const std::byte> arguments,
                         wire::Kept kept);

template <auto F>
int run_spawned(ChildContext& context) {
  const SpawnedCall call(context);
  try {
    wire::Reader reader(call.arguments());
    if constexpr (std::same_as<wire::ResultOf<F>, int>) {
      return wire::apply<F>(reader);
    } else {
      static_cast<void>(wire::apply<F>(reader));
      return EXIT_SUCCESS;
    }
  } catch (...) {
    return SpawnedCall::report_uncaught(wire::function_name(wire::function_text<decltype(F), F>()));
  }
}

template <auto F>
void spawned_thunk(void* context) {
  std::exit(run_spawned<F>(*static_cast<ChildContext*>(context)));
}

}  // namespace worker

/// A process that runs one function of this program and ends. Move-only; one thread at a time; only the creating
/// process: in a fork of that it can only be dropped, which does nothing there; all else throws Error. Dropped, it is
/// terminated, killed if that does not help within two seconds, and reaped.
class Process {
 public:
  Process() = default;
  explicit Process(worker::ProcessPtr state) noexcept : state_(std::move(state)) {}

  int pid() const;
  /// Waits for its end. Throws Interrupted.
  void join();
  /// Waits at most so long; true when it has ended.
  bool join_for(Duration duration);
  /// How it ended; nothing while it runs. An int that the function returned is the exit code; an exception that left
  /// the function was printed on stderr, and the code is 1.
  std::optional<ExitStatus> exit_status() const;
  /// Sends SIGTERM. Nothing happens when it has ended.
  void terminate();
  /// Sends SIGKILL.
  void kill();

 private:
  worker::ProcessState& state() const;
  worker::ProcessPtr state_;
};

/// Starts a process that calls F; arguments are converted to the parameter types here and travel. Throws
/// InvalidArgument without init, std::system_error when no process can be started, OutOfMemory.
template <auto F, class... Argument>
[[nodiscard]] Process spawn(Argument&&... argument) {
  wire::check_callable<F>();
  wire::Kept kept;
  wire::Writer writer;
  writer.keep_in(&kept);
  wire::encode_arguments<F>(writer, std::forward<Argument>(argument)...);
  const auto name = wire::function_name(wire::function_text<decltype(F), F>());
  const auto entry = wire::Registered<F, &worker::spawned_thunk<F>>::index;
  return Process(worker::start_process(entry(), name, writer.bytes(), std::move(kept)));
}

}  // namespace drover::inline v1
