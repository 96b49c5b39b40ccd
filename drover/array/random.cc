// SPDX-License-Identifier: Apache-2.0
#include "drover/array/random.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>

// The loops below are written so that compilers vectorise them, for several processors at once; the best version is
// chosen when the program starts. Without fused multiply-add (see CMakeLists.txt), so that all give the same bits.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define DROVER_FOR_PROCESSORS __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define DROVER_FOR_PROCESSORS
#endif

namespace drover::inline v1 {
namespace {

constexpr std::uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;
constexpr std::size_t kPairs = 128;  // made together: what they need stays in the first-level cache

struct Counters {
  std::uint32_t a[kPairs], b[kPairs], c[kPairs], d[kPairs];
};

/// 128 random bits for each pair.
struct Bits {
  std::uint64_t u[kPairs], v[kPairs];
};

[[gnu::always_inline]] inline double in_one_to_two(std::uint64_t bits) noexcept {
  return std::bit_cast<double>(bits >> 12U | 0x3FF0'0000'0000'0000U);
}

DROVER_FOR_PROCESSORS
void make_bits(std::uint64_t seed, std::uint64_t first_pair, Bits& out) noexcept {
  Counters x;
  for (std::size_t i = 0; i < kPairs; ++i) {
    x.a[i] = static_cast<std::uint32_t>(first_pair + i);
    x.b[i] = static_cast<std::uint32_t>((first_pair + i) >> 32U);
    x.c[i] = x.d[i] = 0;
  }
  auto key0 = static_cast<std::uint32_t>(seed), key1 = static_cast<std::uint32_t>(seed >> 32U);
  for (int round = 0; round < kRounds; ++round, key0 += kWeyl0, key1 += kWeyl1) {
    for (std::size_t i = 0; i < kPairs; ++i) {
      const std::uint64_t p = kMultiplier0 * x.a[i], q = kMultiplier1 * x.c[i];
      x.a[i] = static_cast<std::uint32_t>(q >> 32U) ^ x.b[i] ^ key0;
      x.b[i] = static_cast<std::uint32_t>(q);
      x.c[i] = static_cast<std::uint32_t>(p >> 32U) ^ x.d[i] ^ key1;
      x.d[i] = static_cast<std::uint32_t>(p);
    }
  }
  for (std::size_t i = 0; i < kPairs; ++i) {
    out.u[i] = std::uint64_t{x.b[i]} << 32U | x.a[i];
    out.v[i] = std::uint64_t{x.d[i]} << 32U | x.c[i];
  }
}

/// ln of x in (0, 1]: x = 2^e m with m in [sqrt(1/2), sqrt(2)), ln m = 2 atanh(t), t = (m - 1) / (m + 1), |t| < 0.172,
/// whose series is cut after t^19 (the next term is below 2^-56 of the sum).
[[gnu::always_inline]] inline double ln(double x) noexcept {
  constexpr std::uint64_t kSqrtHalf = 0x3FE6'A09E'667F'3BCDU;
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const std::uint64_t exponent = (bits - kSqrtHalf) >> 52U;  // modulo 2^12: the exponent of x, at most 0
  const double m = std::bit_cast<double>(bits - (exponent << 52U));
  // 2^52 + n as a double holds n in its low bits: a way from integers to doubles that every processor can do in lanes.
  const double e = std::bit_cast<double>(((exponent + 2048U) & 0xFFFU) | 0x4330'0000'0000'0000U) - (0x1p52 + 2048);
  const double t = (m - 1.0) / (m + 1.0), s = t * t;
  double sum = 1.0 / 19;
  sum = sum * s + 1.0 / 17;
  sum = sum * s + 1.0 / 15;
  sum = sum * s + 1.0 / 13;
  sum = sum * s + 1.0 / 11;
  sum = sum * s + 1.0 / 9;
  sum = sum * s + 1.0 / 7;
  sum = sum * s + 1.0 / 5;
  sum = sum * s + 1.0 / 3;
  constexpr double kLn2High = 0x1.62e42fefa3800p-1,
                   kLn2Low = 0x1.ef35793c76730p-45;  // ln 2; the first part times e is exact
  const double head = 2.0 * t;
  return e * kLn2High + (head + (head * s * sum + e * kLn2Low));
}

/// cos and sin of 2π(w - 1) for w in [1, 2): the nearest quarter turn is taken off, the rest, at most π/4, goes into
/// the Taylor polynomials of degree 16 and 17 (the next terms are below 2^-56).
struct Turn {
  double cosine, sine;
};
[[gnu::always_inline]] inline Turn cos_sin(double w) noexcept {
  const double quarters = (w - 1.0) * 4.0;
  const double shifted = quarters + 0x1.8p52;  // rounds to an integer, which stands in the low bits
  const auto quadrant = std::bit_cast<std::uint64_t>(shifted);
  const double x = (quarters - (shifted - 0x1.8p52)) * 1.5707963267948966;
  const double s = x * x;
  double sine = 1.0 / 355687428096000;
  sine = sine * s - 1.0 / 1307674368000;
  sine = sine * s + 1.0 / 6227020800;
  sine = sine * s - 1.0 / 39916800;
  sine = sine * s + 1.0 / 362880;
  sine = sine * s - 1.0 / 5040;
  sine = sine * s + 1.0 / 120;
  sine = sine * s - 1.0 / 6;
  sine = x + x * s * sine;
  double cosine = 1.0 / 20922789888000;
  cosine = cosine * s - 1.0 / 87178291200;
  cosine = cosine * s + 1.0 / 479001600;
  cosine = cosine * s - 1.0 / 3628800;
  cosine = cosine * s + 1.0 / 40320;
  cosine = cosine * s - 1.0 / 720;
  cosine = cosine * s + 1.0 / 24;
  cosine = cosine * s - 0.5;
  cosine = 1.0 + s * cosine;
  // Quarter turns: 0 (c, s), 1 (-s, c), 2 (-c, -s), 3 (s, -c), by bits, without branches.
  const std::uint64_t odd = 0 - (quadrant & 1U);
  const auto c = std::bit_cast<std::uint64_t>(cosine), n = std::bit_cast<std::uint64_t>(sine);
  const std::uint64_t first = (c & ~odd) | (n & odd), second = (n & ~odd) | (c & odd);
  return {.cosine = std::bit_cast<double>(first ^ ((quadrant + 1U) & 2U) << 62U),
          .sine = std::bit_cast<double>(second ^ (quadrant & 2U) << 62U)};
}

DROVER_FOR_PROCESSORS
void make_pairs(const Bits& in, double* out) noexcept {
  for (std::size_t i = 0; i < kPairs; ++i) {
    const double radius = std::sqrt(-2.0 * ln(2.0 - in_one_to_two(in.u[i])));
    const Turn turn = cos_sin(in_one_to_two(in.v[i]));
    out[2 * i] = radius * turn.cosine;
    out[2 * i + 1] = radius * turn.sine;
  }
}

}  // namespace

std::array<std::uint32_t, 4> philox4x32(const std::array<std::uint32_t, 4>& counter,
                                        const std::array<std::uint32_t, 2>& key) noexcept {
  std::array<std::uint32_t, 4> x = counter;
  std::array<std::uint32_t, 2> k = key;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t p = kMultiplier0 * x[0], q = kMultiplier1 * x[2];
    x = {static_cast<std::uint32_t>(q >> 32U) ^ x[1] ^ k[0], static_cast<std::uint32_t>(q),
         static_cast<std::uint32_t>(p >> 32U) ^ x[3] ^ k[1], static_cast<std::uint32_t>(p)};
    k = {k[0] + kWeyl0, k[1] + kWeyl1};
  }
  return x;
}

void normal_numbers(std::uint64_t seed, std::uint64_t first, std::span<double> out) noexcept {
  Bits bits;
  std::array<double, 2 * kPairs> block;
  std::size_t skip = first & 1U;  // a piece may begin in the middle of a pair
  for (std::uint64_t pair = first / 2; !out.empty(); pair += kPairs) {
    make_bits(seed, pair, bits);
    const bool whole = skip == 0 && out.size() >= block.size();
    make_pairs(bits, whole ? out.data() : block.data());
    const std::size_t count = std::min(out.size(), block.size() - skip);
    if (!whole) std::copy_n(block.begin() + static_cast<std::ptrdiff_t>(skip), count, out.begin());
    out = out.subspan(count);
    skip = 0;
  }
}

}  // namespace drover::inline v1
