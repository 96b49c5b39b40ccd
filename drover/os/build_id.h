// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Which program this process runs, exactly enough to tell two builds apart and to start the same one again.
namespace drover::inline v1::os {

/// The main program or a shared library, as loaded.
struct Module {
  std::string path;           ///< as the loader or the kernel names it; the file may be gone by now
  std::uintptr_t base = 0;    ///< lowest address of its segments
  std::uintptr_t size = 0;    ///< every address of the module lies in [base, base + size)
  std::vector<std::byte> id;  ///< GNU build id; without one 8 bytes, a hash of the file's size, time and inode
};

/// The main program first, then the libraries in the order of the loader; the kernel's vdso is left out. The id is
/// empty for a module without build id whose file cannot be found any more. Thread-safe. Throws std::system_error (out
/// of descriptors) and std::bad_alloc.
std::vector<Module> loaded_modules();

/// Whether executing /proc/self/exe starts this same program. A file that was deleted or replaced since makes no
/// difference: the kernel holds on to it. False when the program was given as an argument to the dynamic loader or runs
/// under an emulator (valgrind, qemu-user); then `why` is set to a sentence for the user. Thread-safe. Throws
/// std::system_error when /proc is not there.
bool runs_this_program(std::string& why);

/// A file that is mapped, from a line of /proc/PID/maps. Device numbers are as the kernel prints them.
struct MappedFile {
  std::uint64_t device_major = 0;
  std::uint64_t device_minor = 0;
  std::uint64_t inode = 0;
  std::string path;      ///< without " (deleted)"
  bool deleted = false;  ///< no name leads to it any more
};

/// The file mapped at `address`; nullopt when nothing is, or memory without a file. Pure.
std::optional<MappedFile> find_mapped_file(std::string_view maps, std::uintptr_t address);

/// The build id among ELF notes (elf(5), "Notes"); empty when there is none or the notes are malformed. `alignment` is
/// the p_align of their segment. Pure.
std::vector<std::byte> find_build_id(std::span<const std::byte> notes, std::size_t alignment);

}  // namespace drover::inline v1::os
