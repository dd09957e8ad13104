# Compile-time hardening of everything that is shipped, checked by tools/check-hardened.
#
#   kiln_hardening   stack canaries, probed stack growth, marked branch targets, PIE, full RELRO, no executable stack
#   kiln_fortify     libc calls with bounds checks; not for libkiln-context.a, which links with any libc: the checking
#                    functions (__memcpy_chk and the like) are glibc's
#
# Both are empty with sanitizers, whose interceptors do not know the checking functions, and with KILN_HARDEN=OFF, which
# bench/hardening compares with. What the compiler or the C library's headers lack is left out, and the configuration says so.
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)
option(KILN_HARDEN "build with stack canaries, FORTIFY, control-flow protection, full RELRO and PIE" ON)
add_library(kiln_hardening INTERFACE)
add_library(kiln_fortify INTERFACE)

# kiln_harden_with(VARIABLE FLAG): compiles with FLAG if the compiler knows it.
function(kiln_harden_with variable flag)
  check_c_compiler_flag(${flag} ${variable})
  if(${variable})
    target_compile_options(kiln_hardening INTERFACE ${flag})
  endif()
endfunction()

# The highest level that the compiler and the headers know: 3 takes glibc 2.34 and gcc 12 or clang 9. -U: a distribution's
# flags or compiler may have set another level.
function(kiln_choose_fortify)
  foreach(level 3 2)
    set(CMAKE_REQUIRED_FLAGS "-O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${level}")
    check_c_source_compiles("#include <features.h>
      #if !defined(__USE_FORTIFY_LEVEL) || __USE_FORTIFY_LEVEL != ${level}
      #error
      #endif
      int main(void) { return 0; }" KILN_HAS_FORTIFY_${level})
    if(KILN_HAS_FORTIFY_${level})
      # Without optimization the headers check nothing, and warn.
      target_compile_options(kiln_fortify INTERFACE
        $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE> $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=${level}>)
      if(level LESS 3)
        message(STATUS "FORTIFY at level ${level}: this compiler or these headers know no higher one")
      endif()
      return()
    endif()
  endforeach()
  message(STATUS "No FORTIFY: the C library's headers do not know it")
endfunction()

if(KILN_HARDEN AND NOT KILN_SANITIZE AND NOT KILN_FUZZ)
  kiln_harden_with(KILN_HAS_STACK_PROTECTOR -fstack-protector-strong)
  kiln_harden_with(KILN_HAS_STACK_CLASH_PROTECTION -fstack-clash-protection)
  kiln_harden_with(KILN_HAS_CF_PROTECTION -fcf-protection) # x86-64
  kiln_harden_with(KILN_HAS_BRANCH_PROTECTION -mbranch-protection=standard) # arm64
  kiln_choose_fortify()
  target_compile_options(kiln_hardening INTERFACE $<$<NOT:$<BOOL:$<TARGET_PROPERTY:POSITION_INDEPENDENT_CODE>>>:-fPIE>)
  target_link_options(kiln_hardening INTERFACE
    $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-pie> LINKER:-z,relro,-z,now,-z,noexecstack)
endif()
