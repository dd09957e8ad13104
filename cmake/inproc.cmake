# The library that profiles programs from inside (include/kiln.h): libkiln.so to preload or link, libkiln.a to link.
# Both hold the rooms they stand on, and nghttp2, libdeflate and the like, with hidden symbols, and need libc alone.
# What is exported: functions of the header, the hooks, and the variable that agents look for.
#
# kiln_inproc is the same without the hooks, for tests: with sanitizers, and the allocator stays who it is.
include(CheckCCompilerFlag)
file(GLOB_RECURSE INPROC_SOURCES CONFIGURE_DEPENDS src/inproc/*.c)
set(INPROC_TEST_SOURCES ${INPROC_SOURCES})
list(FILTER INPROC_TEST_SOURCES EXCLUDE REGEX "/inproc/(hook/|preload)")
file(GLOB next CONFIGURE_DEPENDS src/inproc/hook/next*.c)
list(APPEND INPROC_TEST_SOURCES ${next})
check_c_compiler_flag(-mtls-dialect=gnu2 KILN_HAS_TLS_DESCRIPTORS)
find_package(Threads REQUIRED)

# Programs that load it have no sanitizer of their own, so that the rooms are needed once more without.
set(INPROC_ROOMS kiln_symbol kiln_core)
if(KILN_SANITIZE OR KILN_FUZZ)
  set(INPROC_ROOMS kiln_symbol_plain kiln_core_plain)
  add_library(kiln_core_plain STATIC ${KILN_SOURCES})
  kiln_embed(kiln_core_plain src/codec/assets/palette.css src/codec/assets/flamegraph.css
    src/codec/assets/flamegraph.js src/codec/assets/callgraph.css src/codec/assets/callgraph.js)
  add_library(kiln_symbol_plain STATIC ${SYMBOL_SOURCES})
  foreach(room ${INPROC_ROOMS})
    target_include_directories(${room} PUBLIC src)
    target_link_libraries(${room} PRIVATE kiln_plain_options)
    target_compile_options(${room} PRIVATE -ffunction-sections -fdata-sections)
    set_target_properties(${room} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  endforeach()
endif()

function(kiln_inproc_library library)
  set_target_properties(${library} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_include_directories(${library} PUBLIC include PRIVATE src)
  target_compile_options(${library} PRIVATE -fno-omit-frame-pointer -ffunction-sections -fdata-sections)
  if(KILN_HAS_TLS_DESCRIPTORS)
    target_compile_options(${library} PRIVATE -mtls-dialect=gnu2)
  endif()
endfunction()

add_library(kiln_inproc STATIC ${INPROC_TEST_SOURCES})
kiln_inproc_library(kiln_inproc)
target_link_libraries(kiln_inproc PUBLIC kiln_symbol kiln_core PkgConfig::SERVER_DEPS Threads::Threads ${CMAKE_DL_LIBS})

list(REMOVE_ITEM INPROC_SOURCES ${CMAKE_SOURCE_DIR}/src/inproc/preload.c ${CMAKE_SOURCE_DIR}/src/inproc/hook/operators.c)
# Hooks that try for a lock call on, where others jump: a frame of theirs is a nanosecond (bench/inproc/lock.py).
set_source_files_properties(src/inproc/hook/rwlock.c src/inproc/hook/wait_thread.c PROPERTIES COMPILE_OPTIONS -fomit-frame-pointer)
add_library(kiln_inproc_objects OBJECT ${INPROC_SOURCES})
kiln_inproc_library(kiln_inproc_objects)
target_link_libraries(kiln_inproc_objects PRIVATE kiln_plain_options kiln_fortify)

# Only a preload has a constructor, and it comes last: those of the rooms have run when it starts them.
add_library(kiln_inproc_constructor OBJECT src/inproc/preload.c)
kiln_inproc_library(kiln_inproc_constructor)
target_link_libraries(kiln_inproc_constructor PRIVATE kiln_plain_options kiln_fortify)
set(INPROC_ARCHIVES)
foreach(room ${INPROC_ROOMS})
  list(APPEND INPROC_ARCHIVES $<TARGET_FILE:${room}>)
endforeach()
# nghttp2's archive refers to stderr (a table's statistics, which nobody prints) as only programs may: it gets another name.
find_library(NGHTTP2_ARCHIVE NAMES libnghttp2.a REQUIRED)
add_custom_command(OUTPUT libnghttp2_inproc.a
  COMMAND ${CMAKE_OBJCOPY} --redefine-sym stderr=kiln_in_no_stream ${NGHTTP2_ARCHIVE} libnghttp2_inproc.a
  DEPENDS ${NGHTTP2_ARCHIVE} VERBATIM COMMENT "Adapting libnghttp2.a")
add_custom_target(kiln_inproc_nghttp2 DEPENDS libnghttp2_inproc.a)
set(INPROC_OTHERS ${CMAKE_BINARY_DIR}/libnghttp2_inproc.a -ldeflate -lzstd -llzma -lz -liberty)
# libkiln has memory of its own: src/inproc/hook/own.c.
set(INPROC_OWN)
foreach(name malloc calloc realloc free malloc_usable_size qsort qsort_r strerror)
  list(APPEND INPROC_OWN -Wl,--wrap=${name})
endforeach()
# The version of the ABI, which is not that of Kiln: programs that are linked with libkiln.so name it.
set(KILN_SOVERSION 0)
function(kiln_inproc_preload library)
  add_library(${library} SHARED ${ARGN} $<TARGET_OBJECTS:kiln_inproc_objects>)
  kiln_inproc_library(${library})
  set_target_properties(${library} PROPERTIES OUTPUT_NAME kiln VERSION ${PROJECT_VERSION} SOVERSION ${KILN_SOVERSION}
    LINKER_LANGUAGE C)
  # Our own calls stay ours wherever it is loaded (src/inproc/hook/next_find.h): by name alone they would find the oldest in libc.
  target_link_options(${library} PRIVATE -Wl,-z,defs -Wl,-z,now -Wl,-z,nodelete -Wl,-Bsymbolic-functions
    -Wl,--gc-sections -Wl,--exclude-libs,ALL -Wl,--as-needed ${INPROC_OWN})
  target_link_libraries(${library} PRIVATE kiln_plain_options kiln_fortify ${INPROC_ARCHIVES} -Wl,-Bstatic ${INPROC_OTHERS} -Wl,-Bdynamic
    $<TARGET_OBJECTS:kiln_inproc_constructor> m Threads::Threads ${CMAKE_DL_LIBS})
  add_dependencies(${library} ${INPROC_ROOMS} kiln_inproc_nghttp2)
endfunction()
kiln_inproc_preload(kiln_inproc_shared)

# new/libkiln.so: the same with operators new and delete, for C++ programs whose allocator has its own (jemalloc, tcmalloc).
kiln_inproc_preload(kiln_inproc_new src/inproc/hook/operators.c)
set_target_properties(kiln_inproc_new PROPERTIES LIBRARY_OUTPUT_DIRECTORY new)

# libkiln.a: what is needed of all that, as one object; only what libkiln.so exports has a name in it.
add_custom_command(OUTPUT libkiln.a
  COMMAND ${CMAKE_SOURCE_DIR}/cmake/join.sh $<TARGET_FILE:kiln_inproc_shared> libkiln.a
    ${CMAKE_C_COMPILER} -nostdlib -r ${INPROC_OWN} -o kiln.o $<TARGET_OBJECTS:kiln_inproc_objects> ${INPROC_ARCHIVES}
    -Wl,-Bstatic ${INPROC_OTHERS}
  DEPENDS $<TARGET_OBJECTS:kiln_inproc_objects> ${INPROC_ROOMS} kiln_inproc_shared ${CMAKE_SOURCE_DIR}/cmake/join.sh
  COMMAND_EXPAND_LISTS VERBATIM COMMENT "Joining libkiln.a")
add_custom_target(kiln_inproc_archive ALL DEPENDS libkiln.a)

# libkiln-context.a: spans and who the process is, alone, on any libc, for static executables.
add_library(kiln_context STATIC src/inproc/context.c src/inproc/span.c)
kiln_inproc_library(kiln_context)
target_link_libraries(kiln_context PRIVATE kiln_plain_options)
target_compile_options(kiln_context PRIVATE -U_FORTIFY_SOURCE) # other libcs lack glibc's __memcpy_chk and the like
set_target_properties(kiln_context PROPERTIES OUTPUT_NAME kiln-context)
install(TARGETS kiln_context ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})

install(TARGETS kiln_inproc_shared
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS kiln_inproc_new LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/kiln/new)
install(FILES ${CMAKE_BINARY_DIR}/libkiln.a DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES include/kiln.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
