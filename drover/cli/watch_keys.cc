// SPDX-License-Identifier: Apache-2.0
#include "drover/cli/watch_keys.h"

#include <cstdlib>
#include <optional>

namespace drover::inline v1::cli {
namespace {

constexpr unsigned char kEsc = 0x1B;
constexpr std::size_t kMostSequence = 32;

std::optional<Key> by_number(int number) {
  switch (number) {
    case 1:
    case 7:
      return Key::kHome;
    case 4:
    case 8:
      return Key::kEnd;
    case 5:
      return Key::kPageUp;
    case 6:
      return Key::kPageDown;
    default:
      return std::nullopt;
  }
}

/// What stands behind `ESC [` or `ESC O`: parameters and a final byte. Modifiers (`1;5A`) make no difference.
std::optional<Key> by_sequence(const std::string& parameters, unsigned char last) {
  switch (last) {
    case 'A':
      return Key::kUp;
    case 'B':
      return Key::kDown;
    case 'H':
      return Key::kHome;
    case 'F':
      return Key::kEnd;
    case 'Z':
      return Key::kBackTab;
    case 'M':  // of the number pad
      return parameters.empty() ? std::optional(Key::kEnter) : std::nullopt;
    case '~':
      return by_number(std::atoi(parameters.c_str()));
    default:
      return std::nullopt;
  }
}

}  // namespace

std::vector<KeyPress> KeyParser::add(std::string_view bytes) {
  std::vector<KeyPress> keys;
  for (const char byte : bytes) add(static_cast<unsigned char>(byte), keys);
  return keys;
}

std::vector<KeyPress> KeyParser::flush() {
  std::vector<KeyPress> keys;
  if (state_ == State::kEscape) keys.push_back({Key::kEscape});
  state_ = State::kGround;
  return keys;
}

void KeyParser::add(unsigned char byte, std::vector<KeyPress>& keys) {
  switch (state_) {
    case State::kGround:
      ground(byte, keys);
      return;
    case State::kEscape:
      sequence_.clear();
      if (byte == '[' || byte == 'O') {
        state_ = State::kSequence;
      } else {  // Esc, and then another key
        keys.push_back({Key::kEscape});
        state_ = State::kGround;
        ground(byte, keys);
      }
      return;
    case State::kSequence:
      in_sequence(byte, keys);
      return;
    case State::kOne:
      state_ = State::kGround;
      return;
  }
}

void KeyParser::in_sequence(unsigned char byte, std::vector<KeyPress>& keys) {
  if (byte < 0x20) {  // it was none: a control character ends it, and is a key
    state_ = State::kGround;
    ground(byte, keys);
  } else if (byte == '[' && sequence_.empty()) {  // the Linux console's function keys have one more
    state_ = State::kOne;
  } else if (byte >= 0x40) {
    state_ = State::kGround;
    if (const auto key = by_sequence(sequence_, byte)) keys.push_back({*key});
  } else if (sequence_.size() < kMostSequence) {
    sequence_ += static_cast<char>(byte);
  }
}

void KeyParser::ground(unsigned char byte, std::vector<KeyPress>& keys) {
  switch (byte) {
    case kEsc:
      state_ = State::kEscape;
      return;
    case '\r':
    case '\n':
      keys.push_back({Key::kEnter});
      return;
    case '\t':
      keys.push_back({Key::kTab});
      return;
    case 0x7F:
    case 0x08:
      keys.push_back({Key::kBackspace});
      return;
    case 0x0C:
      keys.push_back({Key::kRedraw});
      return;
    default:
      if (byte >= 0x20 && byte < 0x7F) keys.push_back({Key::kCharacter, static_cast<char>(byte)});
  }
}

}  // namespace drover::inline v1::cli
