# SPDX-License-Identifier: Apache-2.0
# drover_warnings(TARGET): the warnings that all our code is built with. -Werror comes from the presets only.
function(drover_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow)
  # GCC 12 takes "text" + std::string for an overlapping copy (its bug 105329), when it optimises.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${target} PRIVATE -Wno-restrict)
  endif()
endfunction()
