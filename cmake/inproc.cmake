# The library that programs link to tell of themselves (include/kiln.h): libkiln.so and libkiln.a, on libc alone.
# What is exported: functions of the header, and the variable that agents look for.
include(CheckCCompilerFlag)
file(GLOB INPROC_SOURCES CONFIGURE_DEPENDS src/inproc/*.c)
check_c_compiler_flag(-mtls-dialect=gnu2 KILN_HAS_TLS_DESCRIPTORS)
find_package(Threads REQUIRED)

add_library(kiln_inproc STATIC ${INPROC_SOURCES})
add_library(kiln_inproc_shared SHARED ${INPROC_SOURCES})
foreach(library kiln_inproc kiln_inproc_shared)
  set_target_properties(${library} PROPERTIES OUTPUT_NAME kiln POSITION_INDEPENDENT_CODE ON)
  target_include_directories(${library} PUBLIC include)
  target_link_libraries(${library} PRIVATE kiln_options Threads::Threads)
  if(KILN_HAS_TLS_DESCRIPTORS)
    target_compile_options(${library} PRIVATE -mtls-dialect=gnu2)
  endif()
endforeach()
set_target_properties(kiln_inproc_shared PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0)
# Programs that load it have no sanitizer of their own.
target_compile_options(kiln_inproc_shared PRIVATE -fno-sanitize=all)
target_link_options(kiln_inproc_shared PRIVATE -fno-sanitize=all -Wl,-z,defs)

install(TARGETS kiln_inproc kiln_inproc_shared
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES include/kiln.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
