// SPDX-License-Identifier: Apache-2.0
#include "drover/os/throw_trace.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <thread>
#include <vector>

namespace os = drover::os;

// Their frames and addresses are looked for: not inlined, and without parameters or branches, for which GCC would make
// clones and cold parts with other names.
__attribute__((noinline)) void drover_test_throw() { throw std::runtime_error("thrown on purpose"); }
__attribute__((noinline)) void drover_test_middle() {
  drover_test_throw();
  asm volatile("");  // no tail call: the frame must stay
}
__attribute__((noinline)) void drover_test_other() { throw std::logic_error("another"); }

namespace {

class ThrowTrace : public testing::Test {
 protected:
  void SetUp() override {
    if (!os::throw_trace_available()) GTEST_SKIP() << "built without DROVER_THROW_TRACE";
  }
};

/// `file+0x…` of each frame of a trace.
std::vector<std::string> places(const std::string& trace) {
  std::vector<std::string> result;
  for (std::size_t at = trace.find('#'); at < trace.size(); at = trace.find('\n', at) + 1) {
    std::string line = trace.substr(at, trace.find('\n', at) - at);
    if (line.back() == ')') line = line.substr(line.rfind('(') + 1, line.size() - line.rfind('(') - 2);
    result.push_back(line.substr(line.rfind(' ') + 1));
  }
  return result;
}

/// The trace of what `body` throws, taken where it is caught.
template <class Body>
std::string trace_of(const Body& body) {
  try {
    const os::ThrowTraceScope scope;
    body();
  } catch (...) {
    return os::last_throw_trace();
  }
  return "nothing was thrown";
}

std::size_t lines(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

/// Whether a place of the trace lies within the first `size` bytes of `function`.
bool names(const std::string& trace, const void* function, std::size_t size = 256) {
  Dl_info info{};
  if (::dladdr(function, &info) == 0) return false;
  const std::uintptr_t start =
      reinterpret_cast<std::uintptr_t>(function) - reinterpret_cast<std::uintptr_t>(info.dli_fbase);
  const std::vector<std::string> all = places(trace);
  return std::any_of(all.begin(), all.end(), [&](const std::string& place) {
    const std::size_t plus = place.rfind("+0x");
    if (plus == std::string::npos) return false;
    const std::uintptr_t offset = std::stoull(place.substr(plus + 3), nullptr, 16);
    return offset >= start && offset < start + size;
  });
}

struct ThrowsInside {
  ~ThrowsInside() {
    try {
      drover_test_other();
    } catch (const std::logic_error&) {
    }
  }
};

std::string in_another_thread(void (*body)(std::string&)) {
  std::string result;
  std::thread([&] { body(result); }).join();
  return result;
}

}  // namespace

TEST_F(ThrowTrace, BeginsAtTheThrowAndGoesUpTheCallers) {
  const std::string trace = trace_of([] { drover_test_middle(); });
  const std::vector<std::string> frames = places(trace);
  ASSERT_GE(frames.size(), 3U) << trace;
  EXPECT_TRUE(names("#0 " + frames[0] + "\n", reinterpret_cast<void*>(&drover_test_throw))) << trace;
  EXPECT_TRUE(names("#0 " + frames[1] + "\n", reinterpret_cast<void*>(&drover_test_middle))) << trace;
}

TEST_F(ThrowTrace, NamesFunctionsThatAreNotExported) {
  const std::string trace = trace_of([] { drover_test_middle(); });
  EXPECT_EQ(trace.rfind("#0 drover_test_throw()+0x", 0), 0U) << trace;
  EXPECT_NE(trace.find("\n#1 drover_test_middle()+0x"), std::string::npos) << trace;
}

TEST_F(ThrowTrace, EndsAtTheFunctionThatHoldsTheScope) {
  EXPECT_LE(lines(trace_of([] { drover_test_middle(); })), 6U) << "main and gtest are not the task's";
}

TEST_F(ThrowTrace, SeesThrowsInsideTheStandardLibrary) {
  const std::string trace = trace_of([] { std::vector<int>().at(3); });
  EXPECT_NE(trace.substr(0, trace.find('\n')).find("libstdc++"), std::string::npos) << trace;
}

TEST_F(ThrowTrace, IsEmptyWithoutAScope) {
  const std::string trace = in_another_thread([](std::string& result) {
    try {
      drover_test_middle();
    } catch (...) {
      result = os::last_throw_trace();
    }
  });
  EXPECT_EQ(trace, "");
}

TEST_F(ThrowTrace, BelongsToTheThreadThatThrew) {
  const os::ThrowTraceScope scope;
  EXPECT_EQ(in_another_thread([](std::string& result) {
              try {
                drover_test_middle();
              } catch (...) {
                result = os::last_throw_trace();
              }
            }),
            "");
}

TEST_F(ThrowTrace, IsThatOfTheExceptionBeingHandled) {
  const std::string trace = trace_of([] {
    try {
      drover_test_middle();
    } catch (...) {
      try {
        drover_test_other();
      } catch (const std::logic_error&) {
      }
      throw;
    }
  });
  EXPECT_TRUE(names(trace, reinterpret_cast<void*>(&drover_test_throw))) << trace;
}

TEST_F(ThrowTrace, IsNotOverwrittenByDestructorsThatThrowAndCatch) {
  const std::string trace = trace_of([] {
    const std::vector<ThrowsInside> many(10);
    drover_test_middle();
  });
  EXPECT_TRUE(names(trace, reinterpret_cast<void*>(&drover_test_throw))) << trace;
}

TEST_F(ThrowTrace, OfAnExceptionFromElsewhereIsEmptyNotAnothers) {
  std::exception_ptr foreign;
  std::thread([&] {
    try {
      drover_test_middle();
    } catch (...) {
      foreign = std::current_exception();
    }
  }).join();
  const std::string trace = trace_of([&] {
    try {
      drover_test_other();
    } catch (const std::logic_error&) {
    }
    std::rethrow_exception(foreign);
  });
  EXPECT_EQ(trace, "");
}

TEST_F(ThrowTrace, OutsideACatchBlockIsTheLastThrow) {
  {
    const os::ThrowTraceScope scope;
    try {
      drover_test_middle();
    } catch (const std::runtime_error&) {
    }
  }
  EXPECT_TRUE(names(os::last_throw_trace(), reinterpret_cast<void*>(&drover_test_throw)));
}

TEST_F(ThrowTrace, ANewOutermostScopeForgetsAndANestedOneDoesNot) {
  trace_of([] { drover_test_middle(); });
  {
    const os::ThrowTraceScope scope;
    EXPECT_EQ(os::last_throw_trace(), "");
    trace_of([] { drover_test_middle(); });
    EXPECT_NE(os::last_throw_trace(), "");
  }
  EXPECT_NE(os::last_throw_trace(), "");
}

TEST_F(ThrowTrace, OfDeepRecursionIsCut) {
  struct Deep {
    static void down(int levels) {
      if (levels == 0) drover_test_middle();
      if (levels > 0) down(levels - 1);
      asm volatile("");
    }
  };
  const std::string trace = trace_of([] { Deep::down(500); });
  EXPECT_GT(lines(trace), 20U);
  EXPECT_LE(lines(trace), 64U);
  EXPECT_TRUE(names(trace, reinterpret_cast<void*>(&drover_test_throw)));
}

TEST_F(ThrowTrace, DoesNotDisturbThrowingInManyThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 200; ++i) EXPECT_NE(trace_of([] { drover_test_middle(); }), "");
    });
  }
  for (std::thread& thread : threads) thread.join();
}
