# The programs of known truth that walkers and profilers are tested on: tests/host/programs/README.md.
# Built into <build>/programs as strangers build theirs, with their own compilers and flags; one
# whose compiler is missing is not there, and its tests skip.  A new x.c or x.cpp becomes programs/x;
# what wants flags of its own is named below.
set(KILN_PROGRAMS_DIR ${CMAKE_BINARY_DIR}/programs)
set(programs_from ${CMAKE_SOURCE_DIR}/tests/host/programs)
set(programs_made)
find_program(KILN_GCC gcc)
find_program(KILN_GXX g++)
find_program(KILN_RUSTC rustc)
find_program(KILN_GO go)
find_program(KILN_OBJCOPY objcopy)
find_program(KILN_STRIP strip)
find_program(KILN_XZ xz)
find_program(KILN_NM nm)

# kiln_program(NAME SOURCE COMMAND...): NAME is made of SOURCE by COMMAND.
function(kiln_program name source)
  add_custom_command(OUTPUT ${KILN_PROGRAMS_DIR}/${name}
    COMMAND ${ARGN}
    DEPENDS ${source} ${programs_from}/burn.h WORKING_DIRECTORY ${KILN_PROGRAMS_DIR}
    COMMENT "Building program ${name}" VERBATIM)
  set(programs_made ${programs_made} ${KILN_PROGRAMS_DIR}/${name} PARENT_SCOPE)
endfunction()
set(optimized -O2 -D_GNU_SOURCE -g0 -fomit-frame-pointer -fno-optimize-sibling-calls)

if(KILN_GCC)
  file(MAKE_DIRECTORY ${KILN_PROGRAMS_DIR})
  set(gcc ${KILN_GCC} ${optimized})
  file(GLOB sources CONFIGURE_DEPENDS RELATIVE ${programs_from} ${programs_from}/*.c)
  list(REMOVE_ITEM sources tail.c stubs.c tiny.c inlined.c spans.c burning.c)
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    kiln_program(${name} ${programs_from}/${source}
      ${gcc} -o ${name} ${programs_from}/${source} -pthread -lm -ldl)
  endforeach()
  kiln_program(tail ${programs_from}/tail.c
    ${KILN_GCC} -O2 -D_GNU_SOURCE -g0 -fomit-frame-pointer -o tail ${programs_from}/tail.c)
  kiln_program(chain-static ${programs_from}/chain.c
    ${gcc} -static -o chain-static ${programs_from}/chain.c)
  kiln_program(chain-no-pie ${programs_from}/chain.c
    ${gcc} -no-pie -fno-pie -o chain-no-pie ${programs_from}/chain.c)
  kiln_program(chain-stripped ${programs_from}/chain.c
    ${gcc} -s -o chain-stripped ${programs_from}/chain.c)
  kiln_program(chain-fp ${programs_from}/chain.c
    ${KILN_GCC} -O2 -D_GNU_SOURCE -g0 -fno-omit-frame-pointer -fno-asynchronous-unwind-tables
    -fno-optimize-sibling-calls -o chain-fp ${programs_from}/chain.c)
  kiln_program(inlined ${programs_from}/inlined.c
    ${KILN_GCC} -O2 -D_GNU_SOURCE -g -static -Wl,--build-id -o inlined ${programs_from}/inlined.c)
  kiln_program(libtiny.so ${programs_from}/tiny.c
    ${gcc} -shared -fPIC -o libtiny.so ${programs_from}/tiny.c)
  kiln_program(libburning.so ${programs_from}/burning.c
    ${gcc} -shared -fPIC -o libburning.so ${programs_from}/burning.c)
  kiln_program(stubs ${programs_from}/stubs.c
    ${gcc} -o stubs ${programs_from}/stubs.c libtiny.so -Wl,-z,lazy -Wl,-rpath,$ORIGIN)
  add_custom_command(OUTPUT ${KILN_PROGRAMS_DIR}/stubs DEPENDS ${KILN_PROGRAMS_DIR}/libtiny.so APPEND)
endif()
if(KILN_GCC AND KILN_OBJCOPY AND KILN_XZ AND KILN_NM AND KILN_STRIP)
  kiln_program(chain-minidebug ${programs_from}/minidebug.sh
    ${programs_from}/minidebug.sh chain chain-minidebug)
  add_custom_command(OUTPUT ${KILN_PROGRAMS_DIR}/chain-minidebug
    DEPENDS ${KILN_PROGRAMS_DIR}/chain APPEND)
endif()
# spans-x: the library of include/kiln.h in each way that a program can have it.
set(inproc ${CMAKE_SOURCE_DIR}/src/inproc/context.c ${CMAKE_SOURCE_DIR}/src/inproc/span.c)
# kiln_spans(NAME COMMAND...): COMMAND makes NAME of spans.c and the sources of the library.
function(kiln_spans name)
  kiln_program(${name} ${programs_from}/spans.c ${ARGN})
  add_custom_command(OUTPUT ${KILN_PROGRAMS_DIR}/${name} DEPENDS ${inproc} ${CMAKE_SOURCE_DIR}/include/kiln.h APPEND)
  set(programs_made ${programs_made} PARENT_SCOPE)
endfunction()
function(kiln_spans_loaded name library)
  kiln_spans(${name} ${spans} -o ${name} ${programs_from}/spans.c -DLOADED="${KILN_PROGRAMS_DIR}/${library}" -pthread -ldl)
  set(programs_made ${programs_made} PARENT_SCOPE)
endfunction()
if(KILN_GCC)
  set(spans ${KILN_GCC} ${optimized} -I${CMAKE_SOURCE_DIR}/include)
  set(spans_so ${spans} -shared -fPIC -fvisibility=hidden ${inproc} -pthread)
  kiln_spans(libspans-desc.so ${spans_so} -mtls-dialect=gnu2 -o libspans-desc.so)
  kiln_spans(libspans-pair.so ${spans_so} -mtls-dialect=gnu -o libspans-pair.so)
  kiln_spans(libspans-offset.so ${spans_so} -ftls-model=initial-exec -o libspans-offset.so)
  foreach(way desc pair offset)
    kiln_spans(spans-${way} ${spans} -o spans-${way} ${programs_from}/spans.c -pthread -L. -lspans-${way} -Wl,-rpath,$ORIGIN)
    add_custom_command(OUTPUT ${KILN_PROGRAMS_DIR}/spans-${way} DEPENDS ${KILN_PROGRAMS_DIR}/libspans-${way}.so APPEND)
    kiln_spans_loaded(spans-${way}-loaded libspans-${way}.so)
  endforeach()
  kiln_spans(spans-stripped ${spans} -s -rdynamic -o spans-stripped ${programs_from}/spans.c ${inproc} -pthread)
  kiln_spans(spans-static ${spans} -static -o spans-static ${programs_from}/spans.c ${inproc} -pthread)
  kiln_spans(spans-static-pie ${spans} -static-pie -fPIE -o spans-static-pie ${programs_from}/spans.c ${inproc} -pthread)
endif()
find_program(KILN_MUSL_GCC musl-gcc)
if(KILN_MUSL_GCC)
  set(musl ${KILN_MUSL_GCC} ${optimized} -I${CMAKE_SOURCE_DIR}/include)
  kiln_spans(spans-musl-static ${musl} -static -o spans-musl-static ${programs_from}/spans.c ${inproc})
  kiln_spans(libspans-musl.so ${musl} -shared -fPIC -fvisibility=hidden ${inproc} -mtls-dialect=gnu2 -o libspans-musl.so)
  kiln_spans(libspans-musl-pair.so ${musl} -shared -fPIC -fvisibility=hidden ${inproc} -o libspans-musl-pair.so)
  foreach(way musl musl-pair)
    kiln_spans(spans-${way}-loaded ${musl} -o spans-${way}-loaded ${programs_from}/spans.c
      -DLOADED="${KILN_PROGRAMS_DIR}/libspans-${way}.so")
  endforeach()
endif()
if(KILN_GXX)
  file(GLOB sources CONFIGURE_DEPENDS ${programs_from}/*.cpp)
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    kiln_program(${name} ${source} ${KILN_GXX} ${optimized} -std=c++17 -o ${name} ${source} -pthread)
  endforeach()
endif()
if(KILN_RUSTC)
  kiln_program(rusty ${programs_from}/rusty.rs ${KILN_RUSTC} --edition 2021 -O -o rusty
    ${programs_from}/rusty.rs)
endif()
if(KILN_GO)
  set(go ${CMAKE_COMMAND} -E env GO111MODULE=off GOFLAGS= GOTOOLCHAIN=local)
  kiln_program(going ${programs_from}/going.go
    ${go} CGO_ENABLED=0 ${KILN_GO} build -o going ${programs_from}/going.go)
  kiln_program(inlining ${programs_from}/inlining.go
    ${go} CGO_ENABLED=0 ${KILN_GO} build -ldflags=-s -o inlining ${programs_from}/inlining.go)
  kiln_program(cgoing ${programs_from}/cgoing.go
    ${go} CGO_ENABLED=1 ${KILN_GO} build -o cgoing ${programs_from}/cgoing.go)
endif()
add_custom_target(programs DEPENDS ${programs_made})
add_dependencies(host_tests programs)
