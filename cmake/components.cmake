# What the programs are made of, of the files that the linker reads (tools/components): an SBOM and licence notices,
# installed with them.
function(kiln_record_link target name)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/link)
  target_link_options(${target} PRIVATE LINKER:--dependency-file=${CMAKE_BINARY_DIR}/link/${name}.d)
endfunction()

kiln_record_link(kiln kiln)
kiln_record_link(kiln_inproc_shared libkiln)
file(WRITE ${CMAKE_BINARY_DIR}/link/nghttp2 "${NGHTTP2_ARCHIVE}\n")
foreach(output "kiln.spdx.json spdx" "THIRD-PARTY-NOTICES notices")
  separate_arguments(output)
  list(GET output 0 file)
  list(GET output 1 what)
  install(CODE "
    file(MAKE_DIRECTORY \"${CMAKE_BINARY_DIR}/installed\")
    execute_process(COMMAND \"${NODE}\" \"${CMAKE_SOURCE_DIR}/tools/components\" \"${CMAKE_BINARY_DIR}\" ${what} ${CMAKE_SYSROOT}
      OUTPUT_FILE \"${CMAKE_BINARY_DIR}/installed/${file}\" COMMAND_ERROR_IS_FATAL ANY)")
  install(FILES ${CMAKE_BINARY_DIR}/installed/${file} DESTINATION ${CMAKE_INSTALL_DOCDIR})
endforeach()
