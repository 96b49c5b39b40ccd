// SPDX-License-Identifier: Apache-2.0
#include "drover/health/rules/kernel_place.h"

#include <algorithm>
#include <array>

#include "drover/health/rules/words.h"

namespace drover::inline v1::health {
namespace {

/// The kernel puts underscores before the names of inner functions. Words count at the start alone: "ll_" is of Lustre,
/// but also in "call_rwsem_down_read_failed" and "poll_link".
std::string_view without_underscores(std::string_view function) {
  function.remove_prefix(std::min(function.find_first_not_of('_'), function.size()));
  return function;
}

/// The closed module's own functions are "_nv037165rm" and the like.
bool is_numbered(std::string_view function) {
  constexpr std::string_view kStart = "_nv";
  return function.starts_with(kStart) && function.size() > kStart.size() && function[kStart.size()] >= '0' &&
         function[kStart.size()] <= '9';
}

}  // namespace

bool sleeps(std::string_view function) {
  return function.find("nanosleep") != function.npos || without_underscores(function).starts_with("common_nsleep");
}

bool waits_in_driver(std::string_view function) {
  static constexpr auto kStarts =
      std::to_array<std::string_view>({"nvidia",     "nv_",     "nvkms", "nvlink", "nvswitch", "uvm",      "rm_ioctl",
                                       "os_acquire", "os_cond", "kgsp",  "amdgpu", "amdkfd",   "amdttm",   "svm_range",
                                       "kfd_",       "ttm_",    "drm_",  "i915_",  "xe_",      "dma_fence"});
  return is_numbered(function) || function.find("nvidia") != function.npos ||
         starts_with_any(without_underscores(function), kStarts);
}

bool waits_in_storage(std::string_view function) {
  static constexpr auto kStarts = std::to_array<std::string_view>(
      {// Over the network: NFS and SUNRPC, CIFS, 9p, Lustre, GPFS, BeeGFS, Ceph, AFS, GPUDirect Storage.
       "nfs", "rpc_", "xprt_", "netfs_", "fscache_", "cachefiles_", "cifs", "smb2_", "SMB2_", "wait_for_response",
       "compound_send_recv", "p9_", "v9fs_", "lustre", "ll_", "ldlm_", "ptlrpc_", "osc_", "cl_", "lov_", "lmv_", "mdc_",
       "obd_", "gpfs", "cxiWait", "mmfs", "Fhgfs", "fhgfs", "beegfs", "MessagingTk", "ceph", "rbd_", "afs_", "nvfs_",
       // By a program, or on demand.
       "fuse", "request_wait_answer", "autofs", "ovl_",
       // On disks.
       "ext4_", "jbd2", "do_get_write_access", "start_this_handle", "wait_transaction_locked", "xfs_", "xlog_", "btrfs",
       "f2fs_", "bch2_", "zio_", "zil_", "zfs_", "txg_", "dmu_", "cv_wait_common", "gfs2_", "ocfs2_", "dlm_",
       // Blocks, pages, and the writing back.
       "io_schedule", "bit_wait_io", "folio_wait", "folio_lock", "wait_on_page", "lock_page", "wait_on_buffer", "blk",
       "submit_bio", "rq_qos", "wbt_wait", "balance_dirty_pages", "wb_wait", "sync_inodes", "inode_wait_for_writeback",
       "inode_sleep_on_writeback", "wait_on_inode", "wait_sb_inodes", "writeback_", "filemap_fdatawait", "iomap_",
       "nvme_", "scsi_", "md_", "raid5_", "sync_dirty_buffer", "fsync_buffers_list",
       // For the lock of a directory whose holder waits for one of these; the system calls by which that is told.
       "path_openat", "open_last_lookups", "lookup_slow", "walk_component", "iterate_dir", "filename_create",
       "do_unlinkat", "do_rmdir"});
  return starts_with_any(without_underscores(function), kStarts);
}

bool waits_for_memory(std::string_view function) {
  static constexpr auto kStarts = std::to_array<std::string_view>(
      {"mem_cgroup_", "memcg_", "try_charge", "try_to_free", "do_try_to_free", "reclaim_throttle",
       "throttle_direct_reclaim", "shrink_", "congestion_wait", "wait_iff_congested", "out_of_memory", "oom_"});
  return starts_with_any(without_underscores(function), kStarts);
}

bool waits_for_lock(std::string_view function) {
  // /proc/PID/wchan names the caller of the kernel's own waits: of the lock of a memory map, whoever changes that or
  // faults into it. Older kernels, and stacks, name the lock.
  static constexpr auto kStarts = std::to_array<std::string_view>(
      {"rwsem_", "down_read", "down_write", "call_rwsem_down_", "mutex_", "percpu_down_", "percpu_rwsem_",
       "vm_mmap_pgoff", "vm_munmap", "do_madvise", "do_mprotect", "do_mlock", "do_user_addr_fault",
       "lock_mm_and_find_vma", "access_remote_vm"});
  return starts_with_any(without_underscores(function), kStarts);
}

bool is_frozen(char state, std::string_view function) {
  // The trap of version 2 may be a part of get_signal, which otherwise waits for nothing but to be continued.
  static constexpr auto kStarts = std::to_array<std::string_view>({"refrigerator", "do_freezer_trap", "get_signal"});
  // Since Linux 6.1 version 1 freezes a thread in these waits where it is (TASK_FREEZABLE). A signal ends them, so that
  // they are never uninterruptible otherwise.
  static constexpr auto kFreezable =
      std::to_array<std::string_view>({"futex_", "do_sigtimedwait", "unix_stream_data_wait"});
  return starts_with_any(without_underscores(function), kStarts) ||
         (state == 'D' && (sleeps(function) || starts_with_any(without_underscores(function), kFreezable)));
}

bool rests_on_purpose(char state, std::string_view function) {
  // A key of a terminal is waited for in wait_woken since Linux 4, and so is what comes over a network.
  static constexpr auto kStarts = std::to_array<std::string_view>({"n_tty_read", "tty_read", "wait_woken"});
  return is_frozen(state, function) || sleeps(function) || starts_with_any(without_underscores(function), kStarts);
}

}  // namespace drover::inline v1::health
