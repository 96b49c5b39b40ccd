// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "fault/scenario_path.h"

namespace drover_test {
namespace {

using std::chrono::seconds;

struct Moment {
  const char* scenario;
  const char* output;  ///< what it has said when the signal comes
};
constexpr Moment kMoments[] = {
    {"start", "begin\n"}, {"next", "task 0\n"}, {"body", "body\n"}, {"flow", "flows\n"}, {"get", "task 0\n"},
};

Outcome outcome_of(const Moment& moment, int signal, const char* argument) {
  const Family family;
  Subprocess program(scenario({moment.scenario, argument}, family));
  EXPECT_TRUE(program.wait_for_output(moment.output));
  program.send(signal);
  const auto begin = std::chrono::steady_clock::now();
  Outcome outcome = program.finish();
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - begin;
  std::printf("%s, signal %d, %s: ended after %.1f ms\n", moment.scenario, signal, argument, taken.count());
  EXPECT_FALSE(outcome.timed_out);
  EXPECT_TRUE(family.gone_after(seconds(5)));
  return outcome;
}

class Signals : public testing::TestWithParam<std::tuple<Moment, int>> {};

TEST_P(Signals, EndTheProgramByThatSignalWhenNobodyCatches) {
  const auto& [moment, signal] = GetParam();
  const Outcome outcome = outcome_of(moment, signal, "let");
  EXPECT_EQ(outcome.signal, signal) << "exit code " << outcome.exit_code;
  EXPECT_EQ(outcome.err, "");
}

TEST_P(Signals, AreInterruptedWhereTheProgramWaits) {
  const auto& [moment, signal] = GetParam();
  const Outcome outcome = outcome_of(moment, signal, "catch");
  if (std::string(moment.scenario) == "start" && outcome.signal == signal) return;  // there was no pool yet
  EXPECT_EQ(outcome.exit_code, 7);
  EXPECT_NE(outcome.out.find("interrupted " + std::to_string(signal)), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.err, "");
}

INSTANTIATE_TEST_SUITE_P(All, Signals, testing::Combine(testing::ValuesIn(kMoments), testing::Values(SIGINT, SIGTERM)),
                         [](const auto& moment) {
                           return std::string(std::get<0>(moment.param).scenario) +
                                  sigabbrev_np(std::get<1>(moment.param));
                         });

/// Each primitive between processes, too; one signal for each way out is enough.
TEST(Signal, InterruptsWaitsAtPrimitives) {
  for (const char* const what :
       {"mutex", "writer", "value", "semaphore", "event", "condition", "barrier", "pop", "push", "recv"}) {
    SCOPED_TRACE(what);
    for (const char* const way : {"catch", "let"}) {
      const Family family;
      Subprocess program(scenario({"wait", way, what}, family));
      ASSERT_TRUE(program.wait_for_output("waits at " + std::string(what) + "\n"));
      program.send(SIGINT);
      const Outcome outcome = program.finish();
      EXPECT_FALSE(outcome.timed_out);
      EXPECT_EQ(outcome.err, "");
      if (std::string_view(way) == "let") {
        EXPECT_EQ(outcome.signal, SIGINT) << "exit code " << outcome.exit_code;
      } else {
        EXPECT_EQ(outcome.exit_code, 7) << "signal " << outcome.signal << ", " << outcome.out;
      }
      EXPECT_TRUE(family.gone_after(seconds(5)));
    }
  }
}

TEST(Signal, ShortensThePatienceOfAPoolThatIsBeingClosed) {
  const Family family;
  Subprocess program(scenario({"destructor"}, family));
  ASSERT_TRUE(program.wait_for_output("closing\n"));
  program.send(SIGINT);
  const Outcome outcome = program.finish();  // the pool would wait for 60 s
  EXPECT_FALSE(outcome.timed_out);
  EXPECT_EQ(outcome.err, "");
}

TEST(Signal, EndsAProgramWithoutPoolsAtOnce) {
  const Family family;
  Subprocess program(scenario({"nothing"}, family));
  ASSERT_TRUE(program.wait_for_output("idle\n"));
  program.send(SIGTERM);
  EXPECT_EQ(program.finish().signal, SIGTERM);
}

TEST(Signal, TheSecondEndsTheProgramAtOnce) {
  const Family family;
  Subprocess program(scenario({"stubborn"}, family));
  ASSERT_TRUE(program.wait_for_output("task 0\n"));
  program.send(SIGINT);
  ASSERT_TRUE(program.wait_for_output("going on\n"));
  program.send(SIGINT);
  const Outcome outcome = program.finish();
  EXPECT_EQ(outcome.signal, SIGINT);
  EXPECT_EQ(outcome.err, "");
}

TEST(Signal, LeavesHandlersOfTheProgramAlone) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const Family family;
    Subprocess program(scenario({"own-handler"}, family));
    ASSERT_TRUE(program.wait_for_output("begin\n"));
    program.send(signal);
    const Outcome outcome = program.finish();
    EXPECT_EQ(outcome.exit_code, 0) << "signal " << outcome.signal << outcome.err;
    EXPECT_NE(outcome.out.find("handled, and the pool gives 3"), std::string::npos) << outcome.out;
  }
}

/// Everything that is read from the terminal until `text` is there or the terminal is closed.
std::string read_terminal(int fd, const std::string& text) {
  std::string all;
  char buffer[4096];
  while (all.find(text) == std::string::npos) {
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n <= 0) break;
    all.append(buffer, static_cast<std::size_t>(n));
  }
  return all;
}

TEST(Signal, ControlCInATerminalEndsAllQuietly) {
  int terminal = -1;
  const pid_t pid = forkpty(&terminal, nullptr, nullptr, nullptr);
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    alarm(30);
    std::signal(SIGINT, SIG_DFL);
    execl(kScenario.c_str(), kScenario.c_str(), "next", static_cast<char*>(nullptr));
    _exit(99);
  }
  EXPECT_NE(read_terminal(terminal, "task 1\r\n").find("task 1"), std::string::npos);
  ASSERT_EQ(write(terminal, "\x03", 1), 1);
  const std::string rest = read_terminal(terminal, "never");
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  close(terminal);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) << status;
  // The other task may print before the terminal shows the key, or after it, or never.
  EXPECT_TRUE(rest == "^C" || rest == "task 0\r\n^C" || rest == "^Ctask 0\r\n") << rest;
}

}  // namespace
}  // namespace drover_test
