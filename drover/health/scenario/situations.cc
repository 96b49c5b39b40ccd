// SPDX-License-Identifier: Apache-2.0
#include "drover/health/scenario/situations.h"

namespace drover::inline v1::health {

std::vector<Situation> situations() {
  std::vector<Situation> all;
  for (const auto& part :
       {fault_situations(), stuck_situations(), job_situations(), rank_situations(), waiting_situations(),
        idle_situations(), memory_situations(), vendor_situations(), field_situations(), owner_situations(),
        work_situations(), name_situations(), service_situations(), beside_situations()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace drover::inline v1::health
