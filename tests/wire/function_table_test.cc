// SPDX-License-Identifier: Apache-2.0
#include "drover/wire/function_table.h"

#include <gtest/gtest.h>

#include <array>

#include "drover/base/errors.h"

namespace drover {
namespace {

using wire::FunctionEntry;
using wire::FunctionTable;
using wire::ModuleId;

// Thunks are told apart by their addresses, so that a test can play modules at any place.
wire::Thunk thunk_at(std::uintptr_t address) { return reinterpret_cast<wire::Thunk>(address); }

constexpr std::array kBuildA{std::byte{1}, std::byte{2}};
constexpr std::array kBuildB{std::byte{3}, std::byte{4}};
const ModuleId kProgram{0x1000, 0x2000, kBuildA};
const ModuleId kLibrary{0x5000, 0x6000, kBuildB};

TEST(FunctionTable, NumbersFunctionsWhateverTheOrderOfJoining) {
  FunctionTable one, other;
  const FunctionEntry a1(one, "a", thunk_at(0x1010)), b1(one, "b", thunk_at(0x1020)), c1(one, "c", thunk_at(0x1030));
  const FunctionEntry c2(other, "c", thunk_at(0x1030)), a2(other, "a", thunk_at(0x1010)),
      b2(other, "b", thunk_at(0x1020));
  one.freeze({&kProgram, 1});
  other.freeze({&kProgram, 1});
  EXPECT_EQ(a1.index(), a2.index());
  EXPECT_EQ(b1.index(), b2.index());
  EXPECT_EQ(c1.index(), c2.index());
  EXPECT_EQ(one.digest(), other.digest());
  EXPECT_EQ(one.size(), 3u);
  EXPECT_EQ(one.text(b1.index()), "b");
  EXPECT_EQ(one.thunk(b1.index()), thunk_at(0x1020));
}

TEST(FunctionTable, TellsFunctionsWithEqualTextsApartByTheirPlaceInTheModule) {
  FunctionTable here, there;
  const FunctionEntry first1(here, "f", thunk_at(0x1010)), second1(here, "f", thunk_at(0x1020));
  const FunctionEntry second2(there, "f", thunk_at(0x9020)), first2(there, "f", thunk_at(0x9010));
  const ModuleId moved{0x9000, 0xa000, kBuildA};
  here.freeze({&kProgram, 1});
  there.freeze({&moved, 1});
  EXPECT_NE(first1.index(), second1.index());
  EXPECT_EQ(first1.index(), first2.index());
  EXPECT_EQ(second1.index(), second2.index());
  EXPECT_EQ(here.digest(), there.digest());
}

TEST(FunctionTable, OrdersModulesByTheirBuildIdsNotTheirAddresses) {
  FunctionTable here, there;
  const FunctionEntry program1(here, "f", thunk_at(0x1010)), library1(here, "f", thunk_at(0x5010));
  const FunctionEntry program2(there, "f", thunk_at(0x5010)), library2(there, "f", thunk_at(0x1010));
  const ModuleId swapped_program{0x5000, 0x6000, kBuildA}, swapped_library{0x1000, 0x2000, kBuildB};
  const std::array modules1{kProgram, kLibrary}, modules2{swapped_program, swapped_library};
  here.freeze(modules1);
  there.freeze(modules2);
  EXPECT_EQ(program1.index(), program2.index());
  EXPECT_EQ(library1.index(), library2.index());
}

TEST(FunctionTable, HasAnotherDigestForOtherTextsAndOtherBuilds) {
  const auto digest = [](const char* text, const ModuleId& module) {
    FunctionTable table;
    const FunctionEntry entry(table, text, thunk_at(0x1010));
    table.freeze({&module, 1});
    return table.digest();
  };
  const ModuleId rebuilt{0x1000, 0x2000, kBuildB};
  EXPECT_EQ(digest("a", kProgram), digest("a", kProgram));
  EXPECT_NE(digest("a", kProgram), digest("b", kProgram));
  EXPECT_NE(digest("a", kProgram), digest("a", rebuilt));
}

template <class Use>
std::string refusal(Use use) {
  try {
    use();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "not refused";
}

TEST(FunctionTable, RefusesFunctionsThatComeTooLateByName) {
  FunctionTable table;
  table.freeze({});
  const FunctionEntry late(table, "const char* text() [with Type = void (*)(); Type F = my::plugin]", thunk_at(1));
  const std::string text = refusal([&late] { late.index(); });
  EXPECT_NE(text.find("my::plugin"), text.npos) << text;
  EXPECT_NE(text.find("loaded after drover::init"), text.npos) << text;
  EXPECT_EQ(table.size(), 0u);
}

TEST(FunctionTable, RefusesUseBeforeInit) {
  FunctionTable table;
  const FunctionEntry early(table, "early", thunk_at(1));
  const std::string text = refusal([&early] { early.index(); });
  EXPECT_NE(text.find("before drover::init(argc, argv)"), text.npos) << text;
}

TEST(FunctionTable, RefusesAnIndexThatItDoesNotHave) {
  FunctionTable table;
  table.freeze({});
  EXPECT_THROW(table.thunk(0), Incompatible);
  EXPECT_THROW(table.text(wire::Thunk() ? 0u : ~0u), Incompatible);
}

// The program's own table.

template <class T>
T scale(T value) {
  return value;
}
[[maybe_unused]] int overloaded(int) { return 1; }
[[maybe_unused]] int overloaded(double) { return 2; }
void report_mean() {}

template <auto F>
void call_thunk(void*) {
  static_cast<void>(F);
}
template <auto F>
std::uint32_t index_of() {
  return wire::Registered<F, &call_thunk<F>>::index();
}

// Never called: to be named is enough.
[[maybe_unused]] void never() { index_of<report_mean>(); }

TEST(ProgramFunctions, KnowsEveryFunctionThatAnyCodeNames) {
  FunctionTable& table = wire::program_functions();
  table.freeze({});
  const auto one = index_of<static_cast<int (*)(int)>(overloaded)>();
  const auto other = index_of<static_cast<int (*)(double)>(overloaded)>();
  EXPECT_NE(one, other);
  EXPECT_NE(index_of<scale<int>>(), index_of<scale<double>>());
  EXPECT_EQ(table.thunk(one), &call_thunk<static_cast<int (*)(int)>(overloaded)>);
  bool found = false;
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    if (wire::function_name(table.text(i)).ends_with("::report_mean")) found = true;
  }
  EXPECT_TRUE(found);
}

TEST(FunctionName, IsWhatUsersWrote) {
  EXPECT_EQ(wire::function_name("const char* text() [with Type = int (*)(int); Type F = my::scale<int>]"),
            "my::scale<int>");
  EXPECT_EQ(wire::function_name("const char *text() [Type = int (*)(int), F = &my::scale]"), "my::scale");
  EXPECT_EQ(wire::function_name("something else"), "something else");
}

}  // namespace
}  // namespace drover
