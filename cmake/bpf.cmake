# Programs that run in the kernel.
#
# kiln_add_bpf(TARGET SOURCE...) compiles each x.bpf.c with clang for BPF and embeds the object into
# TARGET as kiln_asset_x_bpf_o (cmake/embed.cmake).
find_program(KILN_BPF_CLANG clang REQUIRED)

function(kiln_add_bpf target)
  set(sysroot)
  if(CMAKE_SYSROOT)
    set(sysroot --sysroot=${CMAKE_SYSROOT} -ffile-prefix-map=${CMAKE_SYSROOT}/=/)
  endif()
  foreach(source ${ARGN})
    get_filename_component(base ${source} NAME_WLE)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/bpf/${base}.o)
    file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/bpf)
    # -mcpu=v3: what the oldest kernel that we run on has.  The headers of the C library's own
    # architecture are not found for BPF by themselves.
    add_custom_command(OUTPUT ${object} VERBATIM
      COMMAND ${KILN_BPF_CLANG} -target bpf -mcpu=v3 -O2 -g -std=gnu17
        -ffile-prefix-map=${CMAKE_SOURCE_DIR}/= ${sysroot} -Wall -Wextra -Wno-unused-parameter
        -Wno-gnu-variable-sized-type-not-at-end -I${CMAKE_SOURCE_DIR}/src
        -I${CMAKE_SYSROOT}/usr/include/${CMAKE_LIBRARY_ARCHITECTURE} -MD -MF ${object}.d
        -c ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${object}
      DEPENDS ${source} DEPFILE ${object}.d)
    kiln_embed(${target} ${object})
  endforeach()
endfunction()
