# SPDX-License-Identifier: Apache-2.0
# Installs the core (for find_package(drover) and for pkg-config drover) and the program, when it is built.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/drover)
install(TARGETS drover_core EXPORT droverTargets ARCHIVE FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT droverTargets NAMESPACE drover:: DESTINATION ${config_dir})
configure_package_config_file(cmake/droverConfig.cmake.in ${PROJECT_BINARY_DIR}/droverConfig.cmake
                              INSTALL_DESTINATION ${config_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/droverConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/droverConfig.cmake ${PROJECT_BINARY_DIR}/droverConfigVersion.cmake
        DESTINATION ${config_dir})

# The .pc file finds its prefix by itself, so that the installed folder can be moved.
file(RELATIVE_PATH DROVER_PC_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" DROVER_PC_PREFIX ${DROVER_PC_PREFIX})
configure_file(cmake/drover.pc.in ${PROJECT_BINARY_DIR}/drover.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/drover.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

if(TARGET drover_cli)
  install(TARGETS drover_cli)
endif()
