# Sourced by ./test and .ci/run after environment.sh: phases, and the tests that both run. Results
# lie as JUnit XML under RESULTS, one folder a phase, for tools/count_tests.py.

RESULTS="$PWD/build/results"
FAILED_PHASES=()
PHASE_TIMES=()

# phase TITLE COMMAND...: runs it and keeps its time. A failure is remembered, counts as one failed
# test, and does not end the script.
phase() {
  if ! timed "$@"; then FAILED_PHASES+=("$1"); fi
}

# test_phase TITLE FOLDER COMMAND...: the same for a command that writes its results to
# RESULTS/FOLDER, where failures are counted one by one.
test_phase() {
  local title=$1 folder="$RESULTS/$2"
  shift 2
  rm -rf "$folder"
  mkdir -p "$folder"
  if ! timed "$title" "$@"; then touch "$folder/failed"; fi
}

timed() {
  local title=$1 start=$SECONDS outcome=done
  shift
  printf '\n=== %s\n' "$title"
  "$@" || outcome=FAILED
  PHASE_TIMES+=("$(printf '%5d s  %-6s  %s' $((SECONDS - start)) "$outcome" "$title")")
  [[ $outcome == done ]]
}

# run_ctest PRESET FOLDER ARGUMENT...
run_ctest() {
  local preset=$1 folder="$RESULTS/$2"
  shift 2
  GTEST_OUTPUT="xml:$folder/gtest/" ctest --test-dir "build/$preset" -j "$JOBS" --no-tests=error \
    --output-on-failure --output-junit "$folder/ctest.xml" "$@"
}

# The tests against real TensorFlow, *_component_test.py, and those of the Python package, with the
# release binary. MUSTER_PYTHON_TOOLS is an interpreter with what builds and checks that package,
# MUSTER_PYTHON_TENSORFLOW one with the TensorFlow of today, for programs that `muster run` starts,
# MUSTER_PYTHON_TENSORFLOW_OLDEST one with the oldest that exported Keras models work with.
run_component_tests() {
  local python tools tensorflow oldest
  python=$(python_venv component) && tools=$(python_venv python) &&
    tensorflow=$(python_venv tensorflow) && oldest=$(python_venv oldest-tensorflow) || return 1
  MUSTER_BINARY="$PWD/build/release/src/muster/muster" MUSTER_PYTHON_TOOLS="$tools" \
    MUSTER_PYTHON_TENSORFLOW="$tensorflow" MUSTER_PYTHON_TENSORFLOW_OLDEST="$oldest" \
    PYTHONDONTWRITEBYTECODE=1 TF_CPP_MIN_LOG_LEVEL=3 \
    "$python" -m pytest --numprocesses "$JOBS" --dist loadfile \
    --junit-xml "$RESULTS/component/pytest.xml"
}

# run_fuzz SECONDS: replays each target's corpus, then fuzzes it for so long.
run_fuzz() {
  MUSTER_FUZZ_SECONDS=$1 run_ctest fuzz fuzz -L fuzz
}

# print_summary FOLDER...: the last lines; fails when anything failed.
print_summary() {
  local flags=() title
  for title in "${FAILED_PHASES[@]}"; do flags+=(--failed-phase "$title"); done
  printf '\n'
  python3 tools/count_tests.py "${flags[@]}" "${@/#/$RESULTS/}"
}
