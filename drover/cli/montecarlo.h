// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace drover::inline v1::cli {

/// The sum over i = 1 … iterations − 1 of sin(seed·i)·cos(i), term by term through libm. `seed · iterations` must stay
/// below 2^53, so that every argument is exact.
///
/// The running sum carries its rounding error along (Knuth's TwoSum). Without that most seeds are right to 1e-13, but
/// 710 lies so close to 226 pi that the partial sums of seeds 709 and 711 climb to 16,000 and come back, and a bare
/// double is then off by 1.3e-10.
inline double sum_by_terms(std::int64_t seed, std::int64_t iterations) noexcept {
  double sum = 0, lost = 0;
  for (std::int64_t i = 1; i < iterations; ++i) {
    const double term = std::sin(static_cast<double>(seed * i)) * std::cos(static_cast<double>(i));
    const double next = sum + term;
    const double added = next - sum;
    lost += (sum - (next - added)) + (term - added);
    sum = next;
  }
  return sum + lost;
}

/// The sum over i = 0 … n − 1 of sin(b·i), for a whole number b:
///
///   sin(b/2)·sin(b·i) = ½[cos(b(i − ½)) − cos(b(i + ½))]     (product to sum)
///
/// telescopes over i = 0 … n − 1 to ½[cos(b/2) − cos(b(n − ½))] = sin(b(n − 1)/2)·sin(bn/2), so that the sum is
///
///   sin(b(n − 1)/2) · sin(bn/2) / sin(b/2)                    (the conjugate Dirichlet kernel)
///
/// unless sin(b/2) = 0. As pi is irrational, that happens for no whole b but 0, where every term is 0. The product form
/// subtracts nothing, so each factor keeps its full relative accuracy even where sin(b/2) is tiny (b = 710). The
/// arguments are halves of whole numbers below 2^54: exact in a long double of 64 bits or more, and sinl reduces them
/// exactly.
inline long double sum_of_sines(std::int64_t b, std::int64_t n) noexcept {
  static_assert(std::numeric_limits<long double>::digits >= 64);
  if (b == 0) return 0;
  const long double half = static_cast<long double>(b) / 2;
  const auto count = static_cast<long double>(n);
  return std::sin(half * (count - 1)) * std::sin(half * count) / std::sin(half);
}

/// What sum_by_terms should give, without a loop: sin(s·i)·cos(i) = ½[sin((s + 1)i) + sin((s − 1)i)], and the term of i
/// = 0 is 0.
inline long double sum_in_closed_form(std::int64_t seed, std::int64_t iterations) noexcept {
  return (sum_of_sines(seed + 1, iterations) + sum_of_sines(seed - 1, iterations)) / 2;
}

}  // namespace drover::inline v1::cli
