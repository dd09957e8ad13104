# Every bench/<question>/x.c is a program bench_x, built when bench/<question>/run asks for it.
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/bench/*/*.c)
foreach(source ${sources})
  get_filename_component(name ${source} NAME_WE)
  add_executable(bench_${name} EXCLUDE_FROM_ALL ${source})
  target_link_libraries(bench_${name} PRIVATE kiln_host kiln_inproc)
endforeach()
