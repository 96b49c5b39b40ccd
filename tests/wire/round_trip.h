// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "drover/wire/codec.h"

namespace drover::test {

/// The value as another process would see it. Fails the test when the message holds more than the value.
template <class T>
T round_trip(const T& value) {
  wire::Writer writer;
  wire::encode(writer, value);
  wire::Reader reader(writer.bytes());
  T copy = wire::decode<T>(reader);
  EXPECT_EQ(reader.remaining(), 0u);
  return copy;
}

template <class T>
std::vector<std::byte> encoded(const T& value) {
  wire::Writer writer;
  wire::encode(writer, value);
  return {writer.bytes().begin(), writer.bytes().end()};
}

}  // namespace drover::test
