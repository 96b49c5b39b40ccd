// SPDX-License-Identifier: Apache-2.0
#include "drover/worker/init.h"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "drover/base/errors.h"
#include "drover/os/build_id.h"
#include "drover/os/fault_point.h"
#include "drover/os/fd.h"
#include "drover/os/self.h"
#include "drover/os/signals.h"
#include "drover/wire/function_table.h"
#include "drover/worker/launch.h"

namespace drover::inline v1 {
namespace {

bool initialized_here = false;

void freeze_functions() {
  const std::vector<os::Module> loaded = os::loaded_modules();
  std::vector<wire::ModuleId> modules;
  for (const os::Module& module : loaded) {
    modules.push_back({.begin = module.base, .end = module.base + module.size, .build_id = module.id});
  }
  wire::program_functions().freeze(modules);
}

[[noreturn]] void give_up(const char* what, const std::string& why, int code) {
  std::fprintf(stderr, "drover: %s: %s\n", what, why.c_str());
  std::fflush(stderr);
  os::exit_now(code);
}

[[noreturn]] void refuse(const std::string& why) { give_up("this child cannot start", why, worker::kExitIncompatible); }

void check_launch_page(const os::MemoryFile& file) {
  worker::LaunchPage page;
  file.read_at(0, std::as_writable_bytes(std::span(&page, 1)));
  if (page.magic != worker::LaunchPage::kMagic || page.version != worker::LaunchPage::kVersion) {
    refuse("its parent speaks another version of Drover's protocol");
  }
  if (page.digest != wire::program_functions().digest()) {
    refuse("its program or one of its libraries differs from its parent's; was it rebuilt while the parent ran?");
  }
}

[[noreturn]] void run_child(const std::string& text) {
  const auto order = worker::LaunchOrder::from_text(text);
  if (!order) refuse(std::string("its variable ") + worker::LaunchOrder::kVariable + " is malformed");
  os::Fd life(worker::kLifeDescriptor);
  os::die_with_parent(order->parent, life);
  life.reset();
  os::set_fault_role(("child-" + std::to_string(order->incarnation)).c_str());
  os::leave_interrupts_to_parent();
  os::Fd segment(worker::kSegmentDescriptor);
  segment.set_close_on_exec();
  worker::ChildContext context{os::MemoryFile::adopt(std::move(segment)), *order};
  check_launch_page(context.file);
  wire::program_functions().thunk(order->entry)(&context);
  std::exit(0);
}

}  // namespace

void init(int argc, char** argv) {
  const auto order = os::take_environment(worker::LaunchOrder::kVariable);
  if (initialized_here) return;
  initialized_here = true;
  os::fill_standard_streams();
  os::raise_fd_limit();
  freeze_functions();
  if (!order) {
    os::set_fault_role("parent");
    os::install_interrupt_handlers();
    return;
  }
  if (argc > 0) os::set_process_name(argv[0]);  // the kernel has it from the path, which is /proc/self/exe
  try {
    run_child(*order);
  } catch (const std::exception& error) {
    give_up("this child ends by an exception", error.what(), worker::kExitFailed);
  }
}

bool initialized() noexcept { return initialized_here; }

void worker::require_init(const char* what) {
  if (initialized_here) return;
  throw InvalidArgument(std::string(what) +
                        " needs drover::init: write `drover::init(argc, argv);` as the first line of main, because "
                        "workers are this same program started again");
}

}  // namespace drover::inline v1
