// SPDX-License-Identifier: Apache-2.0
// A library of which there are two builds.
extern "C" int drover_test_version() { return DROVER_TEST_VERSION; }
