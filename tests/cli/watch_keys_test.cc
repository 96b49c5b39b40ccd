// SPDX-License-Identifier: Apache-2.0
#include "drover/cli/watch_keys.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

using drover::cli::Key;
using drover::cli::KeyParser;
using drover::cli::KeyPress;
using Keys = std::vector<KeyPress>;

Keys typed(std::string_view bytes) {
  KeyParser parser;
  Keys keys = parser.add(bytes);
  const Keys rest = parser.flush();
  keys.insert(keys.end(), rest.begin(), rest.end());
  return keys;
}

TEST(WatchKeys, KnowsThePlainKeys) {
  EXPECT_EQ(typed("q?"), (Keys{{Key::kCharacter, 'q'}, {Key::kCharacter, '?'}}));
  EXPECT_EQ(typed("\r\n\t\x7f\b\f"),
            (Keys{{Key::kEnter}, {Key::kEnter}, {Key::kTab}, {Key::kBackspace}, {Key::kBackspace}, {Key::kRedraw}}));
}

TEST(WatchKeys, KnowsTheSequencesOfEachTerminal) {
  EXPECT_EQ(typed("\x1b[A\x1bOA\x1b[1;5A"), Keys(3, {Key::kUp}));
  EXPECT_EQ(typed("\x1b[B\x1bOB"), Keys(2, {Key::kDown}));
  EXPECT_EQ(typed("\x1b[5~\x1b[5;2~"), Keys(2, {Key::kPageUp}));
  EXPECT_EQ(typed("\x1b[6~"), Keys(1, {Key::kPageDown}));
  EXPECT_EQ(typed("\x1b[H\x1bOH\x1b[1~\x1b[7~"), Keys(4, {Key::kHome}));
  EXPECT_EQ(typed("\x1b[F\x1bOF\x1b[4~\x1b[8~"), Keys(4, {Key::kEnd}));
  EXPECT_EQ(typed("\x1b[Z"), Keys(1, {Key::kBackTab}));
  EXPECT_EQ(typed("\x1bOM"), Keys(1, {Key::kEnter}));
}

TEST(WatchKeys, SequencesMayArriveByteForByte) {
  const std::string bytes = "j\x1b[A\x1b[5~\x1bOBk\x1b[1;5B";
  const Keys whole = typed(bytes);
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    KeyParser parser;
    Keys keys = parser.add(bytes.substr(0, cut));
    const Keys rest = parser.add(bytes.substr(cut));
    keys.insert(keys.end(), rest.begin(), rest.end());
    EXPECT_EQ(keys, whole) << cut;
    EXPECT_FALSE(parser.pending());
  }
}

TEST(WatchKeys, ALoneEscIsAKeyOnceNothingFollows) {
  KeyParser parser;
  EXPECT_EQ(parser.add("\x1b"), Keys());
  EXPECT_TRUE(parser.pending());
  EXPECT_EQ(parser.flush(), Keys{{Key::kEscape}});
  EXPECT_FALSE(parser.pending());
  EXPECT_EQ(parser.flush(), Keys());
}

TEST(WatchKeys, EscAndThenAnotherKeyAreTwoKeys) {
  EXPECT_EQ(typed("\x1bq"), (Keys{{Key::kEscape}, {Key::kCharacter, 'q'}}));
  EXPECT_EQ(typed("\x1b\x1b"), Keys(2, {Key::kEscape}));
  EXPECT_EQ(typed("\x1b\x1b[A"), (Keys{{Key::kEscape}, {Key::kUp}}));
}

TEST(WatchKeys, WhatMeansNothingIsSwallowedAsAWhole) {
  EXPECT_EQ(typed("\x1b[15~"), Keys());                          // F5
  EXPECT_EQ(typed("\x1b[[Aq"), (Keys{{Key::kCharacter, 'q'}}));  // F1 of the Linux console
  EXPECT_EQ(typed("\x1b[<0;10;20Mq"), (Keys{{Key::kCharacter, 'q'}}));
  EXPECT_EQ(typed("\xc3\xa4\xe2\x82\xac"), Keys());  // letters that are not ASCII
  EXPECT_EQ(typed("\x1b[" + std::string(10'000, '1') + "A"), Keys{{Key::kUp}});
  EXPECT_EQ(typed("\x1b["), Keys());
}

TEST(WatchKeys, AControlCharacterEndsASequence) {
  EXPECT_EQ(typed("\x1b[1\r"), Keys{{Key::kEnter}});
  EXPECT_EQ(typed("\x1b[\x1b[A"), Keys{{Key::kUp}});
}

TEST(WatchKeys, AnyBytesAreTaken) {
  unsigned seed = 7;
  KeyParser parser;
  for (int i = 0; i < 100'000; ++i) {
    seed = seed * 1664525U + 1013904223U;
    const char byte = static_cast<char>(seed >> 24U);
    for (const KeyPress& key : parser.add({&byte, 1})) {
      if (key.key == Key::kCharacter) {
        EXPECT_TRUE(key.character >= 0x20 && key.character < 0x7F);
      }
    }
  }
}

}  // namespace
