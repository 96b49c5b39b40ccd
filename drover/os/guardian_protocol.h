// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>  // NOLINT: the guardian is a freestanding program

/// What a program and its guardian agree on. The guardian is compiled without a library: plain data and constants only.
namespace drover::inline v1::os::guardian {

/// A message is one int, a packet of the channel. A number above 1 is a process group to watch, a negative one a group
/// to forget.
inline constexpr int kNamesBegin = 0;  ///< the table has names from now on, maybe none at times: see that they stay

// Descriptors of the guardian.
inline constexpr int kFromOwner = 0;  ///< the channel, a socket
inline constexpr int kOwner = 1;      ///< pidfd
inline constexpr int kTable = 2;      ///< memory file with a NameTable
inline constexpr int kImage = 3;      ///< its own program

inline constexpr char kFolder[] = "/dev/shm/";       ///< of shm_open, as glibc has it
inline constexpr char kHiddenPrefix[] = ".drover-";  ///< then the inode, 16 hexadecimal digits

/// A name that the program owns. Written by the program alone; `inode` last when it begins, first when it ends.
struct NameEntry {
  uint64_t inode;  ///< 0: free. The name is removed if it still means this file
  uint32_t device_major, device_minor;
  uint32_t live;    ///< 1: the name is there and is to stay: put back what another program removes
  uint32_t hash;    ///< of the name
  char name[204];   ///< up to 200 bytes and a zero
  char hidden[28];  ///< a second link to the file, from which the name can be put back
};
static_assert(sizeof(NameEntry) == 256);

inline constexpr uint32_t kEntries = 65'535;
struct NameTable {
  uint32_t used;     ///< entries from here on were never written
  uint32_t dies_at;  ///< test builds: the fault point of the guardian that kills it, from 1; 0: none
  uint32_t unused[62];
  NameEntry entries[kEntries];
};
static_assert(sizeof(NameTable) == 65'536 * 256);

/// FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv: of the bytes up to a zero.
inline uint32_t hash_name(const char* name) {
  uint32_t hash = 2'166'136'261U;
  for (; *name != 0; ++name) hash = (hash ^ static_cast<unsigned char>(*name)) * 16'777'619U;
  return hash;
}

}  // namespace drover::inline v1::os::guardian
