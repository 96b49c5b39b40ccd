// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "drover/health/sample.h"

/// What the process that calls the driver says to the one that wants to know. Both are the same program file, so the
/// bytes need no version; but the driver may have written over the sender's memory, so every length is checked.
namespace drover::inline v1::health::nvml {

enum class MessageKind : std::uint8_t {
  kReady = 1,  ///< initialised, or not: Ready
  kGpu = 2,    ///< one GPU of this round: GpuSample
  kStuck = 3,  ///< a call has not come back: Stuck
};

struct Ready {
  std::string load_error;  ///< the library cannot be loaded; empty: it is
  int code = 0;            ///< of nvmlInit
  std::string version;
  int cuda = 0;
  unsigned gpus = 0;
};

struct Stuck {
  unsigned gpu = 0;
  std::string call;
};

inline constexpr std::size_t kMostMessage = 4U << 20U;
inline constexpr unsigned kMostGpus = 128;

/// A message ready to be sent: length (4 bytes), kind, payload.
std::string encode(const Ready& ready);
std::string encode(const GpuSample& sample);
std::string encode(const Stuck& stuck);

/// nullopt when the bytes are no such message. Pure.
std::optional<Ready> decode_ready(std::span<const std::byte> payload);
std::optional<GpuSample> decode_gpu(std::span<const std::byte> payload);
std::optional<Stuck> decode_stuck(std::span<const std::byte> payload);

/// Puts received bytes together to messages.
class MessageReader {
 public:
  struct Message {
    MessageKind kind;
    std::vector<std::byte> payload;
  };
  void add(std::span<const std::byte> bytes) { buffer_.insert(buffer_.end(), bytes.begin(), bytes.end()); }
  /// The next whole message; nullopt when none is there yet, or after nonsense, which `broken` tells apart.
  std::optional<Message> next();
  bool broken() const noexcept { return broken_; }

 private:
  std::vector<std::byte> buffer_;
  bool broken_ = false;
};

}  // namespace drover::inline v1::health::nvml
