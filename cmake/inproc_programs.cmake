# The programs that tests/inproc preload libkiln into, as strangers build theirs: no sanitizer, no flag of ours.
# A new tests/inproc/programs/x.c or x.cpp becomes <build>/inproc/x; a first line /* flags: ... */ (in x.cpp too) adds
# flags, and one with -shared makes <build>/inproc/x.so.
set(inproc_from ${CMAKE_SOURCE_DIR}/tests/inproc/programs)
set(inproc_to ${CMAKE_BINARY_DIR}/inproc)
file(MAKE_DIRECTORY ${inproc_to})
file(GLOB sources CONFIGURE_DEPENDS ${inproc_from}/*.c ${inproc_from}/*.cpp)
set(inproc_made)
foreach(source ${sources})
  get_filename_component(name ${source} NAME_WE)
  file(STRINGS ${source} flags LIMIT_COUNT 1 REGEX "^/\\* flags: .* \\*/$")
  string(REGEX REPLACE "^/\\* flags: (.*) \\*/$" "\\1" flags "${flags}")
  separate_arguments(flags)
  set(compiler gcc)
  if(source MATCHES "\\.cpp$")
    set(compiler g++)
  endif()
  if("-shared" IN_LIST flags)
    string(APPEND name ".so")
    list(APPEND flags -fPIC)
  endif()
  add_custom_command(OUTPUT ${inproc_to}/${name}
    COMMAND ${compiler} -O2 -g -D_GNU_SOURCE -I${CMAKE_SOURCE_DIR}/include -o ${name} ${source} ${flags}
      -pthread -ldl -lm
    DEPENDS ${source} WORKING_DIRECTORY ${inproc_to} COMMENT "Building inproc/${name}" VERBATIM)
  list(APPEND inproc_made ${inproc_to}/${name})
endforeach()
add_custom_target(inproc_made DEPENDS ${inproc_made})
add_dependencies(inproc_programs inproc_made kiln_inproc_shared)
