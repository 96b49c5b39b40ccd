// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace drover::inline v1::base {

/// FNV-1a, 64 bits, http://www.isthe.com/chongo/tech/comp/fnv. Equal in all builds, so that it may stand in shared
/// memory. Pure.
class Hash {
 public:
  constexpr Hash& add(std::string_view text) noexcept {
    for (const char c : text) add_byte(static_cast<unsigned char>(c));
    return *this;
  }
  constexpr Hash& add(std::span<const std::byte> bytes) noexcept {
    for (const std::byte byte : bytes) add_byte(static_cast<unsigned char>(byte));
    return *this;
  }
  /// Its eight bytes, the lowest first.
  constexpr Hash& add(std::uint64_t number) noexcept {
    for (int i = 0; i < 8; ++i, number >>= 8U) add_byte(static_cast<unsigned char>(number));
    return *this;
  }
  constexpr std::uint64_t value() const noexcept { return value_; }

 private:
  constexpr void add_byte(unsigned char byte) noexcept { value_ = (value_ ^ byte) * 0x100'0000'01B3U; }

  std::uint64_t value_ = 0xCBF2'9CE4'8422'2325U;
};

constexpr std::uint64_t hash_text(std::string_view text) noexcept { return Hash().add(text).value(); }

}  // namespace drover::inline v1::base
