// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "drover/health/sample.h"
#include "drover/health/scenario/scenario.h"

namespace drover::inline v1::health {

/// What a driver says about one GPU of a situation. The false driver of the tests is compiled from the same file. Pure.
GpuSample gpu_of(const World& world, const Thing& gpu);

/// Whether its vendor is NVIDIA, whose driver is asked; of the others the kernel tells.
bool is_nvidia(const Thing& gpu);
/// Of PCI: "0000:01:00.0" for GPU 0.
std::string slot_of(const Thing& gpu);

/// The driver's code for one question: what the situation sets (`code.memory_total_bytes=15`, `lost=1`), else
/// `otherwise`.
int code_of(const Thing& gpu, Metric metric, int otherwise = Reading::kOk);

}  // namespace drover::inline v1::health
