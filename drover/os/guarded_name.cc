// SPDX-License-Identifier: Apache-2.0
#include "drover/os/guarded_name.h"

#include <system_error>

#include "drover/os/self.h"

namespace drover::inline v1::os {

int GuardedName::current_process() noexcept { return current_pid(); }

bool GuardedName::owned() const noexcept { return current_pid() == owner_; }

namespace {

/// Without it the name cannot be put back, which is no reason to have no block.
bool link_hidden(const Fd& file, const FileId& id) {
  try {
    return link_shared_file(file, hidden_name(id));
  } catch (const std::system_error&) {
    return false;
  }
}

}  // namespace

// A death after any of these steps: the guardian finds the entry and removes both names, if they mean this file.
std::optional<GuardedName> GuardedName::create(const Fd& file, const std::string& name) {
  const FileId id = file_status(file).id;
  std::shared_ptr<Guardian> guardian = Guardian::shared();
  const NameTable::Slot slot = guardian->add_name(name, id);
  GuardedName result(std::move(guardian), slot, name, id);
  if (!link_shared_file(file, name)) return std::nullopt;
  result.guardian_->set_name_live(slot, link_hidden(file, id));
  result.guardian_->ensure_running();  // it may have been dying when it was looked at before
  return result;
}

// The hidden link goes before the name, so that the guardian cannot put the name back afterwards.
void GuardedName::remove() noexcept {
  if (!guardian_ || !owned()) return;
  guardian_->set_name_live(slot_, false);
  unlink_shared_file(hidden_name(file_), file_);
  unlink_shared_file(name_, file_);
  guardian_->remove_name(slot_);
  guardian_.reset();
}

}  // namespace drover::inline v1::os
