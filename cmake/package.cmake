# How other programs find the library of cmake/inproc.cmake: pkg-config and find_package(kiln).
include(CMakePackageConfigHelpers)
# What libkiln.a needs beyond libc.
set(KILN_STATIC_NEEDS pthread dl m CACHE INTERNAL "")
list(TRANSFORM KILN_STATIC_NEEDS PREPEND -l OUTPUT_VARIABLE needs)
string(JOIN " " needs ${needs})
string(JOIN ";" KILN_CMAKE_LIBS_PRIVATE Threads::Threads ${KILN_STATIC_NEEDS})

# Where the prefix is decided when it is installed, as packagers do, so is what these files say.
install(CODE "
  set(PROJECT_VERSION \"${PROJECT_VERSION}\")
  set(KILN_PC_LIBDIR \"\\\${prefix}/${CMAKE_INSTALL_LIBDIR}\")
  set(KILN_PC_INCLUDEDIR \"\\\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}\")
  foreach(library \"kiln -lkiln\" \"kiln-static -l:libkiln.a ${needs}\")
    string(REGEX MATCH \"^([^ ]*) (.*)\" ignored \"\${library}\")
    set(KILN_PC_NAME \${CMAKE_MATCH_1})
    set(KILN_PC_LIBS \${CMAKE_MATCH_2})
    configure_file(\"${CMAKE_SOURCE_DIR}/packaging/kiln.pc.in\" \"${CMAKE_BINARY_DIR}/installed/\${KILN_PC_NAME}.pc\" @ONLY)
  endforeach()")
install(FILES ${CMAKE_BINARY_DIR}/installed/kiln.pc ${CMAKE_BINARY_DIR}/installed/kiln-static.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/kiln)
configure_package_config_file(packaging/kiln-config.cmake.in ${CMAKE_BINARY_DIR}/kiln-config.cmake
  INSTALL_DESTINATION ${package} PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/kiln-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/kiln-config.cmake ${CMAKE_BINARY_DIR}/kiln-config-version.cmake DESTINATION ${package})
