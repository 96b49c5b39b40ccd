// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Everything that makes values travel: wire::encode, wire::decode, and the codecs of all types known by themselves.

#include "drover/wire/archive.h"
#include "drover/wire/codec_containers.h"
#include "drover/wire/codec_std.h"
#include "drover/wire/codec_values.h"
