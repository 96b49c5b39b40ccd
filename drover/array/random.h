// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace drover::inline v1 {

/// Philox4x32 with 10 rounds: 128 random bits for each (counter, key), with no state, so that any element of a stream
/// can be made anywhere. J. Salmon, M. Moraes, R. Dror, D. Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC
/// 2011; constants from table 2 there. Thread-safe.
std::array<std::uint32_t, 4> philox4x32(const std::array<std::uint32_t, 4>& counter,
                                        const std::array<std::uint32_t, 2>& key) noexcept;

/// Standard normal numbers of the stream `seed`: out[i] is its element first + i, whoever makes it, in whatever pieces.
/// The same bits on every processor of the same byte order.
///
/// Elements 2j and 2j + 1 are the Box-Muller pair sqrt(-2 ln u) * (cos 2πv, sin 2πv) of the 128 bits at counter j: u in
/// (0, 1] and v in [0, 1) have 52 bits each, so |x| <= 8.5. ln, cos and sin are polynomials with an error below
/// 4e-16 (docs/design/004). Thread-safe.
void normal_numbers(std::uint64_t seed, std::uint64_t first, std::span<double> out) noexcept;

}  // namespace drover::inline v1
