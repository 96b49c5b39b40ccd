// SPDX-License-Identifier: Apache-2.0
#include "drover/wire/remote_error.h"

#include <cxxabi.h>

#include <any>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <future>
#include <ios>
#include <memory>
#include <new>
#include <optional>
#include <regex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <variant>

#include "drover/base/errors.h"
#include "drover/wire/codec.h"

namespace drover::inline v1::wire {
namespace {

enum class Category : std::uint32_t { kGeneric, kSystem, kStream, kFuture, kForeign };

/// What a message says about an exception; each kind uses the fields that it has.
struct Description {
  std::uint32_t kind = 0;  ///< an index in kKinds; kKinds.size() for all that is unknown here
  std::string type_name, message, where, stack;
  Category category = Category::kGeneric;
  int code = 0;  ///< of an error_code, a regex_error, or the signal of an Interrupted
  std::string path1, path2;
  int pid = 0, exit_code = 0, signal = 0;
  bool out_of_memory = false;
};

/// An X that was thrown in another process.
template <class X>
class Remote final : public X, public RemoteTrace {
 public:
  template <class... Argument>
  explicit Remote(const RemoteTrace& trace, const Argument&... argument) : X(argument...), RemoteTrace(trace) {}

  // The constructors of some X add to the text.
  const char* what() const noexcept override { return message().c_str(); }
};

/// Stands for the category of an error code that only the other process knows.
class ForeignCategory final : public std::error_category {
 public:
  const char* name() const noexcept override { return "another process"; }
  std::string message(int code) const override { return "error " + std::to_string(code) + " of another process"; }
};

const std::error_category& category_of(Category category) {
  static const ForeignCategory foreign;
  switch (category) {
    case Category::kGeneric:
      return std::generic_category();
    case Category::kSystem:
      return std::system_category();
    case Category::kStream:
      return std::iostream_category();
    case Category::kFuture:
      return std::future_category();
    case Category::kForeign:
      break;
  }
  return foreign;
}

void describe_code(Description& to, const std::error_code& code) {
  to.code = code.value();
  to.category = Category::kForeign;
  for (const auto known : {Category::kGeneric, Category::kSystem, Category::kStream, Category::kFuture}) {
    if (code.category() == category_of(known)) to.category = known;
  }
}

/// The fields beyond the message that some exceptions have.
void describe_fields(Description& to, const std::exception& error) {
  if (const auto* system = dynamic_cast<const std::system_error*>(&error)) describe_code(to, system->code());
  if (const auto* future = dynamic_cast<const std::future_error*>(&error)) describe_code(to, future->code());
  if (const auto* regex = dynamic_cast<const std::regex_error*>(&error)) to.code = static_cast<int>(regex->code());
  if (const auto* interrupted = dynamic_cast<const Interrupted*>(&error)) to.code = interrupted->signal();
  if (const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&error)) {
    to.path1 = file->path1().native();
    to.path2 = file->path2().native();
  }
  if (const auto* lost = dynamic_cast<const WorkerLost*>(&error)) {
    to.pid = lost->pid();
    to.exit_code = lost->exit_code();
    to.signal = lost->signal();
    to.out_of_memory = lost->killed_for_memory();
  }
}

template <class X>
std::exception_ptr make(const Description& from) {
  const RemoteTrace trace(from.type_name, from.message, from.where, from.stack);
  if constexpr (std::is_same_v<X, WorkerLost>) {
    return std::make_exception_ptr(
        Remote<X>(trace, from.message, from.pid, from.exit_code, from.signal, from.out_of_memory));
  } else if constexpr (std::is_same_v<X, Interrupted>) {
    return std::make_exception_ptr(Remote<X>(trace, from.code));
  } else if constexpr (std::is_same_v<X, std::future_error>) {
    return std::make_exception_ptr(Remote<X>(trace, static_cast<std::future_errc>(from.code)));
  } else if constexpr (std::is_same_v<X, std::regex_error>) {
    return std::make_exception_ptr(Remote<X>(trace, static_cast<std::regex_constants::error_type>(from.code)));
  } else if constexpr (std::is_same_v<X, std::filesystem::filesystem_error>) {
    const std::error_code code(from.code, category_of(from.category));
    return std::make_exception_ptr(
        Remote<X>(trace, from.message, std::filesystem::path(from.path1), std::filesystem::path(from.path2), code));
  } else if constexpr (std::is_same_v<X, std::ios_base::failure>) {
    return std::make_exception_ptr(
        Remote<X>(trace, from.message, std::error_code(from.code, category_of(from.category))));
  } else if constexpr (std::is_base_of_v<std::system_error, X>) {
    return std::make_exception_ptr(
        Remote<X>(trace, std::error_code(from.code, category_of(from.category)), from.message));
  } else if constexpr (std::is_constructible_v<X, const std::string&>) {
    return std::make_exception_ptr(Remote<X>(trace, from.message));
  } else {
    return std::make_exception_ptr(Remote<X>(trace));
  }
}

/// An exception type that arrives as itself.
struct Kind {
  const std::type_info* type;
  const std::type_info* remote_type;  ///< when it is on its way through a second process
  std::exception_ptr (*make)(const Description&);
};

template <class... X>
constexpr std::array<Kind, sizeof...(X)> kinds() {
  return {Kind{&typeid(X), &typeid(Remote<X>), &make<X>}...};
}

constexpr auto kKinds =
    kinds<std::exception, std::logic_error, std::domain_error, std::invalid_argument, std::length_error,
          std::out_of_range, std::future_error, std::runtime_error, std::range_error, std::overflow_error,
          std::underflow_error, std::regex_error, std::system_error, std::ios_base::failure,
          std::filesystem::filesystem_error, std::bad_alloc, std::bad_array_new_length, std::bad_cast,
          std::bad_any_cast, std::bad_typeid, std::bad_exception, std::bad_function_call, std::bad_weak_ptr,
          std::bad_optional_access, std::bad_variant_access, Error, WorkerLost, ActorDied, Timeout, Cancelled,
          Interrupted, OutOfMemory, OwnerDied, Incompatible, InvalidArgument>();

std::uint32_t kind_of(const std::exception& error) noexcept {
  const std::type_info& type = typeid(error);
  std::uint32_t kind = 0;
  while (kind < kKinds.size() && type != *kKinds[kind].type && type != *kKinds[kind].remote_type) ++kind;
  return kind;
}

void erase_all(std::string& text, std::string_view part) {
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at)) text.erase(at, part.size());
}

/// A type's name as users write it, without what the library's authors put in for binary compatibility.
std::string readable(const std::type_info& type) {
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, nullptr), &std::free);
  std::string name = demangled ? demangled.get() : type.name();
  erase_all(name, "__cxx11::");
  erase_all(name, "[abi:cxx11]");
  return name;
}

void describe(Description& to, const std::exception& error) {
  to.kind = kind_of(error);
  describe_fields(to, error);
  if (const RemoteTrace* trace = remote_trace(error)) {
    to.type_name = trace->type_name();
    to.message = trace->message();
    to.where = trace->where() + ", passed on by " + to.where;
    if (!trace->stack().empty()) to.stack = trace->stack();
  } else {
    const char* message = error.what();
    to.type_name = readable(typeid(error));
    to.message = message != nullptr ? message : "";
  }
}

/// For use in a catch block: the type of what was thrown.
std::string caught_type() {
  const std::type_info* type = abi::__cxa_current_exception_type();
  return type != nullptr ? readable(*type) : "an exception of another language";
}

Description description_of(const std::exception_ptr& error, std::string_view where, std::string_view stack) {
  Description to;
  to.kind = static_cast<std::uint32_t>(kKinds.size());
  to.where = where;
  to.stack = stack;
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    describe(to, exception);
  } catch (const std::string& text) {
    to.type_name = "std::string";
    to.message = text;
  } catch (const char* text) {
    to.type_name = "const char*";
    to.message = text != nullptr ? text : "";
  } catch (int number) {
    to.type_name = "int";
    to.message = std::to_string(number);
  } catch (...) {
    to.type_name = caught_type();
  }
  return to;
}

}  // namespace

void encode_exception(Writer& writer, const std::exception_ptr& error, std::string_view where, std::string_view stack) {
  encode(writer, description_of(error, where, stack));
}

std::exception_ptr decode_exception(std::span<const std::byte> message) noexcept {
  try {
    Reader reader(message);
    const auto description = decode<Description>(reader);
    if (description.kind < kKinds.size()) return kKinds[description.kind].make(description);
    return std::make_exception_ptr(
        RemoteError(RemoteTrace(description.type_name, description.message, description.where, description.stack)));
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace drover::inline v1::wire
