# Checks of the tree itself, run by ctest beside the unit tests (label check).
function(muster_check name)
  add_test(NAME check.${name} COMMAND ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(check.${name} PROPERTIES LABELS check TIMEOUT 120)
endfunction()

if(MUSTER_TESTS)
  muster_check(layers python3 tools/check_layers.py)
  muster_check(layers_self_test python3 tools/check_layers_test.py)
  muster_check(count_tests python3 tools/count_tests_test.py)
  muster_check(once python3 tools/once_test.py)
  muster_check(format tools/check_format.sh)
endif()
