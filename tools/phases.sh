# Sourced by ./test and .ci/run after environment.sh: phases, and the tests that both run. Results
# lie as JUnit XML under RESULTS, one folder a phase, for tools/count_tests.py.

RESULTS="$PWD/build/results"
FAILED_PHASES=()
PHASE_TIMES=()
FEW_FAILURES=6 # more failed tests than these are no accident of a busy machine

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

# More processes than JOBS, for unit tests of which many wait for a deadline.
waiting_jobs() { echo $((JOBS + (JOBS + 1) / 2)); }

# Component tests wait for other programs most of the time: with 3 processes they used half of two
# cores. A process may hold a Spark, a Hadoop or a TensorFlow in memory, some 4 GB.
component_jobs() {
  local by_memory most=$((JOBS * 5 / 2))
  by_memory=$(awk '/^MemTotal:/ {print int($2 / 4000000)}' /proc/meminfo)
  echo $((by_memory < JOBS ? JOBS : by_memory < most ? by_memory : most))
}

# run_ctest PRESET FOLDER ARGUMENT...
run_ctest() {
  local preset=$1 folder="$RESULTS/$2"
  shift 2
  GTEST_OUTPUT="xml:$folder/gtest/" ctest --test-dir "build/$preset" -j "$(waiting_jobs)" --no-tests=error \
    --output-on-failure --output-junit "$folder/ctest.xml" "$@"
}

# Builds the Kubernetes API server of the component tests, once for each content of its Go modules, or waits
# for another process that builds it. Fails where this machine's Go is missing or too old, and says so.
build_kubernetes() { testbed/kubernetes/build.sh >/dev/null; }

# Makes the Python environments of the component tests and, meanwhile, builds their Kubernetes API server.
# Where that build fails, the phase that waits for it says why.
component_environments() {
  local name
  build_kubernetes &
  for name in component python tensorflow oldest-tensorflow 'tensorflow-1 3.7' 'tensorflow-2.4 3.8' spark \
    'spark-4 3.11'; do
    # shellcheck disable=SC2086
    python_venv $name >/dev/null || return 1
  done
}

# Builds the release preset while these environments are made: downloads wait for the network, the
# compiler for the cores. Where a download fails the component tests say so.
build_release() {
  mkdir -p build
  component_environments >build/environments.log 2>&1 </dev/null &
  build_preset release -DMUSTER_BENCHMARKS=ON
}

# The tests against real TensorFlow, *_component_test.py, and those of the Python package, with the
# release binary. MUSTER_PYTHON_TOOLS is an interpreter with what builds and checks that package,
# MUSTER_PYTHON_TENSORFLOW one with the TensorFlow of today, for programs that `muster run` starts,
# MUSTER_PYTHON_TENSORFLOW_OLDEST one with the oldest that exported Keras models work with.
# MUSTER_PYTHON_TENSORFLOW_1 and _2_4, which are empty where this machine has no Python 3.7 or 3.8, run
# the programs of articles.
run_component_tests() {
  local python tools tensorflow oldest one two_four
  python=$(python_venv component) && tools=$(python_venv python) &&
    tensorflow=$(python_venv tensorflow) && oldest=$(python_venv oldest-tensorflow) &&
    one=$(python_venv tensorflow-1 3.7) && two_four=$(python_venv tensorflow-2.4 3.8) || return 1
  MUSTER_BINARY="$PWD/build/release/src/muster/muster" MUSTER_PYTHON_TOOLS="$tools" \
    MUSTER_PYTHON_TENSORFLOW="$tensorflow" MUSTER_PYTHON_TENSORFLOW_OLDEST="$oldest" \
    MUSTER_PYTHON_TENSORFLOW_1="$one" MUSTER_PYTHON_TENSORFLOW_2_4="$two_four" \
    PYTHONDONTWRITEBYTECODE=1 TF_CPP_MIN_LOG_LEVEL=3 \
    run_pytest component "$python" --numprocesses "$(component_jobs)" --dist loadfile
}

# run_pytest FOLDER PYTHON ARGUMENT...: where a few tests fail, which on a busy machine may be a deadline
# that passed, these run once more on their own. count_tests.py counts the second outcome and names them.
run_pytest() {
  local folder="$RESULTS/$1" python=$2 failed outcome=0
  shift 2
  MUSTER_FAILED_TESTS="$folder/failed-tests" \
    "$python" -m pytest --junit-xml "$folder/pytest.xml" "$@" || outcome=$?
  if ((outcome != 1)) || [[ ! -s $folder/failed-tests ]]; then return "$outcome"; fi
  mapfile -t failed <"$folder/failed-tests"
  if ((${#failed[@]} > FEW_FAILURES)); then return "$outcome"; fi
  printf '\n=== The %d failed tests again, on their own\n' "${#failed[@]}"
  "$python" -m pytest --junit-xml "$folder/pytest-alone.xml" "${failed[@]}"
}

# run_spark_tests FOLDER "NAME [VERSION]" FILE...: tests of muster.spark, in this environment with Spark.
run_spark_tests() {
  local folder=$1 name=$2 python
  shift 2
  # shellcheck disable=SC2086
  python=$(python_venv $name) || return 1
  MUSTER_BINARY="$PWD/build/release/src/muster/muster" MUSTER_PYTHON_COMPONENT="$(python_venv component)" \
    MUSTER_PYTHON_TENSORFLOW="$(python_venv tensorflow)" \
    MUSTER_PYTHON_TENSORFLOW_2_4="$(python_venv tensorflow-2.4 3.8)" PYTHONDONTWRITEBYTECODE=1 \
    run_pytest "$folder" "$python" --numprocesses "$(component_jobs)" --dist loadfile "$@"
}

# run_fuzz SECONDS: replays each target's corpus, then fuzzes it for so long. Fuzzing does not wait.
run_fuzz() {
  MUSTER_FUZZ_SECONDS=$1 run_ctest asan-ubsan fuzz -L fuzz -j "$JOBS"
}

# print_summary FOLDER...: the last lines; fails when anything failed.
print_summary() {
  local flags=() title
  for title in "${FAILED_PHASES[@]}"; do flags+=(--failed-phase "$title"); done
  printf '\n'
  python3 tools/count_tests.py "${flags[@]}" "${@/#/$RESULTS/}"
}
