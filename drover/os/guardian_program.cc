// SPDX-License-Identifier: Apache-2.0

/// The guardian: a program of its own, without a C library (a few kB, so that it costs nothing to have it wait), whose
/// image is part of the library. It outlives its owner, kills the process groups that the owner's workers led, and
/// ends. Descriptor 0 is a pipe from the owner, descriptor 1 a pidfd of the owner. See guardian.h.

#include <asm/unistd.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>

namespace {

// As in guardian.h: a positive number is a group to watch, a negative one a group to forget.
using Message = int;

constexpr int kMostGroups = 4096;
constexpr int kFromOwner = 0;
constexpr int kOwner = 1;

int groups[kMostGroups];
int group_count = 0;

#if defined(__x86_64__)
long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0) {
  long result;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
               : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__)
long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0) {
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  asm volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
  return x0;
}
#else
#error "the guardian knows the system calls of x86-64 and AArch64 only"
#endif

long address(const void* pointer) { return reinterpret_cast<long>(pointer); }

void forget(int group) {
  for (int i = 0; i < group_count; ++i) {
    if (groups[i] == group) groups[i--] = groups[--group_count];
  }
}

void obey(Message message) {
  if (message < 0) return forget(-message);
  if (message > 1 && group_count < kMostGroups) groups[group_count++] = message;
}

/// False when the owner has closed the pipe.
bool read_messages() {
  Message messages[64];
  const long size = call(__NR_read, kFromOwner, address(messages), sizeof messages);
  if (size == -EINTR || size == -EAGAIN) return true;
  if (size <= 0) return false;
  // Messages are written singly and smaller than PIPE_BUF: they arrive whole.
  for (unsigned long i = 0; i < static_cast<unsigned long>(size) / sizeof(Message); ++i) obey(messages[i]);
  return true;
}

void kill_groups() {
  for (int i = 0; i < group_count; ++i) call(__NR_kill, -groups[i], SIGKILL);
}

[[noreturn]] void run() {
  call(__NR_setsid);  // no signal from the owner's terminal or session is meant for it
  pollfd waits[2] = {{kFromOwner, POLLIN, 0}, {kOwner, POLLIN, 0}};
  bool listening = true;
  while (waits[1].revents == 0) {
    call(__NR_ppoll, address(waits), 2, 0, 0, 0);
    if (listening && waits[0].revents != 0) listening = read_messages();
    if (!listening && waits[1].revents == 0) {
      // The pipe closes a moment before the pidfd tells of a death. An owner that lives on has let its guardian go.
      struct {
        long seconds, nanoseconds;
      } const patience = {0, 100'000'000};
      call(__NR_ppoll, address(&waits[1]), 1, address(&patience), 0, 0);
      if (waits[1].revents == 0) call(__NR_exit_group, 0);
    }
  }
  struct {
    long seconds, nanoseconds;
  } const at_once = {0, 0};
  while (listening && call(__NR_ppoll, address(waits), 1, address(&at_once), 0, 0) > 0) listening = read_messages();
  kill_groups();
  call(__NR_exit_group, 0);
  __builtin_unreachable();
}

}  // namespace

// The kernel enters with the stack pointer as the ABI of a called function does not have it.
extern "C" [[noreturn, gnu::used]] void guardian_main() { run(); }
#if defined(__x86_64__)
asm(".globl _start\n_start:\n  xor %ebp, %ebp\n  and $-16, %rsp\n  call guardian_main\n");
#else
asm(".globl _start\n_start:\n  mov x29, #0\n  bl guardian_main\n");
#endif
