// SPDX-License-Identifier: Apache-2.0
#include "drover/wire/codec.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "drover/base/errors.h"
#include "tests/wire/round_trip.h"

namespace drover {
namespace {

using test::round_trip;
using wire::Travels;

struct Plain {
  int number = 0;
  char tag[5] = {};
  std::string text;
  std::optional<double> maybe;
  std::vector<std::string> words;
  bool operator==(const Plain& other) const {
    return number == other.number && std::string(tag) == other.tag && text == other.text && maybe == other.maybe &&
           words == other.words;
  }
};

struct Tree {
  int value = 0;
  std::vector<Tree> children;
  std::unique_ptr<Tree> next;
};

class NeedsArguments {
 public:
  explicit NeedsArguments(std::string text) : text_(std::move(text)) {}
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

struct HoldsNeedsArguments {
  int number;
  NeedsArguments item;
};

struct Widest {
  std::string a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, bb, cc, dd, ee, ff;
};
struct TooWide {
  std::string a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, bb, cc, dd, ee, ff, gg;
};

struct Base {
  int number;
};
struct Derived : Base {
  std::string text;
};
struct HoldsPointer {
  std::string text;
  const char* pointer;
};
struct HoldsReference {
  const std::string& text;
};
struct HoldsView {
  std::string_view text;
};

}  // namespace

template <>
struct wire::Codec<NeedsArguments> {
  static void encode(Writer& writer, const NeedsArguments& value) { wire::encode(writer, value.text()); }
  static NeedsArguments decode(Reader& reader) { return NeedsArguments(wire::decode<std::string>(reader)); }
};

namespace {

TEST(Codec, KeepsNumbersAndStrings) {
  EXPECT_EQ(round_trip(42), 42);
  EXPECT_EQ(round_trip(-2.5), -2.5);
  EXPECT_EQ(round_trip(1.25L), 1.25L);
  EXPECT_EQ(round_trip(true), true);
  EXPECT_EQ(round_trip(std::string("with \0 inside", 13)), std::string("with \0 inside", 13));
  EXPECT_EQ(round_trip(std::u32string(U"\u20ac")), U"\u20ac");
  EXPECT_EQ(round_trip(std::string()), "");
}

TEST(Codec, KeepsSequences) {
  EXPECT_EQ(round_trip(std::vector{1.0, 2.0, 3.0}), (std::vector{1.0, 2.0, 3.0}));
  EXPECT_EQ(round_trip(std::vector<long double>{1, 2}), (std::vector<long double>{1, 2}));
  EXPECT_EQ(round_trip(std::vector<std::string>{"a", "", "c"}), (std::vector<std::string>{"a", "", "c"}));
  EXPECT_EQ(round_trip(std::vector{true, false, true}), (std::vector{true, false, true}));
  EXPECT_EQ(round_trip(std::deque{1, 2}), (std::deque{1, 2}));
  EXPECT_EQ(round_trip(std::list<std::string>{"a", "b"}), (std::list<std::string>{"a", "b"}));
  EXPECT_EQ(round_trip(std::vector<std::monostate>(3)).size(), 3u);
}

TEST(Codec, KeepsFixedCollections) {
  EXPECT_EQ(round_trip(std::array{1, 2, 3}), (std::array{1, 2, 3}));
  const std::array<std::string, 2> words{"a", "b"};
  EXPECT_EQ(round_trip(words), words);
  const std::array<NeedsArguments, 2> items{NeedsArguments("a"), NeedsArguments("b")};
  EXPECT_EQ(round_trip(items)[1].text(), "b");
  EXPECT_EQ(round_trip(std::pair(1, std::string("b"))), std::pair(1, std::string("b")));
  EXPECT_EQ(round_trip(std::tuple(1, 2.0, std::string("c"))), std::tuple(1, 2.0, std::string("c")));
  EXPECT_EQ(round_trip(std::tuple<>()), std::tuple<>());
}

TEST(Codec, KeepsSetsAndMaps) {
  const std::map<std::string, std::vector<int>> map{{"a", {1, 2}}, {"b", {}}};
  EXPECT_EQ(round_trip(map), map);
  const std::multimap<int, std::string> multimap{{1, "a"}, {1, "b"}};
  EXPECT_EQ(round_trip(multimap), multimap);
  const std::unordered_map<std::string, int> hashed{{"a", 1}, {"b", 2}};
  EXPECT_EQ(round_trip(hashed), hashed);
  const std::unordered_multimap<int, int> multihashed{{1, 1}, {1, 2}};
  EXPECT_EQ(round_trip(multihashed), multihashed);
  EXPECT_EQ(round_trip(std::set{3, 1, 2}), (std::set{1, 2, 3}));
  EXPECT_EQ(round_trip(std::multiset{1, 1}), (std::multiset{1, 1}));
  EXPECT_EQ(round_trip(std::unordered_set{1, 2}), (std::unordered_set{1, 2}));
  EXPECT_EQ(round_trip(std::unordered_multiset{1, 1}), (std::unordered_multiset{1, 1}));
}

TEST(Codec, KeepsTheRestOfTheStandardLibrary) {
  using Either = std::variant<std::monostate, int, std::string>;
  for (const Either& either : {Either(), Either(3), Either("text")}) EXPECT_EQ(round_trip(either), either);
  EXPECT_EQ(round_trip(std::optional<std::string>()), std::nullopt);
  EXPECT_EQ(round_trip(std::optional<std::string>("a")), "a");
  EXPECT_EQ(round_trip(std::filesystem::path("/a/b")), "/a/b");
  EXPECT_EQ(round_trip(std::complex<double>(1, 2)), std::complex<double>(1, 2));
  EXPECT_EQ(round_trip(std::chrono::milliseconds(5)), std::chrono::milliseconds(5));
  const auto now = std::chrono::system_clock::now();
  EXPECT_EQ(round_trip(now), now);
  EXPECT_EQ(round_trip(std::bitset<13>(0x1a5b)), std::bitset<13>(0x1a5b));
}

TEST(Codec, KeepsOwningPointersAndMoveOnlyTypes) {
  EXPECT_EQ(round_trip(std::unique_ptr<std::string>()), nullptr);
  EXPECT_EQ(*round_trip(std::make_unique<std::string>("a")), "a");
  EXPECT_EQ(*round_trip(std::make_shared<const int>(7)), 7);
  std::vector<std::unique_ptr<int>> pointers;
  pointers.push_back(std::make_unique<int>(1));
  pointers.push_back(nullptr);
  const auto copy = round_trip(pointers);
  EXPECT_EQ(*copy[0], 1);
  EXPECT_EQ(copy[1], nullptr);
}

TEST(Codec, TakesAggregatesApart) {
  const Plain plain{1, "abcd", "text", 2.5, {"x", "y"}};
  EXPECT_EQ(round_trip(plain), plain);
  EXPECT_EQ(wire::field_count<Plain>, 5u);
  EXPECT_EQ(round_trip(HoldsNeedsArguments{3, NeedsArguments("a")}).item.text(), "a");
  Widest widest;
  widest.ff = "last";
  EXPECT_EQ(round_trip(widest).ff, "last");
}

TEST(Codec, KeepsTypesThatContainThemselves) {
  Tree tree{1, {}, nullptr};
  tree.children.push_back(Tree{2, {}, nullptr});
  tree.children[0].children.push_back(Tree{3, {}, nullptr});
  tree.next = std::make_unique<Tree>(Tree{4, {}, nullptr});
  const Tree copy = round_trip(tree);
  EXPECT_EQ(copy.children[0].children[0].value, 3);
  EXPECT_EQ(copy.next->value, 4);
}

TEST(Codec, RefusesToEncodeWhatIsNestedTooDeep) {
  Tree tree;
  for (int i = 0; i < wire::kMaxDepth; ++i) {
    auto inner = std::make_unique<Tree>(std::move(tree));
    tree = Tree{0, {}, std::move(inner)};
  }
  wire::Writer writer;
  EXPECT_THROW(wire::encode(writer, tree), InvalidArgument);
}

TEST(Codec, KnowsWhatCannotTravel) {
  EXPECT_TRUE(Travels<Tree>);
  EXPECT_FALSE(Travels<void>);
  EXPECT_FALSE(Travels<int*>);
  EXPECT_FALSE(Travels<int&>);
  EXPECT_FALSE(Travels<std::string_view>);
  EXPECT_FALSE(Travels<std::span<const int>>);
  EXPECT_FALSE(Travels<std::vector<int*>>);
  EXPECT_FALSE((Travels<std::map<int, HoldsPointer>>));
  EXPECT_FALSE(Travels<HoldsReference>);
  EXPECT_FALSE(Travels<HoldsView>);
  EXPECT_FALSE(Travels<Derived>);
  EXPECT_FALSE(Travels<TooWide>);
  EXPECT_FALSE(Travels<std::function<void()>>);
  const auto lambda = [] {};
  EXPECT_FALSE(Travels<std::remove_const_t<decltype(lambda)>>);
}

// Classes in the style of cereal.

struct MemberSerialize {
  template <class Archive>
  void serialize(Archive& archive) {
    archive(number, text);
    archive& words;
    archive(tag);
  }
  int number = 0;
  std::string text;
  std::vector<std::string> words;
  char tag[4] = {};
};

class MemberSaveLoad {
 public:
  MemberSaveLoad() = default;
  explicit MemberSaveLoad(int number) : number_(number) {}
  template <class Archive>
  void save(Archive& archive) const {
    static_assert(Archive::is_saving::value);
    archive(std::to_string(number_));
  }
  template <class Archive>
  void load(Archive& archive) {
    static_assert(Archive::is_loading::value);
    std::string text;
    archive(text);
    number_ = std::stoi(text);
  }
  int number() const { return number_; }

 private:
  int number_ = 0;
};

struct FreeSerialize {
  std::vector<int> numbers;
};
template <class Archive>
void serialize(Archive& archive, FreeSerialize& value) {
  archive& value.numbers;
}

struct FreeSaveLoad {
  std::string text;
};
template <class Archive>
void save(Archive& archive, const FreeSaveLoad& value) {
  archive(value.text + "!");
}
template <class Archive>
void load(Archive& archive, FreeSaveLoad& value) {
  archive(value.text);
}

template <class T>
struct LikeNameValuePair {  // cereal's, as CEREAL_NVP makes it
  const char* name;
  T& value;
};
struct Named {
  template <class Archive>
  void serialize(Archive& archive) {
    archive(LikeNameValuePair<std::string>{"text", text});
  }
  std::string text;
};

struct SavesNothing {
  template <class Archive>
  void serialize(Archive&) {}
};

TEST(Archive, CallsSerializeAsMember) {
  const auto copy = round_trip(MemberSerialize{3, "a", {"b", "c"}, "xyz"});
  EXPECT_EQ(copy.number, 3);
  EXPECT_EQ(copy.text, "a");
  EXPECT_EQ(copy.words, (std::vector<std::string>{"b", "c"}));
  EXPECT_STREQ(copy.tag, "xyz");
}

TEST(Archive, CallsSaveAndLoadAsMembers) { EXPECT_EQ(round_trip(MemberSaveLoad(12)).number(), 12); }

TEST(Archive, FindsFreeFunctions) {
  EXPECT_EQ(round_trip(FreeSerialize{{1, 2}}).numbers, (std::vector{1, 2}));
  EXPECT_EQ(round_trip(FreeSaveLoad{"a"}).text, "a!");
}

TEST(Archive, TakesNameValuePairs) { EXPECT_EQ(round_trip(Named{"a"}).text, "a"); }

TEST(Archive, KeepsTheNumberOfItemsThatSaveNothing) {
  EXPECT_EQ(round_trip(std::vector<SavesNothing>(1000)).size(), 1000u);
}

TEST(Writer, StaysInLentMemoryWhileItFits) {
  alignas(8) std::byte lent[16];
  wire::Writer writer{std::span(lent)};
  writer.put<std::uint64_t>(1);
  writer.put<std::uint64_t>(2);
  EXPECT_FALSE(writer.spilled());
  EXPECT_EQ(writer.bytes().data(), lent);
  writer.put('c');
  EXPECT_TRUE(writer.spilled());
  wire::Reader reader(writer.bytes());
  EXPECT_EQ(reader.get<std::uint64_t>("number"), 1u);
  EXPECT_EQ(reader.get<std::uint64_t>("number"), 2u);
  EXPECT_EQ(reader.get<char>("character"), 'c');
}

}  // namespace
}  // namespace drover
