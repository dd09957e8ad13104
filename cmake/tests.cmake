# Everything CTest runs.  Nothing is listed by hand: a new file in the right folder is a new test.
#
#   tests/unit/<room>/x_test.c   a cmocka program           unit/<room>/x
#                                its CAPTURE_TESTs          captures/<room>/x
#   tests/captures/x_test.*      any executable             captures/x
#   tests/support/x.c            helpers of those programs
#   fuzz/x_fuzz.c                replays fuzz/corpus/x      fuzz/x
#   tests/torture/x.c            a program of its own       torture/x
#   tests/torture/x_test.*       any executable             torture/x
#   tests/cli/x_test.*           any executable             cli/x
#   tests/cli/cases/x.sh         see tests/cli/run.sh       cli/x
#   tests/interop/x_test.*       the same, with peers       interop/x
#   tests/interop/x.c            a program for those        build/interop_x
#   tests/browser/x_test.*       in a headless Chromium     browser/x
#   tests/browser/page/x.test.ts the page in it             browser/page_x
#   web/test/*.test.ts           the page's model           web/unit; web/types checks all TypeScript
#   tests/e2e/x_test.*           whole stories, with peers  e2e/x
#   tests/e2e/scenarios/x_test.* the same, as guides tell   e2e/x
#   tests/host/x_test.c          a cmocka program           host/x
#   tests/host/x_test.*          any executable             host/x
#   tests/host/programs/x.*      what those look at         programs/x: cmake/programs.cmake
#   tests/inproc/x_test.*        any executable             inproc/x
#   tests/inproc/programs/x.*    what those preload into    inproc/x: cmake/inproc_programs.cmake
#   tests/checks/x_test.*        checks of the sources      check/x
#
# A script finds the program in $KILN, the sources in $KILN_SOURCE_DIR, real captures, where there
# are any, in $KILN_TEST_DATA, and the build in $KILN_BUILD_DIR.  It exits with 77 to skip, having said why.
#
# Tests in tests/inproc find libkiln in $LIBKILN and their programs in $KILN_BUILD_DIR/inproc.
#
# Tests in tests/host need the real kernel and the privilege to load BPF programs into it, and skip
# where they have neither.  They run one at a time: each looks at all processors.
set(KILN_TEST_DATA "$ENV{KILN_TEST_DATA}")
if(NOT KILN_TEST_DATA)
  set(KILN_TEST_DATA ${CMAKE_SOURCE_DIR}/../shared/data)
endif()
# Those that run one at a time begin first, then those that take long: short ones fill the gaps.
set(KILN_COST_HOST 1000)
set(KILN_COST_LONG 100)
add_custom_target(unit_tests)
add_custom_target(fuzz_tests)
add_custom_target(fuzzers)
add_custom_target(torture_tests)
add_custom_target(host_tests)
add_custom_target(interop_programs)
add_custom_target(inproc_programs)
add_custom_target(tests DEPENDS unit_tests fuzz_tests torture_tests host_tests interop_programs inproc_programs)
file(REMOVE_RECURSE ${CMAKE_BINARY_DIR}/cache)
set(KILN_TEST_ENVIRONMENT CACHE_DIRECTORY=${CMAKE_BINARY_DIR}/cache KILN=${CMAKE_BINARY_DIR}/kiln KILN_SOURCE_DIR=${CMAKE_SOURCE_DIR}
  KILN_BUILD_DIR=${CMAKE_BINARY_DIR} LIBKILN=$<TARGET_FILE:kiln_inproc_shared> KILN_TEST_DATA=${KILN_TEST_DATA})

if(CMOCKA_FOUND)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}
    ${CMAKE_SOURCE_DIR}/tests/unit/*_test.c ${CMAKE_SOURCE_DIR}/tests/host/*_test.c)
  file(GLOB support CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/support/*.c)
  add_library(test_support STATIC EXCLUDE_FROM_ALL ${support})
  target_include_directories(test_support PUBLIC tests tests/support)
  target_link_libraries(test_support PUBLIC kiln_cli kiln_inproc PkgConfig::CMOCKA)
  foreach(source ${sources})
    string(REGEX REPLACE "^tests/(.*)_test\\.c$" "\\1" name ${source})
    string(REPLACE "/" "_" target ${name})
    add_executable(${target} EXCLUDE_FROM_ALL ${source} tests/test.c)
    target_compile_definitions(${target} PRIVATE KILN_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    target_link_libraries(${target} PRIVATE test_support)
    file(STRINGS ${source} kinds REGEX "^(CAPTURE_)?TEST\\(")
    if(kinds MATCHES "CAPTURE_TEST")
      string(REGEX REPLACE "^unit/" "captures/" on_captures ${name})
      add_test(NAME ${on_captures} COMMAND ${target} --captures)
      set_tests_properties(${on_captures} PROPERTIES TIMEOUT 600)
      list(FILTER kinds EXCLUDE REGEX "^CAPTURE_TEST")
      if(NOT kinds)
        add_dependencies(unit_tests ${target})
        continue()
      endif()
    endif()
    add_test(NAME ${name} COMMAND ${target})
    set_tests_properties(${name} PROPERTIES TIMEOUT 600)
    if(name MATCHES "^host/")
      add_dependencies(host_tests ${target})
      set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 RESOURCE_LOCK host COST ${KILN_COST_HOST}
        ENVIRONMENT "${KILN_TEST_ENVIRONMENT}")
    else()
      add_dependencies(unit_tests ${target})
    endif()
  endforeach()
  # With fixed seeds and small counts; tools/torture runs the same programs with large ones.
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/torture/*.c)
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    add_executable(torture_${name} EXCLUDE_FROM_ALL ${source})
    target_link_libraries(torture_${name} PRIVATE test_support)
    add_dependencies(torture_tests torture_${name})
    add_test(NAME torture/${name} COMMAND torture_${name})
    set_tests_properties(torture/${name} PROPERTIES TIMEOUT 300 ENVIRONMENT "${KILN_TEST_ENVIRONMENT}")
  endforeach()
endif()

file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/fuzz/*_fuzz.c)
# The one prototype of a fuzz target is libFuzzer's, which has no header.
set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS -Wno-missing-prototypes)
foreach(source ${sources})
  string(REGEX REPLACE "^.*/(.*)_fuzz\\.c$" "\\1" name ${source})
  set(support)
  if(name STREQUAL "round_trip") # needs a store on the disk of tests
    if(NOT TARGET test_support)
      continue()
    endif()
    set(support test_support)
  endif()
  add_executable(replay_${name} EXCLUDE_FROM_ALL ${source} fuzz/replay.c)
  target_link_libraries(replay_${name} PRIVATE ${support} kiln_cli kiln_inproc)
  add_dependencies(fuzz_tests replay_${name})
  add_test(NAME fuzz/${name} COMMAND replay_${name} ${CMAKE_SOURCE_DIR}/fuzz/corpus/${name})
  set_tests_properties(fuzz/${name} PROPERTIES TIMEOUT 300)
  if(KILN_FUZZ)
    add_executable(fuzz_${name} EXCLUDE_FROM_ALL ${source})
    target_link_libraries(fuzz_${name} PRIVATE ${support} kiln_cli kiln_inproc)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    add_dependencies(fuzzers fuzz_${name})
  endif()
endforeach()

# kiln_add_script(NAME COMMAND...): a test in the environment that scripts expect, with a TMPDIR of its own.
function(kiln_add_script name)
  add_test(NAME ${name} COMMAND ${CMAKE_SOURCE_DIR}/tests/support/own_tmp.sh ${ARGN} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600
    ENVIRONMENT "${KILN_TEST_ENVIRONMENT}")
endfunction()

# kiln_add_scripts(FOLDER PREFIX): FOLDER/x_test.*, but C programs, become PREFIX/x.
function(kiln_add_scripts folder prefix)
  file(GLOB scripts CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*_test.*)
  list(FILTER scripts EXCLUDE REGEX "\\.c$")
  foreach(script ${scripts})
    string(REGEX REPLACE "^.*/(.*)_test\\.[a-z]+$" "${prefix}/\\1" name ${script})
    kiln_add_script(${name} ${script})
    if(prefix STREQUAL "host")
      set_tests_properties(${name} PROPERTIES RESOURCE_LOCK host COST ${KILN_COST_HOST})
    elseif(NOT prefix MATCHES "^(cli|check)$")
      set_tests_properties(${name} PROPERTIES COST ${KILN_COST_LONG})
    endif()
  endforeach()
endfunction()
kiln_add_scripts(tests/cli cli)
kiln_add_scripts(tests/captures captures)
file(GLOB cases CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/cli/cases/*.sh)
foreach(case ${cases})
  get_filename_component(name ${case} NAME_WE)
  kiln_add_script(cli/${name} ${CMAKE_SOURCE_DIR}/tests/cli/run.sh ${name})
endforeach()
kiln_add_scripts(tests/interop interop)
# What tests/interop/{cfi,unwind}_test.py ask elfutils by, where that is installed.
pkg_check_modules(LIBDW IMPORTED_TARGET libdw libelf)
if(LIBDW_FOUND AND CMOCKA_FOUND)
  add_executable(cfi_peer EXCLUDE_FROM_ALL tests/interop/cfi/peer.c)
  target_link_libraries(cfi_peer PRIVATE kiln_symbol PkgConfig::LIBDW)
  add_executable(interop_unwind EXCLUDE_FROM_ALL tests/interop/unwind/unwind.c)
  target_link_libraries(interop_unwind PRIVATE test_support PkgConfig::LIBDW)
  add_dependencies(interop_programs cfi_peer interop_unwind)
endif()
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/interop/*.c)
foreach(source ${sources})
  get_filename_component(name ${source} NAME_WE)
  add_executable(interop_${name} EXCLUDE_FROM_ALL ${source})
  target_link_libraries(interop_${name} PRIVATE kiln_host)
  add_dependencies(interop_programs interop_${name})
endforeach()
kiln_add_scripts(tests/browser browser)
# Where the page is tested against a server that profiles this host, one at a time, as tests/host.
file(GLOB tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/browser/page/*.test.ts)
foreach(test ${tests})
  get_filename_component(name ${test} NAME_WE)
  kiln_add_script(browser/page_${name} ${CMAKE_SOURCE_DIR}/tests/browser/page/run.sh ${test})
  set_tests_properties(browser/page_${name} PROPERTIES COST ${KILN_COST_LONG})
  if(name MATCHES "^host")
    set_tests_properties(browser/page_${name} PROPERTIES RESOURCE_LOCK host COST ${KILN_COST_HOST})
  endif()
endforeach()
kiln_add_script(web/types ${CMAKE_SOURCE_DIR}/web/node_modules/.bin/tsc --noEmit -p web)
kiln_add_script(web/unit sh -c "exec node web/run.mjs web/test/*.test.ts")
kiln_add_scripts(tests/torture torture)
kiln_add_scripts(tests/e2e e2e)
kiln_add_scripts(tests/e2e/scenarios e2e)
kiln_add_scripts(tests/checks check)
kiln_add_scripts(tests/host host)
kiln_add_scripts(tests/inproc inproc)
include(cmake/inproc_programs.cmake)
include(cmake/programs.cmake)
