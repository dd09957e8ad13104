# Commit and date of the sources become part of TARGET (src/cli/build_info.h). The version is project()'s.
#
# Every build looks (tools/version), and compiles the one file that has them when it changed.
function(kiln_add_build_info target)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/build_info.c)
  add_custom_target(kiln_build_info BYPRODUCTS ${out} VERBATIM
    COMMAND ${CMAKE_SOURCE_DIR}/tools/version --source ${out} COMMENT "Looking for the commit")
  target_sources(${target} PRIVATE ${out})
  add_dependencies(${target} kiln_build_info)
endfunction()
