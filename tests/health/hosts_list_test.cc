// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "drover/base/errors.h"
#include "drover/health/merge_hostlist.h"
#include "os/fixture_tree.h"

namespace {

using namespace drover::health;
using Hosts = std::vector<std::string>;

TEST(HostList, OneALineOrSeveralWithCommas) {
  EXPECT_EQ(parse_hosts("n1\n  n2  # the second\n\n# none\r\nn3, n4,n1\r\n"), (Hosts{"n1", "n2", "n3", "n4"}));
  EXPECT_EQ(parse_hosts(""), Hosts());
}

TEST(HostList, RangesInBrackets) {
  EXPECT_EQ(parse_hosts("n[1-3]"), (Hosts{"n1", "n2", "n3"}));
  EXPECT_EQ(parse_hosts("n[08-11,2]x"), (Hosts{"n08x", "n09x", "n10x", "n11x", "n2x"}));
  EXPECT_EQ(parse_hosts("me@r[1-2]n[1,3].hpc,b"),
            (Hosts{"me@r1n1.hpc", "me@r1n3.hpc", "me@r2n1.hpc", "me@r2n3.hpc", "b"}));
  EXPECT_EQ(parse_hosts("n[7]").front(), "n7");
  EXPECT_EQ(parse_hosts("n[0001-9999],m").size(), kMostHosts);
}

TEST(HostList, OtherBracketsBelongToTheName) {
  EXPECT_EQ(parse_hosts("ssh://me@[fe80::1]:22"), Hosts{"ssh://me@[fe80::1]:22"});
  EXPECT_EQ(parse_hosts("::1,fe80::1%eth0"), (Hosts{"::1", "fe80::1%eth0"}));
}

TEST(HostList, WhatIsNoHostIsRefusedWithItsLine) {
  for (const char* const bad : {"-x",         "a@-x",
                                "me@",        "a b",
                                "a\tb",       "a;b",
                                "$(x)",       "`x`",
                                "a'b",        "a\"b",
                                "a\\b",       "a\x01",
                                "a\x7f",      "\xc3\xa9",
                                "n[1-]",      "n[3-1]",
                                "n[1,]",      "n[1-2-3]",
                                "n[1,,2]",    "n[1-99999]",
                                "n[0-10000]", "n[1-200][1-200]",
                                "n[1",        "*"}) {
    try {
      parse_hosts(std::string("good\n") + bad);
      ADD_FAILURE() << bad;
    } catch (const drover::InvalidArgument& error) {
      EXPECT_EQ(std::string(error.what()).substr(0, 8), "line 2: ") << bad;
    }
  }
  EXPECT_THROW(parse_hosts(std::string(1000, 'a')), drover::InvalidArgument);
  EXPECT_THROW(parse_hosts("n[1-9999],m[1-2]"), drover::InvalidArgument);
}

TEST(HostList, TakesAnyBytes) {
  drover_test::fuzz("n[01-03,7],user@b # c\nssh://x@[::1]:22\nr[1-2]n[3-4]\n", [](std::string_view text) {
    try {
      for (const std::string& host : parse_hosts(text)) {
        EXPECT_FALSE(host.empty());
        EXPECT_NE(host.front(), '-');
        EXPECT_EQ(host.find_first_of(" \t\n\r;$'\"\\"), host.npos);
      }
    } catch (const drover::InvalidArgument&) {  // NOLINT(bugprone-empty-catch): that is an answer too
    }
  });
}

}  // namespace
