// SPDX-License-Identifier: Apache-2.0
#include "drover/shm/block.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <numeric>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "drover/base/errors.h"
#include "sync/child.h"

namespace {

using drover::shm::Access;
using drover::shm::Block;
using drover::shm::BlockHandle;
using drover::shm::NpyHeader;

NpyHeader doubles(std::uint64_t n) { return {.descr = "<f8", .shape = {n}}; }

std::string unique_name(const std::string& what) { return "test-" + what + "-" + std::to_string(getpid()); }

template <class E, class F>
std::string error_of(F&& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  return "no such error";
}

bool exists(const std::string& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0;
}

TEST(NamedBlock, IsAFileOfItsNameThatOnlyTheUserMayTouch) {
  const auto block = Block::create(unique_name("file"), doubles(1000), "SharedArray<double, 1>");
  EXPECT_EQ(block->path(), "/dev/shm/" + block->name());
  struct stat status {};
  ASSERT_EQ(stat(block->path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  EXPECT_EQ(status.st_size, 4096 + 8192 + 4096);
  EXPECT_EQ(block->size(), 8000u);
  EXPECT_EQ(block->header().shape, std::vector<std::uint64_t>{1000});
  EXPECT_EQ(std::count(block->data(), block->data() + 8000, std::byte{0}), 8000);
}

TEST(NamedBlock, HasItsNameUntilItGoes) {
  auto block = Block::create(unique_name("end"), doubles(1), "x");
  const std::string path = block->path();
  EXPECT_TRUE(exists(path));
  block.reset();
  EXPECT_FALSE(exists(path));
}

TEST(NamedBlock, IsTheSameObjectWhenItIsOpenedInItsProcess) {
  const auto block = Block::create(unique_name("same"), doubles(1), "x");
  EXPECT_EQ(Block::open(block->name(), Access::kReadWrite), block);
  const auto reader = Block::open(block->name(), Access::kReadOnly);
  EXPECT_NE(reader, block);
  EXPECT_EQ(reader->access(), Access::kReadOnly);
  block->data()[3] = std::byte{7};
  EXPECT_EQ(reader->data()[3], std::byte{7});
  EXPECT_EQ(Block::open(reader->handle(false), Access::kReadOnly), reader);
}

TEST(NamedBlock, CanLoseItsNameOnceAndBeUsedOn) {
  const auto block = Block::create(unique_name("unlink"), doubles(1), "x");
  block->unlink();
  block->unlink();
  EXPECT_FALSE(exists(block->path()));
  const auto next = Block::create(block->name(), doubles(2), "y");
  EXPECT_NE(next->data(), block->data());
  Block::open(next->name(), Access::kReadOnly)->unlink();
  EXPECT_FALSE(exists(next->path())) << "any block of the process that made it will do";
}

TEST(NamedBlock, LosesItsNameByNoOtherProcess) {
  const auto block = Block::create(unique_name("foreign"), doubles(1), "x");
  const pid_t child = fork();
  if (child == 0) {
    const bool refused = error_of<drover::InvalidArgument>([&] {
                           Block::open(block->name(), Access::kReadOnly)->unlink();
                         }) == block->path() + " was made by another process: only that one can remove the name";
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(exists(block->path()));
}

TEST(NamedBlock, IsNotMadeWhenTheNameIsTaken) {
  const auto block = Block::create(unique_name("taken"), doubles(1), "x");
  const std::string who = "process " + std::to_string(getpid()) + " (";
  const std::string text = error_of<drover::Error>([&] { Block::create(block->name(), doubles(1), "x"); });
  EXPECT_NE(text.find("the name of the block is taken: " + block->path() + " exists, and it belongs to " + who),
            text.npos)
      << text;
}

TEST(NamedBlock, DoesNotSayThatANameIsTakenWhenThereAreNoDescriptors) {
  drover_test::Child child([] {
    const rlimit none{.rlim_cur = 0, .rlim_max = 0};
    setrlimit(RLIMIT_NOFILE, &none);
    const std::string error = error_of<std::system_error>([] { Block::create(unique_name("free"), doubles(1), "x"); });
    std::fprintf(stderr, "%s\n", error.c_str());
    return error.find("Too many open files") != error.npos;
  });
  EXPECT_TRUE(child.succeeded());
}

TEST(NamedBlock, RefusesNamesThatAreNone) {
  for (const std::string& name : {std::string(), std::string("a/b"), std::string(".."), std::string("."),
                                  std::string(".hidden"), std::string(201, 'x'), std::string(300, 'x'),
                                  std::string("a\0b", 3), std::string("a\x1b[31m"), std::string("a\nb")}) {
    EXPECT_THROW(Block::create(name, doubles(1), "x"), drover::InvalidArgument) << name;
    EXPECT_THROW(Block::open(name, Access::kReadOnly), drover::InvalidArgument) << name;
  }
  EXPECT_EQ(error_of<drover::InvalidArgument>([] { Block::open("a/b", Access::kReadOnly); }),
            "the block name \"a/b\" has a '/': it is a name in one folder, not a path");
  const std::string longest = unique_name("") + std::string(200 - unique_name("").size(), 'x');
  EXPECT_EQ(Block::create(longest, doubles(1), "x")->name(), longest);
}

TEST(NamedBlock, ThatIsNotThereIsAnError) {
  EXPECT_EQ(error_of<drover::Error>([] { Block::open("no-such-block", Access::kReadOnly); }),
            "there is no block /dev/shm/no-such-block: its owner has not made it yet, has removed it or has ended");
}

TEST(NamedBlock, OfNoBytesIsOne) {
  const auto block = Block::create(unique_name("empty"), doubles(0), "x");
  EXPECT_EQ(block->size(), 0u);
  EXPECT_EQ(Block::open(block->name(), Access::kReadOnly)->size(), 0u);
}

TEST(Block, ThatIsSmallSharesASlab) {
  std::vector<std::shared_ptr<Block>> blocks;
  for (std::uint64_t size = 0; size < 3000; size += 7) blocks.push_back(Block::create(size, "small"));
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const std::byte value{static_cast<unsigned char>(i)};
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(blocks[i]->data()) % 64, 0u);
    std::fill_n(blocks[i]->data(), blocks[i]->size(), value);
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const std::byte value{static_cast<unsigned char>(i)};
    EXPECT_EQ(std::count(blocks[i]->data(), blocks[i]->data() + blocks[i]->size(), value),
              static_cast<std::ptrdiff_t>(blocks[i]->size()));
    EXPECT_EQ(blocks[i]->handle(false).descriptor, blocks[0]->handle(false).descriptor);
  }
}

TEST(Block, ThatIsLargeBeginsAtAPage) {
  const auto block = Block::create(100'000, "large");
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block->data()) % 4096, 0u);
  EXPECT_EQ(std::count(block->data(), block->data() + 100'000, std::byte{0}), 100'000);
  EXPECT_EQ(block->name(), "");
  EXPECT_EQ(block->path(), "");
  EXPECT_THROW(block->header(), drover::InvalidArgument);
  EXPECT_THROW(block->unlink(), drover::InvalidArgument);
}

TEST(Block, IsFoundAgainByItsHandle) {
  for (const std::uint64_t size : {100u, 100'000u}) {
    const auto block = Block::create(size, "x");
    EXPECT_EQ(Block::open(block->handle(false), Access::kReadWrite), block);
    block->data()[size - 1] = std::byte{9};
    const auto reader = Block::open(block->handle(false), Access::kReadOnly);  // another mapping
    ASSERT_NE(reader, block);
    EXPECT_NE(reader->data(), block->data());
    EXPECT_EQ(reader->data()[size - 1], std::byte{9});
    EXPECT_EQ(reader->size(), size);
  }
}

TEST(Block, RefusesHandlesThatDoNotFit) {
  for (const std::uint64_t size : {100u, 100'000u}) {
    const auto block = Block::create(size, "x");
    const BlockHandle good = block->handle(false);
    BlockHandle bad = good;
    bad.size += 1;
    EXPECT_THROW(Block::open(bad, Access::kReadWrite), drover::Incompatible);
    EXPECT_THROW(Block::open(bad, Access::kReadOnly), drover::Incompatible);
    bad = good;
    bad.offset += 64;
    EXPECT_THROW(Block::open(bad, Access::kReadOnly), drover::Incompatible);
    bad.offset = ~std::uint64_t{0} - 63;
    EXPECT_THROW(Block::open(bad, Access::kReadOnly), drover::Incompatible);
    bad = good;
    bad.inode += 1;
    EXPECT_THROW(Block::open(bad, Access::kReadOnly), drover::Incompatible);
    bad = good;
    bad.size = ~std::uint64_t{0};
    EXPECT_THROW(Block::open(bad, Access::kReadOnly), drover::Incompatible);
    bad = good;
    bad.pid = 0x7FFFFFFF;
    if (size < 65536) continue;  // a slab that is mapped is not asked for again
    EXPECT_THROW(Block::open(bad, Access::kReadOnly), drover::OwnerDied);
  }
}

TEST(Block, IsKeptUntilItsHandlesAreOpened) {
  for (const bool named : {false, true}) {
    for (const Access access : {Access::kReadWrite, Access::kReadOnly}) {
      auto block = named ? Block::create(unique_name("sent"), doubles(1), "x") : Block::create(100'000, "x");
      const std::weak_ptr<Block> watch = block;
      const BlockHandle first = block->handle(true), second = block->handle(true);
      EXPECT_TRUE(first.counted);
      drover::shm::retain_until_received(std::move(block));
      EXPECT_EQ(drover::shm::release_received(), 1u);
      Block::open(first, access);
      EXPECT_EQ(drover::shm::release_received(), 1u);
      EXPECT_FALSE(watch.expired());
      Block::open(second, access);
      EXPECT_EQ(drover::shm::release_received(), 0u);
      EXPECT_TRUE(watch.expired());
    }
  }
}

TEST(Block, OfAProcessThatMayNotBeLookedIntoIsRefusedWithTheReason) {
  if (geteuid() != 0) GTEST_SKIP() << "this test becomes another user, which only root can";
  auto block = Block::create(std::uint64_t{100'000}, "x");
  const BlockHandle handle = block->handle(false);
  drover_test::Child child([&] {
    block.reset();  // it must be fetched from the parent
    if (setresgid(65'534, 65'534, 65'534) != 0 || setresuid(65'534, 65'534, 65'534) != 0) return false;
    const std::string error = error_of<std::system_error>([&] { Block::open(handle, Access::kReadOnly); });
    std::fprintf(stderr, "%s\n", error.c_str());
    return error.find("may not be looked into") != error.npos && error.find("Permission denied") != error.npos;
  });
  EXPECT_TRUE(child.succeeded());
}

TEST(Block, IsFetchedFromAProcessWhoseFirstThreadHasEnded) {
  struct Sent {
    std::uint64_t device, inode, offset, size;
    int descriptor;
    std::atomic<bool> there;
  };
  const drover_test::Common<Sent> sent;
  drover_test::Child child([&] {
    const auto block = Block::create(std::uint64_t{100'000}, "x");
    block->data()[99'999] = std::byte{7};
    std::thread([&, first = getpid()] {
      const std::string stat = "/proc/" + std::to_string(first) + "/stat";
      for (std::string text; text.find(") Z ") == text.npos; std::this_thread::yield()) {
        std::getline(std::ifstream(stat), text);
      }
      const BlockHandle handle = block->handle(false);
      sent->device = handle.device, sent->inode = handle.inode, sent->offset = handle.offset, sent->size = handle.size;
      sent->descriptor = handle.descriptor;
      sent->there = true;
      for (;;) pause();
    }).detach();
    syscall(SYS_exit, 0);  // this thread alone
    return false;
  });
  ASSERT_TRUE(drover_test::eventually(std::chrono::seconds(10), [&] { return sent->there.load(); }));
  BlockHandle handle;
  handle.pid = child.pid(), handle.descriptor = sent->descriptor, handle.device = sent->device;
  handle.inode = sent->inode, handle.offset = sent->offset, handle.size = sent->size;
  EXPECT_EQ(Block::open(handle, Access::kReadOnly)->data()[99'999], std::byte{7});
}

TEST(RawBlock, IsWhatSomethingElseHasMade) {
  const std::string name = unique_name("raw"), path = "/dev/shm/" + name;
  std::ofstream(path) << std::string(10'000, 'a');
  chmod(path.c_str(), 0600);
  {
    const auto block = Block::open_raw(name, 10'000, Access::kReadWrite);
    EXPECT_EQ(block->data()[9'999], std::byte{'a'});
    EXPECT_EQ(Block::open(block->handle(true), Access::kReadWrite), block);
    EXPECT_EQ(Block::open(block->handle(true), Access::kReadOnly)->size(), 10'000u);
    EXPECT_EQ(error_of<drover::Incompatible>([&] { Block::open_raw(name, 10'001, Access::kReadWrite); }),
              path + " has 10000 bytes, fewer than the 10001 that are needed");
    EXPECT_THROW(Block::open(name, Access::kReadOnly), drover::Incompatible);
    EXPECT_THROW(block->unlink(), drover::InvalidArgument);
  }
  EXPECT_TRUE(exists(path));
  unlink(path.c_str());
}

TEST(RawBlock, FollowsNoLinkAndOpensNoFifo) {
  const std::string name = unique_name("link"), path = "/dev/shm/" + name;
  ASSERT_EQ(symlink("/etc/passwd", path.c_str()), 0);
  EXPECT_THROW(Block::open_raw(name, 1, Access::kReadOnly), drover::Incompatible);
  unlink(path.c_str());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THROW(Block::open_raw(name, 1, Access::kReadOnly), drover::Incompatible);
  unlink(path.c_str());
}

TEST(NpyBlock, IsAFileOnDisk) {
  const auto block = Block::create(unique_name("npy"), doubles(3), "x");
  const double values[] = {1, 2, 3};
  std::memcpy(block->data(), values, sizeof values);
  const auto file = Block::open_npy(block->path(), Access::kReadWrite);
  EXPECT_EQ(file, block);  // it is that file
  EXPECT_THROW(Block::open_npy("/no/such.npy", Access::kReadOnly), std::system_error);
  EXPECT_THROW(Block::open_npy("/etc/passwd", Access::kReadOnly), drover::Incompatible);
}

TEST(NpyBlock, IsReadAnewWhenItsFileWasWrittenAnew) {
  const std::string path = testing::TempDir() + unique_name("again") + ".npy";
  const auto write = [&](const char* descr, std::uint64_t count) {
    NpyHeader header{.descr = descr, .shape = {count}};
    header.data_offset = drover::shm::kNpyHeaderSize;
    std::vector<std::byte> bytes = format_npy_header(header);
    bytes.resize(bytes.size() + 800);
    std::ofstream(path, std::ios::binary)  // the same file, not another of that name
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  };
  write("<f8", 100);
  const auto first = Block::open_npy(path, Access::kReadOnly);
  EXPECT_EQ(Block::open_npy(path, Access::kReadOnly), first);
  write("<i4", 200);
  const auto second = Block::open_npy(path, Access::kReadOnly);
  EXPECT_EQ(second->header().descr, "<i4");
  EXPECT_EQ(second->header().shape, std::vector<std::uint64_t>{200});
  EXPECT_EQ(first->header().descr, "<f8") << "who has it keeps what it opened";
  unlink(path.c_str());
}

}  // namespace
