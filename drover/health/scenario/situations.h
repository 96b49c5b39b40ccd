// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "drover/health/scenario/scenario.h"

namespace drover::inline v1::health {

// The shipped situations, a family a file: what they are about and nothing else that is wrong. In each family those
// that must lead to a finding come first.
std::vector<Situation> fault_situations();    // R1
std::vector<Situation> stuck_situations();    // R2, R3, R4
std::vector<Situation> job_situations();      // R5, R6, R7
std::vector<Situation> rank_situations();     // R5, R6: jobs beside others, in containers and units, waiting for a peer
std::vector<Situation> waiting_situations();  // R7, R8: the same, and notebooks' terminals and servers' names
std::vector<Situation> idle_situations();     // R8
std::vector<Situation> memory_situations();   // R9, G0
std::vector<Situation> vendor_situations();   // AMD's and Intel's GPUs
std::vector<Situation> field_situations();    // of all rules: what real machines do beside
std::vector<Situation> owner_situations();    // R5 to R8: whose a process is, and what works for it
std::vector<Situation> work_situations();     // of all rules: what is at work beside, and must not be ended
std::vector<Situation> name_situations();     // R5 to R8: what a process is, by its name and its ports
std::vector<Situation> service_situations();  // of all rules: what waits for requests or work, and who works beside
std::vector<Situation> beside_situations();   // of all rules: what would end with it, or is what it waits for

}  // namespace drover::inline v1::health
