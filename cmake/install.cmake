# The program installs; its manual pages and completions are written by the program itself, so that they
# cannot differ from what it does.
include(GNUInstallDirs)
install(TARGETS kiln RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES LICENSE README.md CHANGELOG.md packaging/kiln.yaml DESTINATION ${CMAKE_INSTALL_DOCDIR})

# systemd's units name the program by its path, which `cmake --install --prefix` decides.
install(CODE "
  foreach(unit kiln kiln-agent)
    file(READ \"${CMAKE_SOURCE_DIR}/packaging/systemd/\${unit}.service\" text)
    string(REPLACE \"ExecStart=kiln\" \"ExecStart=\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/kiln\" text \"\${text}\")
    file(WRITE \"${CMAKE_BINARY_DIR}/installed/\${unit}.service\" \"\${text}\")
  endforeach()")
install(FILES ${CMAKE_BINARY_DIR}/installed/kiln.service ${CMAKE_BINARY_DIR}/installed/kiln-agent.service
  DESTINATION lib/systemd/system)

# kiln_install_output(FILE FOLDER ARGUMENT...): what kiln prints with these arguments, as FOLDER/FILE.
function(kiln_install_output file folder)
  string(JOIN " " arguments ${ARGN})
  install(CODE "
    file(MAKE_DIRECTORY \"${CMAKE_BINARY_DIR}/installed\")
    execute_process(COMMAND \"$<TARGET_FILE:kiln>\" ${arguments}
      OUTPUT_FILE \"${CMAKE_BINARY_DIR}/installed/${file}\" COMMAND_ERROR_IS_FATAL ANY)")
  install(FILES ${CMAKE_BINARY_DIR}/installed/${file} DESTINATION ${folder})
endfunction()

kiln_install_output(kiln.1 ${CMAKE_INSTALL_MANDIR}/man1 help --man)
file(GLOB commands CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/cli/cmd_*.c)
foreach(command ${commands})
  string(REGEX REPLACE "^.*/cmd_(.*)\\.c$" "\\1" command ${command})
  kiln_install_output(kiln-${command}.1 ${CMAKE_INSTALL_MANDIR}/man1 help --man ${command})
endforeach()
kiln_install_output(kiln ${CMAKE_INSTALL_DATADIR}/bash-completion/completions completion bash)
kiln_install_output(_kiln ${CMAKE_INSTALL_DATADIR}/zsh/site-functions completion zsh)
kiln_install_output(kiln.fish ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d completion fish)
