// SPDX-License-Identifier: Apache-2.0
#include "drover/os/throw_trace.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <sstream>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "drover/os/fd.h"

namespace drover::inline v1::os {
namespace detail {

struct Symbol {
  std::string name;  // mangled; empty: not known
  std::uintptr_t start = 0;
};

struct SymbolTable {
  std::vector<ElfW(Sym)> symbols;
  std::vector<char> names;

  /// The function at an address as it stands in the file.
  Symbol find(std::uintptr_t address) const;
};

}  // namespace detail

namespace {

constexpr std::size_t kFrames = 48;
constexpr std::size_t kRecords = 4;  // an exception may pass catch blocks that throw and catch others

struct Record {
  const void* thrown = nullptr;
  std::size_t depth = 0;
  std::array<std::uintptr_t, kFrames> frames{};
};

struct ThreadState {
  std::uintptr_t entry = 0;  // frames above this stack address are not the task's; 0: no scope
  int uncaught = 0;          // exceptions in flight when the scope began
  std::size_t throws = 0;
  std::array<Record, kRecords> records{};
};

constinit thread_local ThreadState state;

struct Walk {
  Record* record;
  std::uintptr_t throw_site;
  std::uintptr_t entry;
  bool seen_throw_site = false;
};

/// One frame. libgcc gives as CFA the stack pointer of the frame at its call, so the first frame over `entry` is the
/// caller of the function that holds the scope.
_Unwind_Reason_Code keep_frame(_Unwind_Context* context, void* argument) {
  Walk& walk = *static_cast<Walk*>(argument);
  const std::uintptr_t address = _Unwind_GetIP(context);
  if (address == walk.throw_site) walk.seen_throw_site = true;
  if (!walk.seen_throw_site) return _URC_NO_REASON;  // record_throw and the hook
  Record& record = *walk.record;
  if (record.depth == kFrames || _Unwind_GetCFA(context) > walk.entry) return _URC_END_OF_STACK;
  record.frames[record.depth++] = address;
  return _URC_NO_REASON;
}

/// The address of the object being handled. An exception_ptr of libstdc++ and libc++ is that pointer and nothing else.
const void* handled_exception() {
  const std::exception_ptr handled = std::current_exception();
  static_assert(sizeof(handled) == sizeof(void*));
  const void* object = nullptr;
  std::memcpy(&object, &handled, sizeof(object));
  return object;
}

const Record* wanted_record() {
  const void* const handled = handled_exception();
  for (std::size_t age = 1; age <= std::min(state.throws, kRecords); ++age) {
    const Record& record = state.records[(state.throws - age) % kRecords];
    if (handled == nullptr || record.thrown == handled) return &record;
  }
  return nullptr;
}

struct Free {
  void operator()(char* text) const { std::free(text); }
};

std::string demangled(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, Free> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status));
  return status == 0 && text ? text.get() : name;
}

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

template <class T>
bool read_at(const Fd& file, std::uint64_t offset, T* items, std::size_t count) {
  return ::pread(file.get(), items, count * sizeof(T), static_cast<off_t>(offset)) ==
         static_cast<ssize_t>(count * sizeof(T));
}

/// The symbol table of the main program's file, which knows functions that are not exported. Not of libraries: theirs
/// is mostly stripped, and their file may be another by now, while the kernel keeps the one behind /proc/self/exe.
detail::SymbolTable read_program_symbols(std::uintptr_t load_address) {
  static constexpr std::uint64_t kMaxTable = 64U << 20U;  // bytes; a larger one is not worth the wait
  const Fd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  ElfW(Ehdr) header{};
  // Under a loader given as a command the file is the loader, with another entry point.
  if (!file.valid() || !read_at(file, 0, &header, 1) || header.e_entry + load_address != ::getauxval(AT_ENTRY))
    return {};
  std::vector<ElfW(Shdr)> sections(header.e_shnum);
  if (!read_at(file, header.e_shoff, sections.data(), sections.size())) return {};
  const auto symbols =
      std::find_if(sections.begin(), sections.end(), [](const ElfW(Shdr) & s) { return s.sh_type == SHT_SYMTAB; });
  if (symbols == sections.end() || symbols->sh_link >= sections.size()) return {};
  const ElfW(Shdr)& names = sections[symbols->sh_link];
  if (symbols->sh_size > kMaxTable || names.sh_size > kMaxTable) return {};
  detail::SymbolTable table;
  table.symbols.resize(symbols->sh_size / sizeof(ElfW(Sym)));
  table.names.resize(names.sh_size);
  if (!read_at(file, symbols->sh_offset, table.symbols.data(), table.symbols.size())) return {};
  return read_at(file, names.sh_offset, table.names.data(), table.names.size()) ? table : detail::SymbolTable{};
}

/// Texts of frames already described: the same task may fail ten thousand times, and reading symbols takes
/// milliseconds. It holds facts about the program image only, so one for the process is enough.
class FrameTexts {
 public:
  std::string of(std::uintptr_t address) {
    static constexpr std::size_t kMost = 4096;
    const std::scoped_lock lock(mutex_);
    if (const auto found = texts_.find(address); found != texts_.end()) return found->second;
    if (texts_.size() >= kMost) texts_.clear();
    return texts_[address] = describe(address);
  }

  /// Symbols are needed while one trace is written, and would only fill memory afterwards.
  void forget_symbols() {
    const std::scoped_lock lock(mutex_);
    program_ = {};
    program_read_ = false;
  }

 private:
  std::string describe(std::uintptr_t address) {
    std::ostringstream out;
    out << std::hex << std::showbase;
    Dl_info info{};
    void* extra = nullptr;
    // The address is the one to return to, which after a call that never returns may lie in the next function.
    const std::uintptr_t inside = address - 1;
    if (::dladdr1(reinterpret_cast<const void*>(inside), &info, &extra, RTLD_DL_LINKMAP) == 0 || extra == nullptr) {
      out << address;
      return out.str();
    }
    const auto& map = *static_cast<const link_map*>(extra);
    const std::uintptr_t in_file = inside - map.l_addr;
    detail::Symbol symbol = exported(info, map.l_addr);
    if (symbol.name.empty() && map.l_name[0] == '\0') symbol = program(map.l_addr).find(in_file);
    const std::string_view file = file_name(info.dli_fname == nullptr ? "" : info.dli_fname);
    if (symbol.name.empty()) {
      out << file << '+' << in_file;
    } else {
      out << demangled(symbol.name) << '+' << in_file - symbol.start << " (" << file << '+' << in_file << ')';
    }
    return out.str();
  }

  static detail::Symbol exported(const Dl_info& info, std::uintptr_t load_address) {
    if (info.dli_sname == nullptr) return {};
    return {info.dli_sname, reinterpret_cast<std::uintptr_t>(info.dli_saddr) - load_address};
  }

  const detail::SymbolTable& program(std::uintptr_t load_address) {
    if (!std::exchange(program_read_, true)) program_ = read_program_symbols(load_address);
    return program_;
  }

  std::mutex mutex_;
  std::unordered_map<std::uintptr_t, std::string> texts_;
  detail::SymbolTable program_;
  bool program_read_ = false;
};

FrameTexts& frame_texts() {
  static FrameTexts* const instance = new FrameTexts;  // never destroyed: a task may throw while statics are torn down
  return *instance;
}

bool prepare() noexcept {
#ifdef DROVER_THROW_TRACE
  return detail::prepare_throw_hook();
#else
  return false;
#endif
}

}  // namespace

bool throw_trace_available() noexcept {
  static const bool available = prepare();
  return available;
}

__attribute__((noinline)) ThrowTraceScope::ThrowTraceScope() noexcept
    : outer_entry_(state.entry), outer_uncaught_(state.uncaught) {
  if (!throw_trace_available()) return;
  // The holder's stack pointer is at most a frame record above this frame; that the slack may let its caller in as well
  // does no harm.
  static constexpr std::uintptr_t kFrameRecord = 2 * sizeof(void*);
  if (outer_entry_ == 0) state.throws = 0;
  state.entry = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) + kFrameRecord;
  state.uncaught = std::uncaught_exceptions();
}

ThrowTraceScope::~ThrowTraceScope() {
  state.entry = outer_entry_;
  state.uncaught = outer_uncaught_;
}

void detail::record_throw(const void* thrown, const void* throw_site) noexcept {
  // A throw during unwinding must be caught inside a destructor, so it is never the one that leaves the task.
  if (state.entry == 0 || std::uncaught_exceptions() > state.uncaught) return;
  Record& record = state.records[state.throws % kRecords];
  record.thrown = thrown;
  record.depth = 0;
  Walk walk{&record, reinterpret_cast<std::uintptr_t>(throw_site), state.entry};
  _Unwind_Backtrace(&keep_frame, &walk);
  ++state.throws;
}

std::string last_throw_trace() {
  const Record* const record = wanted_record();
  if (record == nullptr) return {};
  std::string text;
  for (std::size_t i = 0; i < record->depth; ++i) {
    text += '#' + std::to_string(i) + ' ' + frame_texts().of(record->frames[i]) + '\n';
  }
  frame_texts().forget_symbols();
  return text;
}

detail::Symbol detail::SymbolTable::find(std::uintptr_t address) const {
  for (const ElfW(Sym) & symbol : symbols) {
    if ((symbol.st_info & 0xFU) != STT_FUNC || symbol.st_name >= names.size()) continue;
    if (address < symbol.st_value || address - symbol.st_value >= symbol.st_size) continue;
    const auto first = names.begin() + static_cast<std::ptrdiff_t>(symbol.st_name);
    return {std::string(first, std::find(first, names.end(), '\0')), symbol.st_value};
  }
  return {};
}

}  // namespace drover::inline v1::os
