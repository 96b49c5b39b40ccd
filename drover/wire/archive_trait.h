// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace drover::inline v1::wire {

class OutputArchive;
class InputArchive;

namespace detail {

template <class T>
concept MemberSerialize = requires(T& value, OutputArchive& out, InputArchive& in) {
  value.serialize(out);
  value.serialize(in);
};

template <class T>
concept MemberSaveLoad = requires(T& value, const T& constant, OutputArchive& out, InputArchive& in) {
  constant.save(out);
  value.load(in);
};

template <class T>
concept FreeSerialize = requires(T& value, OutputArchive& out, InputArchive& in) {
  serialize(out, value);
  serialize(in, value);
};

template <class T>
concept FreeSaveLoad = requires(T& value, const T& constant, OutputArchive& out, InputArchive& in) {
  save(out, constant);
  load(in, value);
};

}  // namespace detail

/// A class with public functions in the style of cereal: `serialize(archive)`, or `save(archive) const` and
/// `load(archive)`, as members or found by argument-dependent lookup. Versions, minimal forms and cereal::access are
/// not supported.
template <class T>
concept Archived =
    detail::MemberSerialize<T> || detail::MemberSaveLoad<T> || detail::FreeSerialize<T> || detail::FreeSaveLoad<T>;

}  // namespace drover::inline v1::wire
