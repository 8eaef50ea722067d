# muster_layer(FOLDER [ROOM] [NO_THREADS] [SMALL] [FUZZED] [DEPENDS layer...] [NEVER_DEPENDS layer...]
#              [LIBRARIES lib...] [TESTS_USE layer...] [TESTS_START target...] [ONE_THREAD file...])
#
# Declares the layer that lives in src/muster/FOLDER: a static library `muster_<folder>` of its
# *.cc files, one unit test program of its *_test.cc files, one benchmark program of its
# *_benchmark.cc files and, under MUSTER_FUZZ, one fuzz program a *_fuzz.cc file, whose seed corpus
# is fuzz/corpus/<name of the file>/.
# Tests run in the root of the repository and find the layer's folder testdata/ in MUSTER_TESTDATA.
# NO_THREADS: neither its code nor its tests start a thread or share anything between threads, so
# that its tests are not built for ThreadSanitizer; tools/check_layers.py holds the sources to it.
# SMALL: what the layer does takes no time beside the rest of a program: a release compiles it for size, a
# sanitizer's build without optimisation.
# FUZZED: it has no fuzz target, and those of higher layers are there for its code, too.
# DEPENDS names the layers it may use; tools/check_layers.py holds the includes against it.
# NEVER_DEPENDS names layers that it must not reach, through other layers either;
# tools/check_layers.py holds DEPENDS against it.
# ROOM: its names are in the namespace of the layer that it lies in: muster/train/loop has those of
# muster::train.
# ONE_THREAD: test files in which what is under test runs in one thread, so that they are not built for
# ThreadSanitizer, as those of simulations (*simulation_test.cc), whose histories run in one thread each;
# tools/check_layers.py holds the named files to it.
# TESTS_USE: higher layers that its tests may use, too, to have what is under test done for real.
include(GNUInstallDirs)

function(muster_layer folder)
  cmake_parse_arguments(LAYER "ROOM;NO_THREADS;SMALL;FUZZED" "" "DEPENDS;NEVER_DEPENDS;LIBRARIES;TESTS_USE;TESTS_START;ONE_THREAD" ${ARGN})
  string(REPLACE "/" "_" name ${folder})
  set(directory ${CMAKE_CURRENT_SOURCE_DIR}/${folder})
  file(GLOB sources CONFIGURE_DEPENDS ${directory}/*.cc)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  if(MUSTER_SANITIZE MATCHES "thread")
    list(FILTER tests EXCLUDE REGEX "simulation_test\\.cc$")
    list(TRANSFORM LAYER_ONE_THREAD PREPEND ${directory}/)
    if(LAYER_ONE_THREAD)
      list(REMOVE_ITEM tests ${LAYER_ONE_THREAD})
    endif()
    if(LAYER_NO_THREADS)
      set(tests "")
    endif()
  endif()
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
    if(MUSTER_SANITIZE)
      # Only what a unit test or a fuzz target is made of.
      set_target_properties(muster_${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    endif()
  else()
    add_library(muster_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(muster_${name} ${scope} $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>
                             $<INSTALL_INTERFACE:include>)
  target_compile_features(muster_${name} ${scope} cxx_std_20)
  target_link_libraries(muster_${name} ${scope} ${dependencies} ${LAYER_LIBRARIES}
                        absl::status absl::statusor absl::strings absl::str_format absl::flat_hash_map
                        absl::flat_hash_set absl::synchronization absl::span Threads::Threads)

  if(sources AND CMAKE_BUILD_TYPE STREQUAL "Release")
    if(LAYER_SMALL)
      target_compile_options(muster_${name} PRIVATE -Os)
    elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # Whether g++ inlines into a loop must not depend on what else its unity file holds.
      target_compile_options(muster_${name} PRIVATE --param=inline-unit-growth=1000)
    endif()
  endif()

  # By the same name in this project, in one that adds it as a folder, and when installed.
  add_library(Muster::${name} ALIAS muster_${name})
  set_target_properties(muster_${name} PROPERTIES EXPORT_NAME ${name})
  if(MUSTER_INSTALL)
    install(TARGETS muster_${name} EXPORT MusterTargets COMPONENT development
            ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/muster)
  endif()

  if(sources AND MUSTER_SANITIZE AND LAYER_SMALL AND NOT tests MATCHES "simulation_test")
    # To optimise what takes no time in the tests would double the time to compile it. (Its fuzz targets
    # make fewer runs a second.)
    target_compile_options(muster_${name} PRIVATE -O0)
  endif()

  if(tests AND MUSTER_TESTS)
    add_executable(muster_${name}_test ${tests})
    set(used "")
    foreach(layer ${LAYER_TESTS_USE})
      string(REPLACE "/" "_" layer ${layer})
      list(APPEND used muster_${layer})
    endforeach()
    target_link_libraries(muster_${name}_test PRIVATE ${used} muster_${name} GTest::gmock_main)
    # Counted from the repository's root, where tests run: another checkout has the same objects.
    target_compile_options(muster_${name}_test PRIVATE -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
    if(EXISTS ${directory}/testdata)
      file(RELATIVE_PATH testdata ${PROJECT_SOURCE_DIR} ${directory}/testdata)
      target_compile_definitions(muster_${name}_test PRIVATE MUSTER_TESTDATA="${testdata}")
    endif()
    # To optimise a test takes longer than to run it; a sanitizer makes much more code of it.
    target_compile_options(muster_${name}_test PRIVATE -O0)
    set(simulations ${tests})
    list(FILTER simulations INCLUDE REGEX "simulation_test\\.cc$")
    if(simulations AND CMAKE_BUILD_TYPE STREQUAL "Release")
      # But thousands of histories take longer than the compiler.
      set_source_files_properties(${simulations} PROPERTIES COMPILE_OPTIONS -O1
                                  SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
    set(started "")
    foreach(target ${LAYER_TESTS_START})
      list(APPEND started $<TARGET_FILE:${target}>)
    endforeach()
    add_test(NAME unit.${name} COMMAND ${PROJECT_SOURCE_DIR}/tools/once.sh
             $<TARGET_FILE:muster_${name}_test> ${directory}/testdata ${started})
    set_tests_properties(unit.${name} PROPERTIES LABELS unit TIMEOUT 900
                         WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    if(simulations)
      # ctest starts what costs most first: a long program that is started last runs alone.
      set_tests_properties(unit.${name} PROPERTIES COST 100)
    endif()
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
      add_test(NAME fuzz.${fuzzer} COMMAND ${PROJECT_SOURCE_DIR}/tools/fuzz.sh $<TARGET_FILE:${fuzzer}>)
      set_tests_properties(fuzz.${fuzzer} PROPERTIES LABELS fuzz TIMEOUT 1200)
    endforeach()
    if(sources AND (fuzzers OR LAYER_FUZZED))
      # A fuzz target learns from the branches that an input takes in these layers. To count them takes an
      # eighth of the time to compile, so that others do not.
      target_compile_options(muster_${name} PRIVATE -fsanitize=fuzzer-no-link)
    endif()
  endif()
endfunction()
