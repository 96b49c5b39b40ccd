// SPDX-License-Identifier: Apache-2.0
// Blocks whose bytes, files or handles somebody else has changed: an error, or what is there, never a crash.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <system_error>
#include <vector>

#include "drover/base/errors.h"
#include "drover/shm/block.h"
#include "drover/shm/block_list.h"

// The sanitizer's own handler would turn the signal into a report.
extern "C" const char* __asan_default_options();  // NOLINT
extern "C" const char* __asan_default_options() { return "handle_sigbus=0"; }

namespace {

using drover::shm::Access;
using drover::shm::Block;
using drover::shm::BlockHandle;
using drover::shm::NpyHeader;

constexpr unsigned kSeed = 20'261'130;

std::string unique_name(const std::string& what) { return "hostile-" + what + "-" + std::to_string(getpid()); }

std::shared_ptr<Block> make(const std::string& what, std::uint64_t count = 1000) {
  return Block::create(unique_name(what), NpyHeader{.descr = "<f8", .shape = {count}}, "test");
}

class File {
 public:
  explicit File(const std::string& path) : fd_(open(path.c_str(), O_RDWR | O_CLOEXEC)) {}
  ~File() { close(fd_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  std::vector<char> read(off_t offset, std::size_t size) const {
    std::vector<char> bytes(size);
    EXPECT_EQ(pread(fd_, bytes.data(), size, offset), static_cast<ssize_t>(size));
    return bytes;
  }
  void write(off_t offset, const std::vector<char>& bytes) const {
    EXPECT_EQ(pwrite(fd_, bytes.data(), bytes.size(), offset), static_cast<ssize_t>(bytes.size()));
  }
  off_t size() const {
    struct stat status {};
    fstat(fd_, &status);
    return status.st_size;
  }
  void resize(off_t size) const { ASSERT_EQ(ftruncate(fd_, size), 0); }

 private:
  int fd_;
};

/// 1 when it opened, 0 when it was refused as it should be; any other exception fails the test.
int try_open(const std::string& name) {
  drover::shm::list_blocks();  // what `drover status` does with the same bytes
  try {
    const auto block = Block::open(name, Access::kReadOnly);
    EXPECT_EQ(block->size(), 8000u);
    EXPECT_EQ(block->header().shape, std::vector<std::uint64_t>{1000});
    return 1;
  } catch (const drover::Incompatible&) {
    return 0;
  }
}

TEST(HostileBlock, WithFlippedBytesOpensOrIsRefused) {
  const auto block = make("flip");
  const File file(block->path());
  std::mt19937 random(kSeed);
  std::printf("seed %u\n", kSeed);
  int opened = 0, refused = 0;
  for (int round = 0; round < 6000; ++round) {
    const off_t page = round % 2 == 0 ? 0 : file.size() - 4096;
    const std::vector<char> good = file.read(page, 4096);
    std::vector<char> bad = good;
    for (unsigned i = 0; i < 1 + random() % 8; ++i) {
      bad[random() % (round % 4 < 2 ? 4096 : 512)] ^= static_cast<char>(1 + random() % 255);
    }
    file.write(page, bad);
    (try_open(block->name()) == 1 ? opened : refused) += 1;
    file.write(page, good);
  }
  std::printf("opened %d, refused %d\n", opened, refused);
  EXPECT_GT(opened, 100);
  EXPECT_GT(refused, 1000);
  EXPECT_EQ(try_open(block->name()), 1);
}

TEST(HostileBlock, OfRandomBytesIsRefused) {
  const std::string name = unique_name("random"), path = "/dev/shm/" + name;
  std::mt19937 random(kSeed);
  for (int round = 0; round < 300; ++round) {
    std::string bytes(random() % 20'000 / (round % 3 == 0 ? 1 : 4096) * (round % 3 == 0 ? 1 : 4096), '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    if (round % 2 == 0 && bytes.size() > 10) bytes.replace(0, 8, "\x93NUMPY\x01\x00", 8);
    std::ofstream(path, std::ios::binary) << bytes;
    chmod(path.c_str(), 0600);
    EXPECT_EQ(try_open(name), 0);
    EXPECT_THROW(Block::open_npy(path, Access::kReadOnly), drover::Incompatible);
  }
  unlink(path.c_str());
}

TEST(HostileBlock, ThatWasMadeSmallerOrLargerIsRefused) {
  const auto block = make("size");
  const File file(block->path());
  const off_t size = file.size();
  const std::vector<char> whole = file.read(0, static_cast<std::size_t>(size));
  for (off_t other = 0; other <= size + 8192; other += 512) {
    file.resize(other);
    EXPECT_EQ(try_open(block->name()), other == size ? 1 : 0) << other;
    file.resize(size);
    file.write(0, whole);
  }
  EXPECT_EQ(try_open(block->name()), 1);
}

TEST(HostileBlock, OfAnotherVersionSaysSo) {
  const auto block = make("version");
  const File file(block->path());
  std::vector<char> page = file.read(file.size() - 4096, 16);
  page[8] = 2;
  file.write(file.size() - 4096, page);
  try {
    Block::open(block->name(), Access::kReadOnly);
    ADD_FAILURE();
  } catch (const drover::Incompatible& error) {
    EXPECT_EQ(error.what(), block->path() + " cannot be opened as a block: another version of Drover made it");
  }
}

TEST(HostileBlock, OfAnotherUserIsRefusedWithWhoItIs) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a file of another user";
  const auto block = make("user");
  ASSERT_EQ(chown(block->path().c_str(), 12'345, static_cast<gid_t>(-1)), 0);
  try {
    Block::open(block->name(), Access::kReadOnly);
    ADD_FAILURE();
  } catch (const std::system_error& error) {
    EXPECT_NE(std::string(error.what()).find("it belongs to user 12345, this program runs as user 0"),
              std::string::npos)
        << error.what();
  }
  ASSERT_EQ(chown(block->path().c_str(), 0, static_cast<gid_t>(-1)), 0);
  ASSERT_EQ(chmod(block->path().c_str(), 0666), 0);
  EXPECT_THROW(Block::open(block->name(), Access::kReadOnly), drover::Incompatible);
}

TEST(HostileHandle, IsAnErrorOrABlock) {
  const auto named = make("handle");
  const auto small = Block::create(100, "small"), large = Block::create(100'000, "large");
  std::mt19937_64 random(kSeed);
  int opened = 0;
  for (int round = 0; round < 20'000; ++round) {
    BlockHandle handle = (round % 3 == 0 ? named : round % 3 == 1 ? small : large)->handle(false);
    for (unsigned i = 0; i < 1 + random() % 3; ++i) {
      const std::uint64_t any = random() >> random() % 64;
      switch (random() % 8) {
        case 0:
          handle.pid = static_cast<std::int32_t>(any);
          break;
        case 1:
          handle.descriptor = static_cast<std::int32_t>(any % 64) - 2;
          break;
        case 2:
          handle.device = any;
          break;
        case 3:
          handle.inode = any;
          break;
        case 4:
          handle.offset = any & ~(random() % 2 == 0 ? std::uint64_t{63} : std::uint64_t{0});
          break;
        case 5:
          handle.size = any;
          break;
        case 6:
          handle.name = std::string(random() % 4, static_cast<char>(random()));
          break;
        default:
          handle.counted = !handle.counted;
      }
    }
    try {
      const auto block = Block::open(handle, random() % 2 == 0 ? Access::kReadOnly : Access::kReadWrite);
      EXPECT_EQ(block->size(), handle.size);
      ++opened;
    } catch (const drover::Error&) {
    } catch (const std::system_error&) {
    }
  }
  std::printf("opened %d\n", opened);
  EXPECT_GT(opened, 100);
}

TEST(HostileHandle, OpensNothingButWhatItNames) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  struct stat status {};
  fstat(ends[0], &status);
  const BlockHandle pipe{.name = "",
                         .pid = getpid(),
                         .descriptor = ends[0],
                         .device = status.st_dev,
                         .inode = status.st_ino,
                         .offset = 4096,
                         .size = 10};
  EXPECT_THROW(Block::open(pipe, Access::kReadOnly), drover::Incompatible);  // at once: a FIFO could make it wait
  close(ends[0]);
  close(ends[1]);
}

// SIGBUS. The children are forks: they do not own the blocks.

TEST(TruncatedBlock, EndsItsUserWithALineThatNamesIt) {
  const auto block = make("bus", 100'000);
  EXPECT_EXIT(
      {
        if (truncate(block->path().c_str(), 8192) == 0) block->data()[700'000] = std::byte{1};
      },
      testing::KilledBySignal(SIGBUS),
      "^drover: " + block->path() +
          " was truncated by another program while it was in use, or there is no memory for it: this program cannot go "
          "on");
}

TEST(TruncatedBlock, LeavesOtherBusErrorsAsTheyAre) {
  const auto block = make("bus-other");
  const int fd = memfd_create("test", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(fd, 8192), 0);
  auto* const data = static_cast<volatile char*>(mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  EXPECT_EXIT(
      {
        if (ftruncate(fd, 0) == 0) data[5000] = 1;
      },
      testing::KilledBySignal(SIGBUS), "^$");
  EXPECT_EXIT(raise(SIGBUS), testing::KilledBySignal(SIGBUS), "^$");
  munmap(const_cast<char*>(data), 8192);
  close(fd);
}

}  // namespace
