// SPDX-License-Identifier: Apache-2.0
#include "drover/array/shared_array.h"

#include <algorithm>
#include <cstdint>

#include "drover/base/errors.h"
#include "drover/shm/npy_header.h"

namespace drover::inline v1::detail {
namespace {

shm::NpyHeader header_of(const ElementType& type, std::span<const std::size_t> extents, Order order) {
  check_size(extents, type.size);
  const bool fortran = order == Order::kFortran && extents.size() > 1;
  return {type.descr, fortran, {extents.begin(), extents.end()}, shm::kNpyHeaderSize};
}

std::string text_of(const shm::NpyHeader& header) {
  const std::vector<std::size_t> extents(header.shape.begin(), header.shape.end());
  return header.descr + " " + detail::text_of(extents) + (header.fortran_order ? " in Fortran order" : "");
}

[[noreturn]] void refuse(const shm::Block& block, const std::string& wanted) {
  throw Incompatible(block.path() + " holds " + text_of(block.header()) + ", not " + wanted);
}

/// Elements must not lie across the boundaries that the processor wants for them.
void check_alignment(const shm::Block& block, const ElementType& type) {
  if (reinterpret_cast<std::uintptr_t>(block.data()) % type.alignment != 0) {
    throw Incompatible(block.path() + " has data that do not begin at a multiple of " + std::to_string(type.alignment) +
                       " bytes, as elements of " + std::string(type.name) + " must: save it again with a newer NumPy");
  }
}

std::shared_ptr<shm::Block> checked(std::shared_ptr<shm::Block> block, const ElementType& type, std::size_t rank) {
  const shm::NpyHeader& header = block->header();
  const bool rank_fits = header.shape.size() == rank || (header.shape.empty() && rank == 1);  // a single value
  if (header.descr != type.descr || !rank_fits) {
    refuse(*block, type.descr + " with " + std::to_string(rank) + (rank == 1 ? " dimension" : " dimensions"));
  }
  check_alignment(*block, type);
  return block;
}

}  // namespace

std::shared_ptr<shm::Block> create_block(std::string_view name, const ElementType& type,
                                         std::span<const std::size_t> extents, Order order, std::string_view label) {
  return shm::Block::create(name, header_of(type, extents, order), label);
}

std::shared_ptr<shm::Block> create_block(const ElementType& type, std::span<const std::size_t> extents,
                                         std::string_view label) {
  return shm::Block::create(header_of(type, extents, Order::kC).data_size(), label);
}

std::shared_ptr<shm::Block> open_block(std::string_view name, const ElementType& type, std::size_t rank,
                                       shm::Access access) {
  return checked(shm::Block::open(name, access), type, rank);
}

std::shared_ptr<shm::Block> open_or_create_block(std::string_view name, const ElementType& type,
                                                 std::span<const std::size_t> extents, Order order,
                                                 std::string_view label) {
  const shm::NpyHeader header = header_of(type, extents, order);
  auto block = shm::Block::open_or_create(name, header, label);
  if (block->header() != header) refuse(*block, text_of(header));
  return block;
}

std::shared_ptr<shm::Block> open_npy_block(const std::string& path, const ElementType& type, std::size_t rank,
                                           shm::Access access) {
  return checked(shm::Block::open_npy(path, access), type, rank);
}

std::shared_ptr<shm::Block> open_raw_block(std::string_view name, const ElementType& type,
                                           std::span<const std::size_t> extents, shm::Access access) {
  check_size(extents, type.size);
  auto block = shm::Block::open_raw(name, header_of(type, extents, Order::kC).data_size(), access);
  check_alignment(*block, type);
  return block;
}

}  // namespace drover::inline v1::detail
