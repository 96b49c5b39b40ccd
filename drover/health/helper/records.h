// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "drover/health/sample.h"

/// What the process that asks a driver and the one that wants to know say to each other. Both are the same program
/// file, so the bytes need no version; but the driver may have written over the sender's memory, so every length is
/// checked.
namespace drover::inline v1::health::helper {

enum class MessageKind : std::uint8_t {
  kRequest = 1,  ///< to the helper: a round begins
  kReady = 2,    ///< NVIDIA's driver is initialised, or not: Ready
  kGpu = 3,      ///< one GPU: Answer
  kStuck = 4,    ///< a call has not come back: Stuck
  kDone = 5,     ///< all has been told of this round
};

struct Request {
  std::uint32_t round = 0;
  double limit_s = 0;  ///< the time in which to answer
  // The rest is for GPUs that are asked through files of the kernel.
  double at = 0;                                ///< seconds since boot
  std::vector<std::uint32_t> leave_alone = {};  ///< GPUs, by index, that hang
  std::vector<ProcessBrief> processes = {};     ///< by pid; without group, session and name
};

struct Ready {
  std::string load_error;  ///< the library cannot be loaded; empty: it is
  int code = 0;            ///< of nvmlInit
  std::string version;
  int cuda = 0;
  unsigned gpus = 0;
};

struct Answer {
  std::uint32_t round = 0;  ///< of the request that it answers: it may come late
  GpuSample gpu;
};

struct Stuck {
  unsigned gpu = 0;
  std::string call;
};

inline constexpr std::size_t kMostMessage = 8U << 20U;
inline constexpr unsigned kMostGpus = 128;

/// A message ready to be sent: length (4 bytes), kind, payload.
std::string encode(const Request& request);
std::string encode(const Ready& ready);
std::string encode(const Answer& answer);
std::string encode(const Stuck& stuck);
std::string encode_done();

/// nullopt when the bytes are no such message. Pure.
std::optional<Request> decode_request(std::span<const std::byte> payload);
std::optional<Ready> decode_ready(std::span<const std::byte> payload);
std::optional<Answer> decode_answer(std::span<const std::byte> payload);
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

}  // namespace drover::inline v1::health::helper
