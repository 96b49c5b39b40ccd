// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The whole public core: everything but training and health.

#include "drover/array/shared_array.h"
#include "drover/base/count.h"
#include "drover/base/duration.h"
#include "drover/base/errors.h"
#include "drover/base/log.h"
#include "drover/pool/array_tasks.h"
#include "drover/pool/pool.h"
#include "drover/sync/barrier.h"
#include "drover/sync/condition.h"
#include "drover/sync/event.h"
#include "drover/sync/mutex.h"
#include "drover/sync/pipe.h"
#include "drover/sync/queue.h"
#include "drover/sync/semaphore.h"
#include "drover/sync/shared_mutex.h"
#include "drover/sync/shared_value.h"
#include "drover/worker/init.h"
#include "drover/worker/process.h"
