# SPDX-License-Identifier: Apache-2.0
# drover_warnings(TARGET): the warnings that all our code is built with. -Werror comes from the presets only.
function(drover_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow)
endfunction()
