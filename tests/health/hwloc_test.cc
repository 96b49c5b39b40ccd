// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <hwloc.h>

#include <cctype>
#include <cstdlib>
#include <ostream>

#include "drover/health/probe/host_probe.h"
#include "health/cpu_tree.h"

namespace drover_test {
void PrintTo(const FakeMachine& machine, std::ostream* to) { *to << machine.name; }
}  // namespace drover_test

namespace {

using drover::health::CpuReport;
using drover_test::FakeMachine;
using drover_test::Machine;

/// The real hwloc over the same files that our probe reads.
class Hwloc {
 public:
  explicit Hwloc(const std::string& root) {
    setenv("HWLOC_FSROOT", root.c_str(), 1);
    setenv("HWLOC_THISSYSTEM", "0", 1);
    hwloc_topology_init(&topology_);
    hwloc_topology_set_flags(topology_, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    loaded_ = hwloc_topology_load(topology_) == 0;
  }
  ~Hwloc() { hwloc_topology_destroy(topology_); }
  Hwloc(const Hwloc&) = delete;
  Hwloc& operator=(const Hwloc&) = delete;

  bool loaded() const { return loaded_; }
  std::size_t count(hwloc_obj_type_t type) const {
    return static_cast<std::size_t>(hwloc_get_nbobjs_by_type(topology_, type));
  }
  std::size_t allowed() const {
    return static_cast<std::size_t>(hwloc_bitmap_weight(hwloc_topology_get_allowed_cpuset(topology_)));
  }
  int kinds() const { return hwloc_cpukinds_get_nr(topology_, 0); }
  /// Cores of a kind; the last kind is the fastest.
  std::size_t cores_of_kind(int kind) const {
    const hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
    hwloc_cpukinds_get_info(topology_, static_cast<unsigned>(kind), cpus, nullptr, nullptr, nullptr, 0);
    const int cores = hwloc_get_nbobjs_inside_cpuset_by_type(topology_, cpus, HWLOC_OBJ_CORE);
    hwloc_bitmap_free(cpus);
    return static_cast<std::size_t>(cores);
  }

 private:
  hwloc_topology_t topology_ = nullptr;
  bool loaded_ = false;
};

class EachMachine : public testing::TestWithParam<FakeMachine> {};

TEST_P(EachMachine, IsCountedAsHwlocDoes) {
  const FakeMachine& machine = GetParam();
  Machine tree;
  drover_test::write_machine(tree, machine);
  const CpuReport ours = drover::health::read_topology(tree.root());
  const Hwloc theirs(tree.root());
  ASSERT_TRUE(theirs.loaded());
  EXPECT_EQ(ours.logical, theirs.count(HWLOC_OBJ_PU));
  EXPECT_EQ(ours.physical, theirs.count(HWLOC_OBJ_CORE));
  EXPECT_EQ(ours.sockets, theirs.count(HWLOC_OBJ_PACKAGE));
  EXPECT_EQ(ours.numa_nodes, theirs.count(HWLOC_OBJ_NUMANODE));
  EXPECT_EQ(ours.allowed, theirs.allowed());
  EXPECT_EQ(ours.hyperthreading, theirs.count(HWLOC_OBJ_PU) > theirs.count(HWLOC_OBJ_CORE));
  if (theirs.kinds() > 1) {
    EXPECT_EQ(ours.performance_cores, theirs.cores_of_kind(theirs.kinds() - 1));
    EXPECT_EQ(ours.performance_cores + ours.efficiency_cores, theirs.count(HWLOC_OBJ_CORE));
  } else {
    EXPECT_EQ(ours.performance_cores, 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(Synthetic, EachMachine, testing::ValuesIn(drover_test::fake_machines()), [](const auto& one) {
  std::string name = one.param.name;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
});

TEST(Machines, AreOfAllKinds) { EXPECT_GE(drover_test::fake_machines().size(), 12U); }

TEST(ThisMachine, IsCountedAsHwlocDoes) {
  unsetenv("HWLOC_FSROOT");
  unsetenv("HWLOC_THISSYSTEM");
  setenv("HWLOC_HIDE_ERRORS", "2", 1);  // some VMs' CPUID contradicts itself about caches
  hwloc_topology_t topology = nullptr;
  hwloc_topology_init(&topology);
  hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  ASSERT_EQ(hwloc_topology_load(topology), 0);
  const CpuReport ours = drover::health::read_topology("");
  EXPECT_EQ(ours.logical, static_cast<std::size_t>(hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU)));
  EXPECT_EQ(ours.physical, static_cast<std::size_t>(hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE)));
  hwloc_topology_destroy(topology);
}

}  // namespace
