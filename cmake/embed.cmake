# Files that become part of the binary.
#
# kiln_embed(TARGET FILE...) compiles each file into TARGET as the two symbols
# kiln_asset_<name> (a char array that ends in NUL) and kiln_asset_<name>_len, where <name> is the
# file's name with every other character made '_': flamegraph.js -> kiln_asset_flamegraph_js.
# A file may also be one that the build makes, with its whole path.
#
# Run as a script (cmake -DIN=... -DOUT=... -DNAME=... -P embed.cmake) it writes one such source.
if(CMAKE_SCRIPT_MODE_FILE)
  file(READ "${IN}" hex HEX)
  string(REGEX REPLACE "(................................)" "\\1\n" lines "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${lines}")
  file(WRITE "${OUT}" "#include \"codec/assets.h\"\n"
    "const char kiln_asset_${NAME}[] = {\n${bytes}0};\n"
    "const size_t kiln_asset_${NAME}_len = sizeof(kiln_asset_${NAME}) - 1;\n")
  return()
endif()

function(kiln_embed target)
  foreach(file ${ARGN})
    get_filename_component(base ${file} NAME)
    string(MAKE_C_IDENTIFIER ${base} name)
    set(out ${CMAKE_CURRENT_BINARY_DIR}/assets/${name}.c)
    get_filename_component(in ${file} ABSOLUTE)
    add_custom_command(OUTPUT ${out} VERBATIM
      COMMAND ${CMAKE_COMMAND} -DIN=${in} -DOUT=${out} -DNAME=${name}
        -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
      DEPENDS ${in} ${CMAKE_SOURCE_DIR}/cmake/embed.cmake)
    target_sources(${target} PRIVATE ${out})
  endforeach()
endfunction()
