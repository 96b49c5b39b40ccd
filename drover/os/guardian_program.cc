// SPDX-License-Identifier: Apache-2.0

/// The guardian: a program of its own, without a C library (a few kB, so that it costs nothing to have it wait), whose
/// image is part of the library. It outlives its owner, kills the process groups that the owner's workers led, removes
/// the names that the owner had in /dev/shm, and ends. While the owner lives it puts names back that another program
/// has removed. See guardian.h and guardian_protocol.h.

#include <asm/unistd.h>
#include <errno.h>
#include <linux/fcntl.h>
#include <linux/inotify.h>
#include <linux/mman.h>
#include <linux/stat.h>
#include <poll.h>
#include <signal.h>

#include "drover/os/guardian_protocol.h"

namespace {

using namespace drover::os::guardian;  // NOLINT: this file is that side of it

constexpr int kMostGroups = 4096;
constexpr unsigned kMostEvents = 256;

int groups[kMostGroups];
int group_count = 0;
const NameTable* table = nullptr;
int watch = -1;  ///< inotify of the folder
bool has_names = false;

#if defined(__x86_64__)
long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
  long result;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__)
long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  register long x5 asm("x5") = f;
  asm volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
}
#else
#error "the guardian knows the system calls of x86-64 and AArch64 only"
#endif

#ifdef DROVER_FAULT_POINTS
long points_left = -1;

/// As os::fault_point; which one kills it stands in the table.
void fault_point() {
  if (points_left > 0 && --points_left == 0) call(__NR_kill, call(__NR_getpid), SIGKILL);
}
void begin_fault_points() {
  if (table != nullptr) points_left = __atomic_load_n(&table->dies_at, __ATOMIC_RELAXED);
}
#else
void fault_point() {}
void begin_fault_points() {}
#endif

long address(const void* pointer) { return reinterpret_cast<long>(pointer); }

// Names.

/// "/dev/shm/" and a name, copied out of memory that the owner may write at any time. Empty for anything that is no
/// name of a file in that very folder.
struct Path {
  char text[sizeof kFolder + 204];

  Path(const char* name, unsigned size) {
    unsigned length = 0;
    for (; kFolder[length] != 0; ++length) text[length] = kFolder[length];
    for (unsigned i = 0; i < size; ++i) {
      const char c = __atomic_load_n(&name[i], __ATOMIC_RELAXED);
      text[length + i] = c;
      if (c == 0) return;
      if (c == '/') break;
    }
    text[0] = 0;
  }
};

bool means(const Path& path, const NameEntry& entry, uint64_t inode) {
  struct statx status;
  if (call(__NR_statx, AT_FDCWD, address(path.text), AT_SYMLINK_NOFOLLOW, STATX_INO, address(&status)) != 0)
    return false;
  return status.stx_ino == inode && status.stx_dev_major == entry.device_major &&
         status.stx_dev_minor == entry.device_minor;
}

void remove(const Path& path, const NameEntry& entry, uint64_t inode) {
  if (means(path, entry, inode)) call(__NR_unlinkat, AT_FDCWD, address(path.text), 0);
  fault_point();
}

unsigned used_entries() {
  if (table == nullptr) return 0;
  const unsigned used = __atomic_load_n(&table->used, __ATOMIC_ACQUIRE);
  return used < kEntries ? used : kEntries;
}

void remove_names() {
  const unsigned used = used_entries();
  for (unsigned i = 0; i < used; ++i) {
    const NameEntry& entry = table->entries[i];
    const uint64_t inode = __atomic_load_n(&entry.inode, __ATOMIC_ACQUIRE);
    if (inode == 0) continue;
    remove(Path(entry.hidden, sizeof entry.hidden), entry, inode);
    remove(Path(entry.name, sizeof entry.name), entry, inode);
  }
}

/// Puts a name back, unless it is there. The owner that gives a name up removes the hidden link first, so that nothing
/// can come back after the name itself was removed.
void restore(const NameEntry& entry) {
  if (__atomic_load_n(&entry.live, __ATOMIC_ACQUIRE) != 1) return;
  const Path hidden(entry.hidden, sizeof entry.hidden);
  const Path name(entry.name, sizeof entry.name);
  call(__NR_linkat, AT_FDCWD, address(hidden.text), AT_FDCWD, address(name.text), 0);
  fault_point();
}

void restore_all() {
  const unsigned used = used_entries();
  for (unsigned i = 0; i < used; ++i) restore(table->entries[i]);
}

void restore_some(const uint32_t* hashes, unsigned count) {
  const unsigned used = used_entries();
  for (unsigned i = 0; i < used; ++i) {
    const NameEntry& entry = table->entries[i];
    for (unsigned k = 0; k < count; ++k) {
      if (entry.hash == hashes[k]) restore(entry);
    }
  }
}

void read_events() {
  alignas(8) static char buffer[4096];
  static uint32_t hashes[kMostEvents];
  const long size = call(__NR_read, watch, address(buffer), sizeof buffer);
  unsigned count = 0;
  bool all = false;
  for (long at = 0; at + static_cast<long>(sizeof(inotify_event)) <= size;) {
    const auto* const event = reinterpret_cast<const inotify_event*>(buffer + at);
    if ((event->mask & IN_Q_OVERFLOW) != 0 || count == kMostEvents)
      all = true;
    else if (event->len != 0)
      hashes[count++] = hash_name(event->name);
    at += static_cast<long>(sizeof(inotify_event) + event->len);
  }
  if (all) return restore_all();
  if (count != 0) restore_some(hashes, count);
}

void close_watch() {
  if (watch >= 0) call(__NR_close, watch);
  watch = -1;
}

/// Without a watch, because the user's instances or watches of inotify are used up, it is called every 100 ms.
void keep_names() {
  if (watch < 0) {
    watch = static_cast<int>(call(__NR_inotify_init1, IN_CLOEXEC | IN_NONBLOCK));
    if (watch >= 0 && call(__NR_inotify_add_watch, watch, address(kFolder), IN_DELETE | IN_MOVED_FROM | IN_ONLYDIR) < 0)
      close_watch();
  }
  restore_all();  // what happened before
}

void begin_names() {
  if (has_names) return;
  has_names = true;
  keep_names();
}

// Groups.

void forget(int group) {
  for (int i = 0; i < group_count; ++i) {
    if (groups[i] == group) groups[i--] = groups[--group_count];
  }
}

void obey(int message) {
  if (message == kNamesBegin) return begin_names();
  if (message < 0) return forget(-message);
  if (group_count < kMostGroups) groups[group_count++] = message;
}

/// False when the owner has closed the channel.
bool read_message() {
  int message = 0;
  const long size = call(__NR_read, kFromOwner, address(&message), sizeof message);
  fault_point();
  if (size == sizeof message) obey(message);
  fault_point();
  return size > 0 || size == -EINTR || size == -EAGAIN;
}

void kill_groups() {
  for (int i = 0; i < group_count; ++i) {
    call(__NR_kill, -groups[i], SIGKILL);
    fault_point();
  }
}

[[noreturn]] void end() {
  remove_names();
  call(__NR_exit_group, 0);
  __builtin_unreachable();
}

struct Timeout {
  long seconds, nanoseconds;
};

[[noreturn]] void run() {
  call(__NR_setsid);  // no signal from the owner's terminal or session is meant for it
  const long mapped = call(__NR_mmap, 0, sizeof(NameTable), PROT_READ, MAP_SHARED, kTable, 0);
  if (mapped > 0 || mapped < -4095) table = reinterpret_cast<const NameTable*>(mapped);
  begin_fault_points();
  fault_point();
  pollfd waits[3] = {{kOwner, POLLIN, 0}, {kFromOwner, POLLIN, 0}, {-1, POLLIN, 0}};
  bool listening = true;
  while (waits[0].revents == 0) {
    waits[2].fd = watch;
    const bool blind = has_names && watch < 0;
    const Timeout look_again = {0, 100'000'000};
    if (call(__NR_ppoll, address(waits), 3, blind ? address(&look_again) : 0, 0, 0) == 0 && blind) keep_names();
    if (waits[2].revents != 0 && watch >= 0) read_events();
    if (listening && waits[1].revents != 0) listening = read_message();
    if (!listening && waits[0].revents == 0) {
      // The channel closes a moment before the pidfd tells of a death. An owner that lives on has let its guardian go,
      // or has become another program by exec.
      const Timeout patience = {0, 100'000'000};
      call(__NR_ppoll, address(waits), 1, address(&patience), 0, 0);
      if (waits[0].revents == 0) end();
    }
  }
  const Timeout at_once = {0, 0};
  while (listening && call(__NR_ppoll, address(&waits[1]), 1, address(&at_once), 0, 0) > 0) listening = read_message();
  kill_groups();
  end();
}

}  // namespace

// The kernel enters with the stack pointer as the ABI of a called function does not have it.
extern "C" [[noreturn, gnu::used]] void guardian_main() { run(); }
#if defined(__x86_64__)
asm(".globl _start\n_start:\n  xor %ebp, %ebp\n  and $-16, %rsp\n  call guardian_main\n");
#else
asm(".globl _start\n_start:\n  mov x29, #0\n  bl guardian_main\n");
#endif
