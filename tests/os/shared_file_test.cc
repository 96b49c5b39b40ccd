// SPDX-License-Identifier: Apache-2.0
#include "drover/os/shared_file.h"

#include <gtest/gtest.h>
#include <sys/sysmacros.h>

#include <algorithm>

#include "drover/os/file_system.h"
#include "drover/os/mapping.h"
#include "drover/os/memory_file.h"

namespace {

using drover::os::FileId;
using drover::os::mapped_files;

}  // namespace

TEST(MappedFiles, EachFileOnce) {
  const auto files = mapped_files(
      "7f00-7f10 r--p 00000000 08:01 131 /usr/lib/a b.so\n"
      "7f10-7f20 r-xp 00001000 08:01 131 /usr/lib/a b.so\n"
      "7f20-7f30 rw-p 00000000 00:00 0 \n"
      "7f30-7f40 rw-s 00000000 103:1a 4294967297 /dev/shm/matrix (deleted)\n"
      "7ffd-7ffe rw-p 00000000 00:00 0 [stack]\n");
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0], (FileId{makedev(8, 1), 131}));
  EXPECT_EQ(files[1], (FileId{makedev(0x103, 0x1a), 4294967297}));
}

TEST(MappedFiles, BrokenLinesAreLeftOut) {
  for (const char* text : {"", "\n\n", "x", "1 2 3", "1 2 3 08", "1 2 3 08: 7", "1 2 3 08:01", "1 2 3 zz:01 7 /a",
                           "1 2 3 08:01x 7 /a", "1 2 3 08:01 seven /a", "1 2 3 fffffffffffff:01 7 /a"}) {
    EXPECT_TRUE(mapped_files(text).empty()) << text;
  }
}

TEST(MappedFiles, FindsWhatThisProcessHasMapped) {
  const auto file = drover::os::MemoryFile::create("drover-test");
  file.grow_to(4096);
  const FileId id = drover::os::file_status(file.fd()).id;
  const auto is_mapped = [&] {
    const auto files = mapped_files(drover::os::read_small_file("/proc/self/maps").value());
    return std::count(files.begin(), files.end(), id) == 1;
  };
  EXPECT_FALSE(is_mapped());
  const drover::os::Mapping mapping(file, 0, 4096);
  EXPECT_TRUE(is_mapped());
}
