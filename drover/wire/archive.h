// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>
#include <utility>

#include "drover/wire/archive_trait.h"
#include "drover/wire/memcpy_trait.h"
#include "drover/wire/travels.h"

namespace drover::inline v1::wire {
namespace detail {

/// cereal's name-value pair, told by its shape so that CEREAL_NVP works without cereal being known here: no value that
/// travels has a reference in it.
template <class T>
concept NameValuePair = requires(const T& pair) {
  pair.name;
}
&&std::is_lvalue_reference_v<decltype(T::value)>;

}  // namespace detail

/// What serialize() and save() are called with: `archive(a, b, c)` or `archive & a & b` appends values to a message.
class OutputArchive {
 public:
  using is_saving = std::true_type;
  using is_loading = std::false_type;

  explicit OutputArchive(Writer& writer) noexcept : writer_(writer) {}

  template <class... T>
  OutputArchive& operator()(const T&... value) {
    (*this & ... & value);
    return *this;
  }

  template <class T>
  OutputArchive& operator&(const T& value) {
    if constexpr (detail::NameValuePair<T>) {
      detail::encode_field(writer_, value.value);
    } else {
      detail::encode_field(writer_, value);
    }
    return *this;
  }

 private:
  Writer& writer_;
};

/// What serialize() and load() are called with: the same calls fill the values from a message.
class InputArchive {
 public:
  using is_saving = std::false_type;
  using is_loading = std::true_type;

  explicit InputArchive(Reader& reader) noexcept : reader_(reader) {}

  template <class... T>
  InputArchive& operator()(T&&... value) {
    (*this & ... & value);
    return *this;
  }

  template <class T>
  InputArchive& operator&(T&& value) {
    if constexpr (detail::NameValuePair<std::remove_cvref_t<T>>) {
      detail::decode_field(reader_, value.value);
    } else {
      detail::decode_field(reader_, value);
    }
    return *this;
  }

 private:
  Reader& reader_;
};

/// Classes with serialize(), or with save() and load(). They must have a default constructor.
template <class T>
requires(Archived<T> && !travels_by_memcpy<T> && std::is_default_constructible_v<T>) struct Codec<T> {
  static void encode(Writer& writer, const T& value) {
    OutputArchive archive(writer);
    if constexpr (detail::MemberSaveLoad<T>) {
      value.save(archive);
    } else if constexpr (detail::FreeSaveLoad<T>) {
      save(archive, value);
    } else if constexpr (detail::MemberSerialize<T>) {
      serialize_member(archive, value);
    } else {
      serialize_free(archive, value);
    }
  }

  static T decode(Reader& reader) {
    InputArchive archive(reader);
    T value{};
    if constexpr (detail::MemberSaveLoad<T>) {
      value.load(archive);
    } else if constexpr (detail::FreeSaveLoad<T>) {
      load(archive, value);
    } else if constexpr (detail::MemberSerialize<T>) {
      value.serialize(archive);
    } else {
      serialize(archive, value);
    }
    return value;
  }

 private:
  // serialize() is seldom const, since it reads as well; an OutputArchive only looks at what it is given.
  static void serialize_member(OutputArchive& archive, const T& value) {
    if constexpr (requires { value.serialize(archive); }) {
      value.serialize(archive);
    } else {
      const_cast<T&>(value).serialize(archive);
    }
  }

  static void serialize_free(OutputArchive& archive, const T& value) { serialize(archive, const_cast<T&>(value)); }
};

}  // namespace drover::inline v1::wire
