# muster_layer(FOLDER [DEPENDS layer...] [LIBRARIES lib...])
#
# Declares the layer that lives in src/muster/FOLDER: a static library `muster_<folder>` of its
# *.cc files, one unit test program of its *_test.cc files, one benchmark program of its
# *_benchmark.cc files and, under MUSTER_FUZZ, one fuzz program a *_fuzz.cc file, whose seed corpus
# is fuzz/corpus/<name of the file>/.
# Tests find the layer's folder testdata/ in MUSTER_TESTDATA.
# DEPENDS names the layers it may use; tools/check_layers.py holds the includes against it.
function(muster_layer folder)
  cmake_parse_arguments(LAYER "" "" "DEPENDS;LIBRARIES" ${ARGN})
  string(REPLACE "/" "_" name ${folder})
  set(directory ${CMAKE_CURRENT_SOURCE_DIR}/${folder})
  file(GLOB sources CONFIGURE_DEPENDS ${directory}/*.cc)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  set(benchmarks ${sources})
  list(FILTER benchmarks INCLUDE REGEX "_benchmark\\.cc$")
  set(fuzzers ${sources})
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cc$")
  list(FILTER sources EXCLUDE REGEX "(_test|_benchmark|_fuzz|/main)\\.cc$")

  set(dependencies "")
  foreach(layer ${LAYER_DEPENDS})
    string(REPLACE "/" "_" layer ${layer})
    list(APPEND dependencies muster_${layer})
  endforeach()

  if(sources)
    add_library(muster_${name} STATIC ${sources})
    set(scope PUBLIC)
  else()
    add_library(muster_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(muster_${name} ${scope} ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(muster_${name} ${scope} ${dependencies} ${LAYER_LIBRARIES}
                        absl::status absl::statusor absl::strings absl::str_format absl::flat_hash_map
                        absl::flat_hash_set absl::synchronization absl::span Threads::Threads)

  if(tests AND MUSTER_TESTS)
    add_executable(muster_${name}_test ${tests})
    target_link_libraries(muster_${name}_test PRIVATE muster_${name} GTest::gmock_main)
    target_compile_definitions(muster_${name}_test PRIVATE MUSTER_TESTDATA="${directory}/testdata")
    # The code under test is built as users run it; the tests themselves need not be.
    target_compile_options(muster_${name}_test PRIVATE -O1)
    add_test(NAME unit.${name} COMMAND muster_${name}_test)
    set_tests_properties(unit.${name} PROPERTIES LABELS unit TIMEOUT 300)
  endif()
  if(benchmarks AND MUSTER_BENCHMARKS)
    add_executable(muster_${name}_benchmark ${benchmarks})
    target_link_libraries(muster_${name}_benchmark PRIVATE muster_${name} benchmark::benchmark_main)
  endif()
  if(MUSTER_FUZZ)
    foreach(source ${fuzzers})
      get_filename_component(fuzzer ${source} NAME_WE)
      add_executable(${fuzzer} ${source})
      set_target_properties(${fuzzer} PROPERTIES UNITY_BUILD OFF)
      target_link_libraries(${fuzzer} PRIVATE muster_${name} -fsanitize=fuzzer)
      target_compile_options(${fuzzer} PRIVATE -fsanitize=fuzzer)
      add_test(NAME fuzz.${fuzzer} COMMAND ${CMAKE_SOURCE_DIR}/tools/fuzz.sh $<TARGET_FILE:${fuzzer}>)
      set_tests_properties(fuzz.${fuzzer} PROPERTIES LABELS fuzz TIMEOUT 1200)
    endforeach()
    if(sources)
      target_compile_options(muster_${name} PRIVATE -fsanitize=fuzzer-no-link)
    endif()
  endif()
endfunction()
