// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "drover/array/array_codec.h"
#include "drover/array/array_view.h"
#include "drover/shm/block.h"

namespace drover::inline v1 {

/// How a new array is laid out.
struct ArrayOptions {
  Order order = Order::kC;
};

namespace detail {

// The parts that do not depend on types. See SharedArray for what they throw.
std::shared_ptr<shm::Block> create_block(std::string_view name, const ElementType& type,
                                         std::span<const std::size_t> extents, Order order, std::string_view label);
std::shared_ptr<shm::Block> create_block(const ElementType& type, std::span<const std::size_t> extents,
                                         std::string_view label);
std::shared_ptr<shm::Block> open_block(std::string_view name, const ElementType& type, std::size_t rank,
                                       shm::Access access);
std::shared_ptr<shm::Block> open_or_create_block(std::string_view name, const ElementType& type,
                                                 std::span<const std::size_t> extents, Order order,
                                                 std::string_view label);
std::shared_ptr<shm::Block> open_npy_block(const std::string& path, const ElementType& type, std::size_t rank,
                                           shm::Access access);
std::shared_ptr<shm::Block> open_raw_block(std::string_view name, const ElementType& type,
                                           std::span<const std::size_t> extents, shm::Access access);

}  // namespace detail

/// An array in shared memory, with up to 8 dimensions. An object is a handle: copies share the elements, and constness
/// is that of T. As an argument or a result of a task, or in a queue, the handle travels and the elements stay.
///
/// With a name, any process of this user can open it, and so can NumPy: the file path() is a valid .npy file, data from
/// byte 4096 on. The name goes when the last handle in the process that created it goes, or however that process ends;
/// who has it open keeps the memory. Without a name, it lives as long as any handle to it.
///
/// `SharedArray<const T, Rank>` maps the memory so that this process cannot write to it.
///
/// Const methods may run concurrently; who writes elements that others read must see to the order. Any process. Errors
/// of the functions that make one: InvalidArgument (a name or shape that cannot be), OutOfMemory, Incompatible (what is
/// there has another element type, rank or shape, or is damaged: the text names both sides), Error (the name is taken,
/// or there is none), std::system_error (permissions: says whose it is).
template <class T, std::size_t Rank>
class SharedArray : public ArrayView<T, Rank> {
 public:
  using typename ArrayView<T, Rank>::value_type;

  SharedArray() noexcept = default;  ///< no elements, and it does not travel
  template <class U>
  requires(std::is_const_v<T>&& std::same_as<U, value_type>)
      // NOLINTNEXTLINE(google-explicit-constructor): as with std::span
      SharedArray(const SharedArray<U, Rank>& other)
      : ArrayView<T, Rank>(other) {}

  /// A new array, filled with zeros, under a name of up to 200 bytes without '/'. All its memory is reserved.
  static SharedArray create(std::string_view name, const Shape<Rank>& shape,
                            const ArrayOptions& options = {}) requires(!std::is_const_v<T>) {
    return {detail::create_block(name, type(), shape, options.order, label()), shape, options.order};
  }
  /// The same without a name.
  static SharedArray create(const Shape<Rank>& shape, const ArrayOptions& options = {}) requires(!std::is_const_v<T>) {
    return {detail::create_block(type(), shape, label()), shape, options.order};
  }

  /// One that exists under that name, in whichever order it has. To be opened it must have this element type and rank.
  static SharedArray open(std::string_view name) { return from_block(detail::open_block(name, type(), Rank, kAccess)); }

  /// The array of that name; creates it if there is none. Of several processes that do this at once, one creates. One
  /// that exists must have this shape and order.
  static SharedArray open_or_create(std::string_view name, const Shape<Rank>& shape,
                                    const ArrayOptions& options = {}) requires(!std::is_const_v<T>) {
    return {detail::open_or_create_block(name, type(), shape, options.order, label()), shape, options.order};
  }

  /// A .npy file, anywhere. Its data are mapped, not read: what is written to a `SharedArray<T, Rank>` is written to
  /// the file. For reading use `SharedArray<const T, Rank>`.
  static SharedArray from_npy(const std::string& path) {
    return from_block(detail::open_npy_block(path, type(), Rank, kAccess));
  }

  /// Memory of something else in /dev/shm, for example of Python's SharedMemory. It says nothing about its type or
  /// shape, so these are believed; only the size is checked.
  static SharedArray attach_raw(std::string_view name, const Shape<Rank>& shape, const ArrayOptions& options = {}) {
    return {detail::open_raw_block(name, type(), shape, kAccess), shape, options.order};
  }

  /// Empty without a name.
  std::string name() const { return this->pin().block ? this->pin().block->name() : std::string(); }
  /// The file that NumPy can open; empty without one.
  std::string path() const { return this->pin().block ? this->pin().block->path() : std::string(); }
  /// Removes the name now, before this handle goes; whoever has the array open keeps it. Throws InvalidArgument in a
  /// process that did not create it. Nothing happens without a name, or the second time.
  void unlink() const {
    if (!name().empty()) this->pin().block->unlink();
  }

 private:
  friend struct wire::Codec<SharedArray>;

  static constexpr shm::Access kAccess = std::is_const_v<T> ? shm::Access::kReadOnly : shm::Access::kReadWrite;

  static detail::ElementType type() { return detail::element_type<value_type>(); }
  static constexpr std::string_view label() { return wire::type_name<SharedArray>(); }

  static SharedArray from_block(std::shared_ptr<shm::Block> block) {
    const shm::NpyHeader& header = block->header();
    std::array<std::size_t, Rank> extents{1};  // what a single value, without dimensions, is opened as
    std::copy(header.shape.begin(), header.shape.end(), extents.begin());
    const Order order = header.fortran_order ? Order::kFortran : Order::kC;
    return {std::move(block), Shape<Rank>(extents), order};
  }

  SharedArray(std::shared_ptr<shm::Block> block, const Shape<Rank>& shape, Order order)
      : SharedArray(block->data(), detail::dense_layout(shape, order), {block, block.get()}) {}
  explicit SharedArray(const ArrayView<T, Rank>& view) : ArrayView<T, Rank>(view) {}
  SharedArray(std::byte* data, const detail::Layout<Rank>& layout, detail::Pin pin)
      : ArrayView<T, Rank>(reinterpret_cast<T*>(data), layout, std::move(pin)) {}
};

namespace wire {

template <class T, std::size_t Rank>
struct Codec<SharedArray<T, Rank>> {
  using View = ArrayView<T, Rank>;

  static void encode(Writer& writer, const SharedArray<T, Rank>& array) { Codec<View>::encode(writer, array); }
  static SharedArray<T, Rank> decode(Reader& reader) { return SharedArray<T, Rank>(Codec<View>::decode(reader)); }
};

}  // namespace wire
}  // namespace drover::inline v1
