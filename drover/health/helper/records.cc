// SPDX-License-Identifier: Apache-2.0
#include "drover/health/helper/records.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace drover::inline v1::health::helper {
namespace {

constexpr std::size_t kMostText = 4096, kHeader = 5;
constexpr std::size_t kMostRows = 262'144;  // also processes of a machine

class Writer {
 public:
  explicit Writer(MessageKind kind) : bytes_(kHeader, '\0') { bytes_[4] = static_cast<char>(kind); }

  template <class T>
  requires std::is_arithmetic_v<T> || std::is_same_v<T, GpuActivityRow>
  void put(const T& value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void put(const std::string& text) {
    put(static_cast<std::uint32_t>(std::min(text.size(), kMostText)));
    bytes_.append(text, 0, kMostText);
  }
  template <class T>
  void put_all(const std::vector<T>& items) {
    put(static_cast<std::uint32_t>(items.size()));
    for (const T& item : items) put(item);
  }
  void put(const Reading& reading) {  // by fields: between them is what the memory held before
    put(reading.code);
    put(reading.value);
  }
  void put(const ProcessBrief& process) {
    put(process.pid);
    put(process.parent);
    put(process.threads);
    put(process.state);
    put(process.start_ticks);
    put(process.cpu_ticks);
  }
  void put(const GpuProcessRow& row) {
    put(row.pid);
    put(row.uses);
    put(row.memory);
    put(row.use_code);
    put(row.gpu_instance);
    put(row.compute_instance);
  }
  void put(const GpuInstance& instance) {
    put(instance.gpu_instance);
    put(instance.compute_instance);
    put(instance.name);
    put(instance.uuid);
    for (const Reading& reading : {instance.memory_total, instance.memory_used, instance.cores}) put(reading);
  }
  std::string finish() {
    const auto length = static_cast<std::uint32_t>(bytes_.size() - kHeader);
    std::memcpy(bytes_.data(), &length, sizeof length);
    return std::move(bytes_);
  }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  requires std::is_arithmetic_v<T> || std::is_same_v<T, GpuActivityRow>
  void get(T& value) {
    if (!take(sizeof value)) return;
    std::memcpy(&value, last_, sizeof value);
  }
  void get(std::string& text) {
    std::uint32_t size = 0;
    get(size);
    if (size > kMostText || !take(size)) return fail();
    text.assign(reinterpret_cast<const char*>(last_), size);
  }
  template <class T>
  void get_all(std::vector<T>& items) {
    std::uint32_t size = 0;
    get(size);
    if (size > kMostRows) return fail();
    for (std::uint32_t i = 0; i < size && good_; ++i) get(items.emplace_back());
  }
  void get(Reading& reading) {
    get(reading.code);
    get(reading.value);
  }
  void get(ProcessBrief& process) {
    get(process.pid);
    get(process.parent);
    get(process.threads);
    get(process.state);
    get(process.start_ticks);
    get(process.cpu_ticks);
  }
  void get(GpuProcessRow& row) {
    get(row.pid);
    get(row.uses);
    get(row.memory);
    get(row.use_code);
    get(row.gpu_instance);
    get(row.compute_instance);
  }
  void get(GpuInstance& instance) {
    get(instance.gpu_instance);
    get(instance.compute_instance);
    get(instance.name);
    get(instance.uuid);
    for (Reading* const reading : {&instance.memory_total, &instance.memory_used, &instance.cores}) get(*reading);
  }
  bool finished() const noexcept { return good_ && bytes_.empty(); }

 private:
  void fail() { good_ = false; }
  bool take(std::size_t size) {
    if (!good_ || size > bytes_.size()) {
      good_ = false;
      return false;
    }
    last_ = bytes_.data();
    bytes_ = bytes_.subspan(size);
    return true;
  }

  std::span<const std::byte> bytes_;
  const std::byte* last_ = nullptr;
  bool good_ = true;
};

/// All fields of a sample, in one order for both ways.
template <class Archive, class Sample, class One, class Many>
void each_field(Archive& archive, Sample& sample, const One& one, const Many& many) {
  one(archive, sample.index);
  one(archive, sample.vendor);
  one(archive, sample.name);
  one(archive, sample.uuid);
  one(archive, sample.bus);
  for (auto& reading : sample.readings) one(archive, reading);
  one(archive, sample.processes);
  one(archive, sample.activity);
  many(archive, sample.rows);
  many(archive, sample.active);
  many(archive, sample.instances);
  many(archive, sample.xids);
  one(archive, sample.junk_rows);
  one(archive, sample.unseen);
  one(archive, sample.stuck_in);
}

}  // namespace

std::string encode(const Request& request) {
  Writer writer(MessageKind::kRequest);
  writer.put(request.round);
  writer.put(request.limit_s);
  writer.put(request.at);
  writer.put_all(request.leave_alone);
  writer.put_all(request.processes);
  return writer.finish();
}

std::string encode(const Ready& ready) {
  Writer writer(MessageKind::kReady);
  writer.put(ready.load_error);
  writer.put(ready.code);
  writer.put(ready.version);
  writer.put(ready.cuda);
  writer.put(ready.gpus);
  return writer.finish();
}

std::string encode(const Answer& answer) {
  Writer writer(MessageKind::kGpu);
  writer.put(answer.round);
  each_field(
      writer, answer.gpu, [](Writer& to, const auto& value) { to.put(value); },
      [](Writer& to, const auto& values) { to.put_all(values); });
  return writer.finish();
}

std::string encode(const Stuck& stuck) {
  Writer writer(MessageKind::kStuck);
  writer.put(stuck.gpu);
  writer.put(stuck.call);
  return writer.finish();
}

std::string encode_done() { return Writer(MessageKind::kDone).finish(); }

std::optional<Request> decode_request(std::span<const std::byte> payload) {
  Reader reader(payload);
  Request request;
  reader.get(request.round);
  reader.get(request.limit_s);
  reader.get(request.at);
  reader.get_all(request.leave_alone);
  reader.get_all(request.processes);
  return reader.finished() ? std::optional(std::move(request)) : std::nullopt;
}

std::optional<Ready> decode_ready(std::span<const std::byte> payload) {
  Reader reader(payload);
  Ready ready;
  reader.get(ready.load_error);
  reader.get(ready.code);
  reader.get(ready.version);
  reader.get(ready.cuda);
  reader.get(ready.gpus);
  return reader.finished() && ready.gpus <= kMostGpus ? std::optional(std::move(ready)) : std::nullopt;
}

std::optional<Answer> decode_answer(std::span<const std::byte> payload) {
  Reader reader(payload);
  Answer answer;
  GpuSample& sample = answer.gpu;
  reader.get(answer.round);
  each_field(
      reader, sample, [](Reader& from, auto& value) { from.get(value); },
      [](Reader& from, auto& values) { from.get_all(values); });
  const bool good = reader.finished() && sample.index >= 0 && sample.index < static_cast<int>(kMostGpus);
  return good ? std::optional(std::move(answer)) : std::nullopt;
}

std::optional<Stuck> decode_stuck(std::span<const std::byte> payload) {
  Reader reader(payload);
  Stuck stuck;
  reader.get(stuck.gpu);
  reader.get(stuck.call);
  return reader.finished() && stuck.gpu < kMostGpus ? std::optional(std::move(stuck)) : std::nullopt;
}

std::optional<MessageReader::Message> MessageReader::next() {
  if (broken_ || buffer_.size() < kHeader) return std::nullopt;
  std::uint32_t length = 0;
  std::memcpy(&length, buffer_.data(), sizeof length);
  const auto kind = static_cast<MessageKind>(buffer_[4]);
  broken_ = length > kMostMessage || kind < MessageKind::kRequest || kind > MessageKind::kDone;
  if (broken_ || buffer_.size() < kHeader + length) return std::nullopt;
  const auto begin = buffer_.begin() + kHeader, end = begin + static_cast<std::ptrdiff_t>(length);
  Message message{kind, {begin, end}};
  buffer_.erase(buffer_.begin(), end);
  return message;
}

}  // namespace drover::inline v1::health::helper
