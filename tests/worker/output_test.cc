// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "drover/worker/init.h"
#include "drover/worker/process.h"
#include "harness/deadline.h"
#include "harness/leak_check.h"
#include "harness/subprocess.h"

using namespace std::chrono_literals;

namespace {

// What the spawned processes print.

void print_pieces() {
  for (const char* piece : {"one ", "whole ", "line\n", "and an end without a newline"}) {
    std::cout << piece << std::flush;
  }
  std::cerr << "to stderr\n";
}
void print_long(std::size_t length) { std::cout << std::string(length, 'x') << "\n" << std::flush; }
void print_lines(int lines, char letter, std::size_t length) {
  for (int i = 0; i < lines; ++i) std::cout << std::string(length, letter) << "\n";
  std::cout << std::flush;
}
void print_bytes() { std::cout << std::string("a\0b\n\xff\xfe\n", 7) << std::flush; }
void print_some_and_exit() {
  std::cout << "before the end\n" << std::flush;
  _exit(5);
}

/// A program that is run by the tests, with its streams as they want them. Its answers go to a file.
int probe(const std::string& mode, const std::string& answers) {
  if (mode == "pieces") {
    drover::spawn<print_pieces>().join();
  } else if (mode == "long") {
    drover::spawn<print_long>(std::size_t{1'000'000}).join();
  } else if (mode == "bytes") {
    drover::spawn<print_bytes>().join();
  } else if (mode == "two") {
    drover::Process a = drover::spawn<print_lines>(300, 'a', 2999U), b = drover::spawn<print_lines>(300, 'b', 2999U);
    a.join();
    b.join();
  } else if (mode == "lines") {
    drover::spawn<print_lines>(20'000, 'l', 79U).join();
  } else if (mode == "closed") {
    close(1);
    close(2);
    drover::Process process = drover::spawn<print_lines>(1000, 'c', 79U);
    process.join();
    std::ofstream(answers) << process.exit_status()->describe() << std::flush;
  } else if (mode == "full") {  // nobody reads our stdout until we have ended
    drover::Process stuck = drover::spawn<print_lines>(20'000, 'f', 79U);
    drover::Process dying = drover::spawn<print_some_and_exit>();
    dying.join();
    std::ofstream(answers) << dying.exit_status()->describe() << "; the writer "
                           << (stuck.exit_status() ? "ended" : "waits") << std::flush;
    stuck.kill();
    stuck.join();
  }
  return 0;
}

class OutputPump : public testing::Test {
 protected:
  drover_test::Command probe_command(const std::string& mode) const {
    return {.program = std::filesystem::read_symlink("/proc/self/exe"), .arguments = {"--probe", mode, answers_}};
  }
  drover_test::Outcome run(const std::string& mode) const { return drover_test::run(probe_command(mode)); }
  std::string answer() const {
    std::ostringstream text;
    text << std::ifstream(answers_).rdbuf();
    return text.str();
  }
  void TearDown() override { std::filesystem::remove(answers_); }

  const std::string answers_ = testing::TempDir() + "answers-" + std::to_string(getpid());
};

TEST_F(OutputPump, PassesEachStreamOnToItsOwn) {
  const auto outcome = run("pieces");
  EXPECT_EQ(outcome.out, "one whole line\nand an end without a newline");
  EXPECT_EQ(outcome.err, "to stderr\n");
}

TEST_F(OutputPump, PassesLongLinesOn) {
  const auto outcome = run("long");
  EXPECT_EQ(outcome.out.size(), 1'000'001u);
}

TEST_F(OutputPump, PassesAnyBytesOn) { EXPECT_EQ(run("bytes").out, std::string("a\0b\n\xff\xfe\n", 7)); }

TEST_F(OutputPump, LosesNothing) { EXPECT_EQ(run("lines").out.size(), 20'000u * 80); }

/// Runs a probe whose stdout is a pipe that this test reads when it likes. Gives all that came through it.
std::string read_slowly(const drover_test::Command& command) {
  int out[2];
  if (pipe2(out, O_CLOEXEC) != 0) return "";
  const pid_t child = fork();
  if (child == 0) {
    dup2(out[1], 1);
    execl(command.program.c_str(), command.program.c_str(), command.arguments[0].c_str(), command.arguments[1].c_str(),
          command.arguments[2].c_str(), nullptr);
    _exit(127);
  }
  close(out[1]);
  std::string text;
  char buffer[1500];
  for (;;) {
    if (text.size() < 200'000) usleep(200);  // slower than the writers
    const ssize_t n = read(out[0], buffer, sizeof buffer);
    if (n <= 0) break;
    text.append(buffer, static_cast<std::size_t>(n));
  }
  close(out[0]);
  waitpid(child, nullptr, 0);
  return text;
}

TEST_F(OutputPump, LosesNothingWhenTheReaderIsSlow) {
  EXPECT_EQ(read_slowly(probe_command("lines")).size(), 20'000u * 80);
}

TEST_F(OutputPump, LinesOfTwoProcessesAreNotMixedWhenTheReaderIsSlow) {
  std::istringstream text(read_slowly(probe_command("two")));
  int mixed = 0, lines = 0;
  for (std::string line; std::getline(text, line); ++lines) {
    mixed += line != std::string(2999, 'a') && line != std::string(2999, 'b') ? 1 : 0;
  }
  EXPECT_EQ(mixed, 0);
  EXPECT_EQ(lines, 600);
}

TEST_F(OutputPump, AClosedStreamTakesEverything) {
  run("closed");
  EXPECT_EQ(answer(), "exited with code 0");
}

TEST_F(OutputPump, AFullStreamHoldsUpTheWriterAndNobodyElse) {
  int out[2];
  ASSERT_EQ(pipe2(out, O_CLOEXEC), 0);
  const auto command = probe_command("full");
  const pid_t child = fork();
  if (child == 0) {
    dup2(out[1], 1);
    execl(command.program.c_str(), command.program.c_str(), "--probe", "full", answers_.c_str(), nullptr);
    _exit(127);
  }
  close(out[1]);
  int status = -1;
  EXPECT_TRUE(drover_test::eventually(15s, [&] { return waitpid(child, &status, WNOHANG) == child; }));
  if (status == -1) kill(child, SIGKILL), waitpid(child, nullptr, 0);
  close(out[0]);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(answer(), "exited with code 5; the writer waits");
}

}  // namespace

int main(int argc, char** argv) {
  signal(SIGINT, SIG_DFL);
  drover::init(argc, argv);
  if (argc == 4 && std::string(argv[1]) == "--probe") return probe(argv[2], argv[3]);
  testing::InitGoogleTest(&argc, argv);
  drover_test::install_leak_check();
  return RUN_ALL_TESTS();
}
