// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The whole public core: everything but training and health.

#include "drover/base/count.h"
#include "drover/base/duration.h"
#include "drover/base/errors.h"
#include "drover/base/log.h"
#include "drover/pool/pool.h"
#include "drover/worker/init.h"
#include "drover/worker/process.h"
