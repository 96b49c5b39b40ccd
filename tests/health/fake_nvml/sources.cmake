# SPDX-License-Identifier: Apache-2.0
# What the false driver is made of, for the tests and for the benchmark: it plays situations by the inspector's own reader of them.
set(FAKE_NVML_SOURCES
    ${PROJECT_SOURCE_DIR}/tests/health/fake_nvml/driver.cc ${PROJECT_SOURCE_DIR}/tests/health/fake_nvml/functions.cc
    ${PROJECT_SOURCE_DIR}/drover/base/errors.cc ${PROJECT_SOURCE_DIR}/drover/health/sample.cc
    ${PROJECT_SOURCE_DIR}/drover/health/drm/processes.cc ${PROJECT_SOURCE_DIR}/drover/health/nvml/instance_use.cc
    ${PROJECT_SOURCE_DIR}/drover/health/scenario/scenario.cc ${PROJECT_SOURCE_DIR}/drover/health/scenario/scenario_gpu.cc)
