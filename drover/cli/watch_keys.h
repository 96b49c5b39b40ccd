// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace drover::inline v1::cli {

enum class Key {
  kCharacter,
  kUp,
  kDown,
  kPageUp,
  kPageDown,
  kHome,
  kEnd,
  kEnter,
  kEscape,
  kBackspace,
  kTab,
  kBackTab,
  kRedraw,  ///< ^L
};

struct KeyPress {
  Key key = Key::kCharacter;
  char character = 0;  ///< printable ASCII, of kCharacter
  bool operator==(const KeyPress&) const = default;
};

/// Makes keys of what a terminal sends, in whatever pieces it arrives. Sequences that mean nothing here are swallowed
/// as a whole. One thread at a time.
class KeyParser {
 public:
  std::vector<KeyPress> add(std::string_view bytes);

  /// An Esc has come that may be a key, or the begin of one: when nothing follows soon, call flush().
  bool pending() const noexcept { return state_ != State::kGround; }
  std::vector<KeyPress> flush();

 private:
  enum class State { kGround, kEscape, kSequence, kOne };

  void add(unsigned char byte, std::vector<KeyPress>& keys);
  void ground(unsigned char byte, std::vector<KeyPress>& keys);
  void in_sequence(unsigned char byte, std::vector<KeyPress>& keys);

  State state_ = State::kGround;
  std::string sequence_;
};

}  // namespace drover::inline v1::cli
