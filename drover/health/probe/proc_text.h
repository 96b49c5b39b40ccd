// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drover/health/sample.h"

/// Parsers of what the kernel writes. All are pure, take any bytes, and leave out what makes no sense.
/// Sources: proc(5), Documentation/filesystems/proc.rst, Documentation/accounting/psi.rst of the Linux kernel.
namespace drover::inline v1::health {

/// /proc/PID/stat. The name may hold blanks and parentheses: it ends at the last ')'. False when it is malformed.
bool parse_stat(std::string_view text, ProcessBrief& brief);

/// The fields of /proc/PID/status that are used.
struct StatusFields {
  std::optional<std::uint32_t> uid;  ///< the effective one
  bool kill_pending = false;         ///< bit 8 of SigPnd or ShdPnd: SIGKILL was sent
  int tracer = 0;
  int inner_pid = 0;  ///< the last of NSpid, when there are several
};
StatusFields parse_status(std::string_view text);

/// rchar + wchar of /proc/PID/io.
std::optional<std::uint64_t> parse_io(std::string_view text);

/// The variables of /proc/PID/environ whose names are in `wanted`; the first of equal ones. Values are cut at 256
/// bytes.
std::map<std::string, std::string> parse_environ(std::string_view text, const std::vector<std::string>& wanted);

/// /proc/PID/cmdline with blanks between the arguments, at most `most` bytes.
std::string parse_cmdline(std::string_view text, std::size_t most = 4096);

/// The path that says most about a process in /proc/PID/cgroup: the longest.
std::string parse_process_cgroup(std::string_view text);

/// /proc/stat: all CPUs together, and each by number (numbers of 65,536 and more are left out).
struct CpuTable {
  CpuTimes all;
  std::vector<CpuTimes> cpus;
};
std::optional<CpuTable> parse_cpu_times(std::string_view text);

/// Bytes by name ("MemTotal"), from /proc/meminfo.
std::map<std::string, std::uint64_t> parse_meminfo(std::string_view text);

/// /proc/pressure/*; nullopt when there is no "some" line.
std::optional<Pressure> parse_pressure(std::string_view text);

/// The first port that the kernel gives to who asks for any, in /proc/sys/net/ipv4/ip_local_port_range, which NCCL,
/// gloo, JAX and TensorFlow listen on. Where it gives nearly all of them those below 10,000 are taken for services'.
int parse_first_free_port(std::string_view text);

/// Whether a service may have chosen it, which is to be found there: it is below the first free one, or gRPC's usual
/// one; and it is none on which libraries of training listen by default.
bool is_port_of_service(int port, int first_free);

/// Inodes of sockets that listen on such ports, in /proc/PID/net/tcp or tcp6.
std::vector<std::uint64_t> parse_listening(std::string_view text, int first_free);

/// The inode of "socket:[12345]".
std::optional<std::uint64_t> socket_inode(std::string_view link);

/// The GPU behind the name of a device file: 3 for "/dev/nvidia3". nullopt for anything else.
std::optional<int> nvidia_minor(std::string_view path);
/// /dev/nvidiactl, /dev/nvidia-uvm, /dev/nvidia-uvm-tools.
bool is_nvidia_control(std::string_view path);

}  // namespace drover::inline v1::health
