// SPDX-License-Identifier: Apache-2.0
// Programs that make and open blocks with names, for tests that kill them. `names_scenario WHAT NAME`; DROVER_FAULT is
// for the role "names". They say on stdout how far they are.
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "drover/base/errors.h"
#include "drover/base/log.h"
#include "drover/os/fault_point.h"
#include "drover/os/memory_file.h"
#include "drover/shm/block.h"
#include "drover/sync/mutex.h"

namespace {

using drover::shm::Access;
using drover::shm::Block;
using drover::shm::NpyHeader;

const NpyHeader kHeader{.descr = "<f8", .fortran_order = false, .shape = {1000}, .data_offset = 0};

void say(const std::string& line) {
  const std::string text = line + "\n";
  [[maybe_unused]] const ssize_t n = write(1, text.data(), text.size());
}

[[noreturn]] void wait_for_ever() {
  for (;;) pause();
}

std::shared_ptr<Block> make(const std::string& name) {
  auto block = Block::create(name, kHeader, "names_scenario");
  std::memset(block->data(), 'x', block->size());
  say("made");
  return block;
}

void make_and_drop(const std::string& name) { make(name).reset(); }
void make_and_unlink(const std::string& name) { make(name)->unlink(); }

void make_mutex(const std::string& name) {
  const auto mutex = drover::Mutex::create(name);
  say("made");
}

void hold(const std::string& name) {
  const auto block = make(name);
  wait_for_ever();
}

/// The thread that main runs in ends, the program goes on.
void hold_without_main(const std::string& name) {
  std::thread([name] {
    const auto block = make(name);
    wait_for_ever();
  }).detach();
  pthread_exit(nullptr);
}

/// As a program that must not be looked into.
void hold_hidden(const std::string& name) {
  const auto block = Block::create(name, kHeader, "names_scenario");
  prctl(PR_SET_DUMPABLE, 0);
  say("made");
  wait_for_ever();
}

void hold_two(const std::string& name) {
  const auto block = make(name);
  getchar();  // a line on stdin, or its end
  const auto second = make(name + "-second");
  wait_for_ever();
}

void hold_both(const std::string& name) {
  const auto first = Block::create(name, kHeader, "first"), second = make(name + "-second");
  wait_for_ever();
}

void open(const std::string& name) {
  const auto block = Block::open(name, Access::kReadWrite);
  say(std::string(1, static_cast<char>(block->data()[7999])));
}

/// Never destroyed.
void leave(const std::string& name) { new std::shared_ptr<Block>(make(name)); }
void leave_and_exit(const std::string& name) {
  leave(name);
  std::exit(0);
}
void leave_at_once(const std::string& name) {
  leave(name);
  _exit(0);
}
void leave_by_abort(const std::string& name) {
  leave(name);
  abort();
}
void keep_static(const std::string& name) { static const auto block = make(name); }

void become_another_program(const std::string& name) {
  leave(name);
  execl("/bin/sleep", "sleep", "100", nullptr);
}

/// A fork that ends in the usual way, destroying its copy of the block, must not take the name along.
void fork_that_ends(const std::string& name) {
  auto block = make(name);
  const pid_t child = fork();
  if (child == 0) {
    block->data()[0] = std::byte{'y'};
    block.reset();
    std::exit(0);
  }
  waitpid(child, nullptr, 0);
  say(access(block->path().c_str(), F_OK) == 0 && block->data()[0] == std::byte{'y'} ? "still there" : "gone");
  wait_for_ever();
}

/// A fork that lives on must not keep the name.
void fork_that_stays(const std::string& name) {
  const auto block = make(name);
  const pid_t child = fork();
  if (child == 0) {
    const auto own = make(name + "-of-fork");
    wait_for_ever();
  }
  say("fork " + std::to_string(child));
  wait_for_ever();
}

void churn(const std::string& name) {
  const auto keep = Block::create(name + "-churn", kHeader, "keeps the guardian");
  say("begin");
  for (;;) {
    try {
      const auto block = Block::create(name, kHeader, "churn");
      std::memset(block->data(), 'x', block->size());
    } catch (const drover::Incompatible&) {
      throw;
    } catch (const drover::Error&) {  // another has it
    }
  }
}

void open_many(const std::string& name) {
  std::vector<std::shared_ptr<Block>> blocks;
  for (int i = 0; i < 10'000; ++i) blocks.push_back(Block::create(name + std::to_string(i), kHeader, "many"));
  say("made");
  wait_for_ever();
}

std::shared_ptr<Block> make_large(const std::string& name, std::uint64_t doubles) {
  return Block::create(name, {.descr = "<f8", .fortran_order = false, .shape = {doubles}, .data_offset = 0}, "large");
}

void refuse_too_large(const std::string& name) {
  const auto begin = std::chrono::steady_clock::now();
  try {
    make_large(name, 100'000'000);
  } catch (const drover::OutOfMemory& error) {
    say(error.what());
  }
  const auto time = std::chrono::steady_clock::now() - begin;
  say(time < std::chrono::milliseconds(100) ? "in time" : "too late");
}

/// Blocks of 1 MB until there is no room; each can then be written to its end.
void fill(const std::string& name) {
  std::vector<std::shared_ptr<Block>> blocks;
  try {
    for (int i = 0; i < 100; ++i) blocks.push_back(make_large(name + std::to_string(i), 125'000));
  } catch (const drover::OutOfMemory&) {
    say("full");
  }
  for (const auto& block : blocks) std::memset(block->data(), 'x', block->size());
  say("all written");
  blocks.clear();
  make_large(name, 5'000'000);
  say("room again");
}

/// Memory that something else has made and filled, opened for writing: there is no room for as much again.
void attach_filled(const std::string& name) {
  constexpr std::uint64_t kSize = 40 << 20;
  const std::string path = "/dev/shm/" + name;
  std::ofstream(path) << std::string(kSize, 'x');
  const auto block = Block::open_raw(name, kSize, Access::kReadWrite);
  std::memset(block->data(), 'y', kSize);
  say("attached");
  const std::string sparse = name + "-sparse";
  std::ofstream("/dev/shm/" + sparse) << 'x';
  if (truncate(("/dev/shm/" + sparse).c_str(), kSize) != 0) std::abort();
  try {
    static_cast<void>(Block::open_raw(sparse, kSize, Access::kReadWrite));
  } catch (const drover::OutOfMemory&) {
    say("no room");
  }
}

/// Under `ulimit -f`: each of these makes a file in memory.
void file_too_large(const std::string& name) {
  const auto refused = [](const auto& call) {
    try {
      static_cast<void>(call());
      say("made");
    } catch (const std::system_error& error) {
      say(error.code().value() == EFBIG && std::strstr(error.what(), "ulimit -f") != nullptr ? "refused"
                                                                                             : error.what());
    }
  };
  refused([&] { return make_large(name, 10'000); });
  refused([] { return Block::create(std::uint64_t{100'000}, "unnamed"); });
  refused([] { return Block::create(std::uint64_t{100}, "small"); });
  const auto file = drover::os::MemoryFile::create("test");
  refused([&] { return file.grow_to(1 << 20), 0; });
  refused([&] { return file.write_at(0, std::vector<std::byte>(1 << 20)), 0; });
  refused([&] { return file.write_at(0, std::vector<std::byte>(100)), 0; });
}

/// Under `ulimit -f`: attaching does not make a file longer.
void attach_larger_than_files_may_be(const std::string& name) {
  say(std::to_string(Block::open_raw(name, 1 << 20, Access::kReadWrite)->size()));
}

/// Memory with holes, and none left for them: reading it would end in SIGBUS.
void attach_sparse_for_reading(const std::string& name) {
  const std::string path = "/dev/shm/" + name;
  std::ofstream(path) << 'x';
  if (truncate(path.c_str(), 60 << 20) != 0) std::abort();
  const auto other = make_large(name + "-other", 1'000'000);
  try {
    const auto block = Block::open_raw(name, 60 << 20, Access::kReadOnly);
    say(std::to_string(std::count(block->data(), block->data() + block->size(), std::byte{})));
  } catch (const drover::OutOfMemory&) {
    say("no room");
  }
}

/// With a handler for SIGBUS that was there before the first block.
void touch_truncated(const std::string& name) {
  struct sigaction action {};
  action.sa_handler = [](int) {
    say("earlier handler");
    _exit(77);
  };
  sigaction(SIGBUS, &action, nullptr);
  const auto block = make_large(name, 10'000);
  if (truncate(block->path().c_str(), 0) == 0) block->data()[5000] = std::byte{1};
}

const std::map<std::string, void (*)(const std::string&)> kPrograms = {
    {"make-and-drop", make_and_drop},
    {"make-and-unlink", make_and_unlink},
    {"make-mutex", make_mutex},
    {"hold", hold},
    {"hold-without-main", hold_without_main},
    {"hold-hidden", hold_hidden},
    {"hold-two", hold_two},
    {"hold-both", hold_both},
    {"open", open},
    {"exit", leave_and_exit},
    {"return", leave},
    {"_exit", leave_at_once},
    {"abort", leave_by_abort},
    {"static", keep_static},
    {"exec", become_another_program},
    {"fork-that-ends", fork_that_ends},
    {"fork-that-stays", fork_that_stays},
    {"churn", churn},
    {"many", open_many},
    {"too-large", refuse_too_large},
    {"fill", fill},
    {"truncated", touch_truncated},
    {"attach-filled", attach_filled},
    {"attach-sparse", attach_sparse_for_reading},
    {"attach-large", attach_larger_than_files_may_be},
    {"file-too-large", file_too_large},
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 || !kPrograms.contains(argv[1])) return 2;
  drover::os::set_fault_role("names");
  drover::set_log([](drover::LogLevel, std::string_view text) { std::cerr << text << std::endl; });
  try {
    kPrograms.at(argv[1])(argv[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
