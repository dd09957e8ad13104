# The page, web/, becomes part of TARGET: esbuild makes a few files of it, and a C source of those.
#
# npm brings esbuild and the two libraries of the page, by web/package-lock.json alone, into
# web/node_modules; no script of theirs is run.
function(kiln_add_page target)
  set(web ${CMAKE_SOURCE_DIR}/web)
  set(modules ${web}/node_modules/.package-lock.json)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/web)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${web}/src/*)
  find_program(NPM npm REQUIRED)
  find_program(NODE NAMES node nodejs REQUIRED)

  # Builds beside this one use the same folder: one at a time.
  add_custom_command(OUTPUT ${modules} VERBATIM WORKING_DIRECTORY ${web}
    COMMAND flock ${CMAKE_SOURCE_DIR}/web/package.json ${NPM} ci --ignore-scripts --silent
    COMMAND ${CMAKE_COMMAND} -E touch ${modules}
    DEPENDS ${web}/package-lock.json COMMENT "Installing the page's tools")
  add_executable(kiln_pack ${web}/pack.c)
  target_link_libraries(kiln_pack PRIVATE deflate)
  add_custom_command(OUTPUT ${out}/page_files.c VERBATIM
    COMMAND ${NODE} ${web}/build.mjs ${out} $<TARGET_FILE:kiln_pack>
    DEPENDS kiln_pack ${modules} ${web}/build.mjs ${web}/index.html ${sources} COMMENT "Building the page")
  target_sources(${target} PRIVATE ${out}/page_files.c)
endfunction()
