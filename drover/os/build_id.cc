// SPDX-License-Identifier: Apache-2.0
#include "drover/os/build_id.h"

#include <elf.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <system_error>

#include "drover/base/hash.h"
#include "drover/os/file_system.h"

namespace drover::inline v1::os {
namespace {

constexpr const char* kExe = "/proc/self/exe";
constexpr std::size_t kMaxMaps = 64U << 20U;
constexpr std::size_t kMaxHeaders = 64U << 10U;

/// What the loader tells of one module. Copied inside its callback, worked on outside: it holds the loader's lock.
struct Loaded {
  std::string name;
  std::uintptr_t base = 0;
  std::uintptr_t end = 0;
  std::vector<ElfW(Phdr)> headers;
  std::vector<std::byte> build_id;
};

std::span<const std::byte> bytes_at(std::uintptr_t address, std::size_t size) {
  return {reinterpret_cast<const std::byte*>(address),
          size};  // NOLINT(performance-no-int-to-ptr): the loader's numbers
}

/// Notes are readable only as part of a segment that is loaded and that may be read.
bool is_loaded(std::span<const ElfW(Phdr)> headers, const ElfW(Phdr) & part) {
  return std::any_of(headers.begin(), headers.end(), [&](const ElfW(Phdr) & load) {
    return load.p_type == PT_LOAD && (load.p_flags & PF_R) != 0 && part.p_vaddr >= load.p_vaddr &&
           part.p_memsz <= load.p_memsz && part.p_vaddr - load.p_vaddr <= load.p_memsz - part.p_memsz;
  });
}

Loaded describe(const dl_phdr_info& info) {
  Loaded module;
  module.name = info.dlpi_name == nullptr ? "" : info.dlpi_name;
  module.headers.assign(info.dlpi_phdr, info.dlpi_phdr + info.dlpi_phnum);
  module.base = UINTPTR_MAX;
  for (const ElfW(Phdr) & header : module.headers) {
    const std::uintptr_t start = info.dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_LOAD) {
      module.base = std::min<std::uintptr_t>(module.base, start);
      module.end = std::max<std::uintptr_t>(module.end, start + header.p_memsz);
    }
    if (header.p_type == PT_NOTE && module.build_id.empty() && is_loaded(module.headers, header)) {
      module.build_id = find_build_id(bytes_at(start, header.p_memsz), header.p_align);
    }
  }
  return module;
}

std::vector<Loaded> loaded() {
  std::vector<Loaded> modules;
  const std::uintptr_t vdso = ::getauxval(AT_SYSINFO_EHDR);
  const auto add = [&](const dl_phdr_info& info) {
    Loaded module = describe(info);
    if (module.base < module.end && module.base != vdso) modules.push_back(std::move(module));
  };
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* argument) {
        (*static_cast<decltype(add)*>(argument))(*info);
        return 0;
      },
      const_cast<void*>(static_cast<const void*>(&add)));
  return modules;
}

bool read_status(const std::string& path, struct stat& status) {
  int result = 0;
  do result = ::stat(path.c_str(), &status);
  while (result < 0 && errno == EINTR);
  return result == 0;
}

bool same_file(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

bool same_file(const MappedFile& file, const struct stat& status) {
  return file.inode == status.st_ino && file.device_major == major(status.st_dev) &&
         file.device_minor == minor(status.st_dev);
}

/// Over size, time and inode.
std::vector<std::byte> hash_of_file(const std::string& path) {
  struct stat status {};
  if (!read_status(path, status)) return {};
  const std::uint64_t numbers[] = {static_cast<std::uint64_t>(status.st_size),
                                   static_cast<std::uint64_t>(status.st_mtim.tv_sec),
                                   static_cast<std::uint64_t>(status.st_mtim.tv_nsec), status.st_ino};
  const std::uint64_t hash = base::Hash().add(std::as_bytes(std::span(numbers))).value();
  const auto bytes = std::as_bytes(std::span(&hash, 1));
  return {bytes.begin(), bytes.end()};
}

std::optional<MappedFile> main_program(const Loaded& program) {
  const auto maps = read_small_file("/proc/self/maps", kMaxMaps);
  return maps ? find_mapped_file(*maps, program.base) : std::nullopt;
}

/// Whether the ELF file at `path` has the program headers that the loader sees in memory.
bool has_program_headers(const std::string& path, const std::vector<ElfW(Phdr)>& headers) {
  const auto text = read_small_file(path, kMaxHeaders);
  ElfW(Ehdr) file{};
  if (!text || text->size() < sizeof(file)) return false;
  std::memcpy(&file, text->data(), sizeof(file));
  const std::size_t size = headers.size() * sizeof(ElfW(Phdr));
  if (file.e_phnum != headers.size() || file.e_phoff > text->size() || size > text->size() - file.e_phoff) return false;
  return std::memcmp(text->data() + file.e_phoff, headers.data(), size) == 0;
}

/// Some file systems (btrfs; overlayfs on Linux 4.19 to 6.6, so most containers) show one device and inode in maps and
/// others in stat. Then the path decides, and for a deleted file its program headers. Not the headers alone: valgrind
/// and qemu fake open() of /proc/self/exe, though not stat().
bool same_program(const MappedFile& file, const struct stat& exe, const Loaded& program) {
  if (same_file(file, exe)) return true;
  struct stat named {};
  if (!file.deleted && read_status(file.path, named)) return same_file(named, exe);
  return has_program_headers(kExe, program.headers);
}

std::optional<std::uint64_t> take_hex(std::string_view& text, char end) {
  std::uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  if (text.empty() || text.front() != end) return std::nullopt;
  text.remove_prefix(1);
  return value;
}

/// `major:minor inode  path`.
std::optional<MappedFile> parse_mapped_file(std::string_view text) {
  static constexpr std::string_view kDeleted = " (deleted)";
  const auto device_major = take_hex(text, ':');
  const auto device_minor = take_hex(text, ' ');
  const auto inode = parse_number(take_word(text));
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  if (!device_major || !device_minor || !inode || *inode == 0 || text.empty()) return std::nullopt;
  const bool deleted = text.size() > kDeleted.size() && text.substr(text.size() - kDeleted.size()) == kDeleted;
  if (deleted) text.remove_suffix(kDeleted.size());
  return MappedFile{*device_major, *device_minor, *inode, std::string(text), deleted};
}

std::size_t rounded_up(std::size_t size, std::size_t alignment) {
  return (size + alignment - 1) / alignment * alignment;
}

}  // namespace

std::vector<std::byte> find_build_id(std::span<const std::byte> notes, std::size_t alignment) {
  alignment = alignment == 8 ? 8 : 4;
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note{};
    std::memcpy(&note, notes.data(), sizeof(note));
    const std::size_t content = rounded_up(sizeof(note) + note.n_namesz, alignment);
    if (content > notes.size() || note.n_descsz > notes.size() - content) return {};
    const bool gnu = note.n_namesz == 4 && std::memcmp(notes.data() + sizeof(note), "GNU", 4) == 0;
    if (gnu && note.n_type == NT_GNU_BUILD_ID) {
      const auto id = notes.subspan(content, note.n_descsz);
      return {id.begin(), id.end()};
    }
    notes = notes.subspan(std::min(rounded_up(content + note.n_descsz, alignment), notes.size()));
  }
  return {};
}

std::optional<MappedFile> find_mapped_file(std::string_view maps, std::uintptr_t address) {
  while (!maps.empty()) {
    std::string_view line = take_line(maps);  // start-end perms offset major:minor inode path
    const auto start = take_hex(line, '-');
    const auto end = take_hex(line, ' ');
    if (!start || !end || address < *start || address >= *end) continue;
    take_word(line);
    take_word(line);
    line.remove_prefix(std::min<std::size_t>(1, line.size()));
    return parse_mapped_file(line);
  }
  return std::nullopt;
}

std::vector<Module> loaded_modules() {
  std::vector<Module> modules;
  for (Loaded& module : loaded()) {
    std::string path = std::move(module.name);
    if (path.empty()) {  // the main program
      const auto file = main_program(module);
      path = file ? file->path : kExe;
    }
    if (module.build_id.empty()) module.build_id = hash_of_file(path);
    modules.push_back({std::move(path), module.base, module.end - module.base, std::move(module.build_id)});
  }
  return modules;
}

bool runs_this_program(std::string& why) {
  struct stat exe {};
  if (!read_status(kExe, exe)) throw std::system_error(errno, std::generic_category(), "stat /proc/self/exe");
  const std::vector<Loaded> modules = loaded();
  const auto file = modules.empty() ? std::nullopt : main_program(modules.front());
  if (file && same_program(*file, exe, modules.front())) return true;
  why = "/proc/self/exe is not this program";
  if (file) why += " (" + file->path + ")";
  why +=
      ": it was started through the dynamic loader (ld-linux.so) or runs under an emulator such as valgrind or "
      "qemu-user, so no further process can be started from it; run the program itself";
  return false;
}

}  // namespace drover::inline v1::os
