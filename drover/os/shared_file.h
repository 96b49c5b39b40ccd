// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "drover/os/fd.h"

/// Files in the folder of shm_open (/dev/shm), and others that are mapped. Thread-safe.
namespace drover::inline v1::os {

struct FileId {
  std::uint64_t device = 0, inode = 0;
  bool operator==(const FileId&) const = default;
};

struct FileStatus {
  FileId id;
  std::uint64_t size = 0;
  std::uint64_t allocated = 0;  ///< bytes that it takes in memory or on disk
  unsigned user = 0, mode = 0;  ///< mode: permission bits
  bool regular = false;
};

FileStatus file_status(const Fd& file);  ///< throws std::system_error
/// Of what the path leads to, without opening it; nullopt when there is nothing or it may not be looked at (errno).
std::optional<FileId> file_id_of(const std::string& path) noexcept;

/// The folder with '/' at its end, and the path of a name in it.
std::string shared_folder();
std::string shared_path(std::string_view name);

/// Throws InvalidArgument unless `name` is 1 to 200 printable bytes without '/', not beginning with '.'.
void check_shared_name(std::string_view name);

/// A new file without a name, mode 0600, zero bytes, all memory reserved. Throws OutOfMemory, std::system_error.
Fd create_shared_file(std::uint64_t size);

/// Whether the name is taken, by whatever. Needs no descriptor.
bool shared_name_exists(const std::string& name) noexcept;

/// Gives the file a name in the folder; false when the name is taken.
bool link_shared_file(const Fd& file, const std::string& name);

/// Removes the name if it means that file (two steps: who takes the name between them loses it). True if it did.
bool unlink_shared_file(const std::string& name, const FileId& file) noexcept;

/// A regular file in the folder that this user owns and nobody else may write; nullopt when there is none of that name.
/// Throws Incompatible for anything else, std::system_error (without permission: says whose it is).
std::optional<Fd> open_shared_file(const std::string& name, bool writable);

/// Any regular file; nullopt when there is none. Never waits (FIFOs are refused). Throws as open_shared_file.
std::optional<Fd> open_regular_file(const std::string& path, bool writable);

/// The names in the folder, hidden ones too; sorted.
std::vector<std::string> shared_names();

/// Reads until `data` is full or the file ends; the number of bytes read.
std::size_t read_at(const Fd& file, std::uint64_t offset, std::span<std::byte> data);

/// The files in the text of /proc/PID/maps, each once. Pure; lines that are none are left out.
std::vector<FileId> mapped_files(std::string_view maps);

/// The file's absolute path as the kernel has it.
std::string path_of(const Fd& file);

/// True for a memory file that nobody can make smaller.
bool sealed_against_shrinking(const Fd& file) noexcept;
void seal_size(const Fd& file);  ///< no process can change its size or the seals from now on

}  // namespace drover::inline v1::os
