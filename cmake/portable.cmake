# Toolchain of the portable tarball: compiles against $KILN_SYSROOT (tools/sysroot), which has an old C library and
# otherwise static libraries alone.
if("$ENV{KILN_SYSROOT}" STREQUAL "" OR NOT EXISTS "$ENV{KILN_SYSROOT}/usr/include")
  message(FATAL_ERROR "KILN_SYSROOT names no root to compile against; tools/sysroot makes one")
endif()
set(CMAKE_SYSROOT $ENV{KILN_SYSROOT})
# Debian's gcc looks for libraries beside itself before it looks into a sysroot.
set(CMAKE_C_FLAGS_INIT -B${CMAKE_SYSROOT}/usr/lib/x86_64-linux-gnu/)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${CMAKE_SYSROOT}/usr/lib/x86_64-linux-gnu/pkgconfig)
set(PKG_CONFIG_ARGN --static)
