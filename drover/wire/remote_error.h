// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <exception>
#include <span>
#include <string_view>

#include "drover/wire/writer.h"

/// Exceptions that cross a process boundary.
///
/// Exactly the exceptions of the standard library and of drover itself arrive as a class derived from their own type
/// and from RemoteTrace, with the same what(), error code, paths and fields. All else, classes derived from those
/// included, arrives as RemoteError. An error code of a category that is none of the standard library's keeps its
/// number, not its category.
namespace drover::inline v1::wire {

/// Appends a description of `error` to a message. `where` says who threw, `stack` is the call stack or empty. An
/// exception that came from a third process keeps its original type name and stack, and its `where` is lengthened.
/// Throws std::bad_alloc.
void encode_exception(Writer& writer, const std::exception_ptr& error, std::string_view where, std::string_view stack);

/// The exception described by a message. Bytes that describe none, or no memory, give an exception that says so.
std::exception_ptr decode_exception(std::span<const std::byte> message) noexcept;

}  // namespace drover::inline v1::wire
