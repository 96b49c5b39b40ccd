// SPDX-License-Identifier: Apache-2.0
// What a small /dev/shm does to blocks: a mount namespace with a tmpfs of 64 MB there.
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "harness/deadline.h"
#include "harness/read_all.h"
#include "harness/subprocess.h"

namespace drover_test {
namespace {

Outcome run_with_small_folder(const std::string& what) {
  const std::string script = "mount -t tmpfs -o size=64m none /dev/shm && exec \"$0\" " + what + " limits";
  return run({.program = "/usr/bin/unshare", .arguments = {"-m", "/bin/sh", "-c", script, DROVER_NAMES_SCENARIO}});
}

bool can_mount() { return run_with_small_folder("make-and-drop").exit_code == 0; }

TEST(SmallFolder, RefusesALargeBlockAtOnceWithNumbers) {
  if (!can_mount()) GTEST_SKIP() << "this user cannot mount a tmpfs in a namespace of its own";
  const Outcome outcome = run_with_small_folder("too-large");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "cannot make /dev/shm/limits: not enough memory for 800010240 bytes of shared memory: 67108864 bytes are "
            "available to this process "
            "(/dev/shm is that small: remount it with a larger size, or start the container with a larger "
            "--shm-size)\nin time\n");
}

TEST(SmallFolder, IsFilledToItsEndAndNotBeyond) {
  if (!can_mount()) GTEST_SKIP() << "this user cannot mount a tmpfs in a namespace of its own";
  const Outcome outcome = run_with_small_folder("fill");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "full\nall written\nroom again\n");
}

TEST(SmallFolder, MemoryThatIsThereAlreadyNeedsNoRoom) {
  if (!can_mount()) GTEST_SKIP() << "this user cannot mount a tmpfs in a namespace of its own";
  const Outcome outcome = run_with_small_folder("attach-filled");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "attached\nno room\n");
}

TEST(SmallFolder, HolesForWhichThereIsNoRoomAreRefusedToReadersToo) {
  if (!can_mount()) GTEST_SKIP() << "this user cannot mount a tmpfs in a namespace of its own";
  const Outcome outcome = run_with_small_folder("attach-sparse");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "no room\n");
}

TEST(LimitOfFileSize, DoesNotKeepFromAttachingWhatIsThere) {
  const std::string path = "/dev/shm/names-limits-large";
  std::ofstream(path) << std::string(1 << 20, 'x');
  const Outcome outcome =
      run({.program = "/bin/sh",
           .arguments = {"-c", "ulimit -f 20; exec \"$0\" attach-large names-limits-large", DROVER_NAMES_SCENARIO}});
  unlink(path.c_str());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "1048576\n");
}

TEST(LimitOfFileSize, IsAnErrorAndNoSignal) {
  const Outcome outcome =
      run({.program = "/bin/sh",
           .arguments = {"-c", "ulimit -f 20; exec \"$0\" file-too-large limits", DROVER_NAMES_SCENARIO}});
  EXPECT_EQ(outcome.signal, 0);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "refused\nrefused\nrefused\nrefused\nrefused\nmade\n");
}

/// All inotify instances that this user may have; fewer when this process has too few descriptors.
class NoInotify {
 public:
  NoInotify() {
    for (int fd = 0; (fd = inotify_init1(IN_CLOEXEC)) >= 0;) instances_.push_back(fd);
    used_up_ = errno == EMFILE && instances_.size() < 900;  // of 1024 descriptors
  }
  ~NoInotify() {
    for (const int fd : instances_) close(fd);
  }
  NoInotify(const NoInotify&) = delete;
  NoInotify& operator=(const NoInotify&) = delete;
  bool used_up() const noexcept { return used_up_; }

 private:
  std::vector<int> instances_;
  bool used_up_ = false;
};

/// Whether the guardian of that process has an instance of inotify.
bool is_watched(pid_t owner) {
  namespace fs = std::filesystem;
  const std::string parent = "PPid:\t" + std::to_string(owner) + "\n";
  std::error_code error;
  for (fs::directory_iterator it("/proc", error), end; !error && it != end; it.increment(error)) {
    if (!read_all(it->path() / "cmdline").starts_with("drover-guardian")) continue;
    if (read_all(it->path() / "status").find(parent) == std::string::npos) continue;
    for (int fd = 0; fd < 10; ++fd) {
      const fs::path link = fs::read_symlink(it->path() / "fd" / std::to_string(fd), error);
      if (!error && link == "anon_inode:inotify") return true;
    }
    return false;
  }
  return false;
}

/// As Python's resource tracker does.
TEST(Names, ComeBackAlsoWhereThereIsNoInotify) {
  std::optional<NoInotify> none(std::in_place);
  if (!none->used_up()) GTEST_SKIP() << "there are more inotify instances than descriptors";
  const std::string path = "/dev/shm/names-limits";
  Subprocess owner({.program = DROVER_NAMES_SCENARIO, .arguments = {"hold", "names-limits"}});
  ASSERT_TRUE(owner.wait_for_output("made"));
  const auto comes_back = [&path] {
    return unlink(path.c_str()) == 0 &&
           eventually(std::chrono::seconds(5), [&] { return access(path.c_str(), F_OK) == 0; });
  };
  EXPECT_TRUE(comes_back());
  EXPECT_FALSE(is_watched(owner.pid()));
  none.reset();  // now it may watch
  EXPECT_TRUE(eventually(std::chrono::seconds(5), [&] { return is_watched(owner.pid()); }));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(comes_back());
  owner.send(SIGKILL);
  static_cast<void>(owner.finish());
  EXPECT_TRUE(eventually(std::chrono::seconds(5), [&] { return access(path.c_str(), F_OK) != 0; }));
}

TEST(TruncatedBlock, PassesTheSignalOnToTheHandlerThatWasThereBefore) {
  const Outcome outcome = run({.program = DROVER_NAMES_SCENARIO, .arguments = {"truncated", "limits"}});
  EXPECT_EQ(outcome.exit_code, 77) << outcome.err;
  EXPECT_EQ(outcome.out, "earlier handler\n");
  EXPECT_EQ(outcome.err,
            "drover: /dev/shm/limits was truncated by another program while it was in use, or there is no memory for "
            "it: this program cannot go on\n");
}

}  // namespace
}  // namespace drover_test
