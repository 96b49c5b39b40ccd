// SPDX-License-Identifier: Apache-2.0
#include "drover/wire/remote_error.h"

#include <cxxabi.h>
#include <gtest/gtest.h>

#include <any>
#include <csignal>
#include <filesystem>
#include <functional>
#include <future>
#include <optional>
#include <regex>
#include <string>
#include <system_error>
#include <variant>

#include "drover/base/errors.h"

namespace drover {
namespace {

std::exception_ptr travel(const std::exception_ptr& error, std::string_view where = "worker 1, area()",
                          std::string_view stack = "frame 1\nframe 2") {
  wire::Writer writer;
  wire::encode_exception(writer, error, where, stack);
  return wire::decode_exception(writer.bytes());
}

/// Throws `error` in "another process", catches it here as an X and passes it to `check`.
template <class X, class Check>
void arrives_as(const auto& error, Check check) {
  try {
    std::rethrow_exception(travel(std::make_exception_ptr(error)));
  } catch (const X& caught) {
    check(caught);
  } catch (...) {
    FAIL() << "arrived as " << abi::__cxa_current_exception_type()->name();
  }
}

template <class X>
void keeps_type_and_text(const X& error) {
  arrives_as<X>(error, [&error](const X& caught) {
    EXPECT_STREQ(caught.what(), error.what());
    const RemoteTrace* trace = remote_trace(caught);
    ASSERT_NE(trace, nullptr);
    EXPECT_EQ(trace->message(), error.what());
    EXPECT_EQ(trace->where(), "worker 1, area()");
    EXPECT_EQ(trace->stack(), "frame 1\nframe 2");
    EXPECT_EQ(dynamic_cast<const RemoteError*>(&caught), nullptr);
  });
}

TEST(RemoteException, KeepsTypeAndTextOfStandardErrors) {
  keeps_type_and_text(std::exception());
  keeps_type_and_text(std::logic_error("a"));
  keeps_type_and_text(std::domain_error("a"));
  keeps_type_and_text(std::invalid_argument("a"));
  keeps_type_and_text(std::length_error("a"));
  keeps_type_and_text(std::out_of_range("a"));
  keeps_type_and_text(std::runtime_error("a"));
  keeps_type_and_text(std::range_error("a"));
  keeps_type_and_text(std::overflow_error("a"));
  keeps_type_and_text(std::underflow_error(""));
  keeps_type_and_text(std::future_error(std::future_errc::no_state));
  keeps_type_and_text(std::regex_error(std::regex_constants::error_brack));
  keeps_type_and_text(std::ios_base::failure("a"));
  keeps_type_and_text(std::bad_alloc());
  keeps_type_and_text(std::bad_array_new_length());
  keeps_type_and_text(std::bad_cast());
  keeps_type_and_text(std::bad_any_cast());
  keeps_type_and_text(std::bad_typeid());
  keeps_type_and_text(std::bad_exception());
  keeps_type_and_text(std::bad_function_call());
  keeps_type_and_text(std::bad_weak_ptr());
  keeps_type_and_text(std::bad_optional_access());
  keeps_type_and_text(std::bad_variant_access());
}

TEST(RemoteException, KeepsTypeAndTextOfOurErrors) {
  keeps_type_and_text(Error("a"));
  keeps_type_and_text(ActorDied("a"));
  keeps_type_and_text(Timeout("a"));
  keeps_type_and_text(Cancelled("a"));
  keeps_type_and_text(OutOfMemory("a"));
  keeps_type_and_text(OwnerDied("a"));
  keeps_type_and_text(Incompatible("a"));
  keeps_type_and_text(InvalidArgument("a"));
}

TEST(RemoteException, KeepsCodesOfSystemErrors) {
  for (const std::error_category* category : {&std::generic_category(), &std::system_category()}) {
    const std::system_error error(ENOENT, *category, "open");
    keeps_type_and_text(error);
    arrives_as<std::system_error>(error, [&error](const auto& caught) { EXPECT_EQ(caught.code(), error.code()); });
  }
  const std::future_error broken(std::future_errc::broken_promise);
  arrives_as<std::future_error>(broken, [&broken](const auto& caught) { EXPECT_EQ(caught.code(), broken.code()); });
}

TEST(RemoteException, KeepsTheNumberOfACodeOfAnUnknownCategory) {
  class Unknown : public std::error_category {
    const char* name() const noexcept override { return "unknown"; }
    std::string message(int) const override { return "bad weather"; }
  };
  static const Unknown unknown;
  const std::system_error error(7, unknown, "sail");
  keeps_type_and_text(error);
  arrives_as<std::system_error>(error, [](const auto& caught) { EXPECT_EQ(caught.code().value(), 7); });
}

TEST(RemoteException, KeepsPathsOfFilesystemErrors) {
  const std::filesystem::filesystem_error error("copy", "/a", "/b", std::make_error_code(std::errc::permission_denied));
  keeps_type_and_text(error);
  arrives_as<std::filesystem::filesystem_error>(error, [&error](const auto& caught) {
    EXPECT_EQ(caught.path1(), "/a");
    EXPECT_EQ(caught.path2(), "/b");
    EXPECT_EQ(caught.code(), error.code());
  });
}

TEST(RemoteException, KeepsFieldsOfOurErrors) {
  const WorkerLost lost("gone", 12, -1, SIGKILL, true);
  keeps_type_and_text(lost);
  arrives_as<WorkerLost>(lost, [](const WorkerLost& caught) {
    EXPECT_EQ(caught.pid(), 12);
    EXPECT_EQ(caught.exit_code(), -1);
    EXPECT_EQ(caught.signal(), SIGKILL);
    EXPECT_TRUE(caught.killed_for_memory());
  });
  keeps_type_and_text(Interrupted(SIGTERM));
  arrives_as<Interrupted>(Interrupted(SIGTERM), [](const Interrupted& caught) { EXPECT_EQ(caught.signal(), SIGTERM); });
}

struct ParseError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct SaysNothing : std::exception {
  const char* what() const noexcept override { return nullptr; }
};
struct NoException {};

TEST(RemoteException, OfAUsersTypeIsRemoteError) {
  arrives_as<RemoteError>(ParseError("line 3"), [](const RemoteError& caught) {
    EXPECT_TRUE(caught.type_name().ends_with("::ParseError")) << caught.type_name();
    EXPECT_EQ(caught.message(), "line 3");
    EXPECT_EQ(caught.stack(), "frame 1\nframe 2");
  });
  arrives_as<RemoteError>(SaysNothing(), [](const RemoteError& caught) { EXPECT_EQ(caught.message(), ""); });
}

TEST(RemoteException, ThatIsNoExceptionIsRemoteError) {
  arrives_as<RemoteError>(42, [](const RemoteError& caught) {
    EXPECT_EQ(caught.type_name(), "int");
    EXPECT_EQ(caught.message(), "42");
  });
  arrives_as<RemoteError>("text", [](const RemoteError& caught) { EXPECT_EQ(caught.message(), "text"); });
  arrives_as<RemoteError>(std::string("text"), [](const RemoteError& caught) { EXPECT_EQ(caught.message(), "text"); });
  arrives_as<RemoteError>(NoException(), [](const RemoteError& caught) {
    EXPECT_TRUE(caught.type_name().ends_with("::NoException")) << caught.type_name();
  });
}

TEST(RemoteException, NamesTypesAsUsersWriteThem) {
  arrives_as<std::ios_base::failure>(std::ios_base::failure("a"), [](const auto& caught) {
    EXPECT_EQ(remote_trace(caught)->type_name(), "std::ios_base::failure");
  });
}

template <class X>
void survives_two_journeys(const auto& error, std::string_view type_name) {
  const auto first = travel(std::make_exception_ptr(error), "worker 1", "inner stack");
  try {
    std::rethrow_exception(travel(first, "worker 2", "outer stack"));
  } catch (const X& caught) {
    const RemoteTrace* trace = remote_trace(caught);
    ASSERT_NE(trace, nullptr);
    EXPECT_TRUE(trace->type_name().ends_with(type_name)) << trace->type_name();
    EXPECT_EQ(trace->message(), error.what());
    EXPECT_EQ(trace->where(), "worker 1, passed on by worker 2");
    EXPECT_EQ(trace->stack(), "inner stack");
  }
}

TEST(RemoteException, SurvivesTwoJourneys) {
  survives_two_journeys<std::out_of_range>(std::out_of_range("a"), "std::out_of_range");
  survives_two_journeys<Timeout>(Timeout("a"), "::Timeout");
  survives_two_journeys<RemoteError>(ParseError("a"), "::ParseError");
}

TEST(RemoteException, IsIncompatibleWhenTheMessageIsBroken) {
  EXPECT_THROW(std::rethrow_exception(wire::decode_exception({})), Incompatible);
}

}  // namespace
}  // namespace drover
