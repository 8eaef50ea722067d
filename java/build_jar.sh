# Sourced by the build.sh of a jar, in the jar's folder.

# build_jar NAME WHAT POM INPUT...: compiles src/ against the jars of the POM, which are not packed into the jar,
# and packs it, once for each content of src/, build.sh and the INPUTs; prints the path of the jar. WHAT
# is its name for people. Where build.sh defines add_files, that gets the folder of the classes before it
# is packed. The classes run on Java 8 and later.
build_jar() {
  local name=$1 what=$2 pom=$3 hash folder jars program
  shift 3
  hash=$(find src build.sh ../build_jar.sh "$@" -type f | LC_ALL=C sort | xargs cat | sha256sum | cut -c1-12)
  folder=${MUSTER_CACHE:-${HOME:-/tmp}/.cache/muster}/$name-$hash
  mkdir -p "$folder"
  exec 9>"$folder.lock"
  flock 9  # whoever waited here finds it done
  if [[ ! -e "$folder/complete" ]]; then
    for program in javac jar; do
      if ! command -v $program >/dev/null; then
        echo "$what needs $program to be built: install openjdk-17-jdk-headless." >&2
        exit 1
      fi
    done
    jars=$(../../testbed/maven_jars.sh "$pom")
    rm -rf "$folder/classes"
    find src -name '*.java' -print0 |
      xargs -0 javac --release 8 -nowarn -Xlint:-options -classpath "$jars/*" -d "$folder/classes" >&2 9>&-
    if declare -F add_files >/dev/null; then add_files "$folder/classes"; fi
    jar --create --date=2020-01-01T00:00:00Z --file "$folder/$name.jar" -C "$folder/classes" . 9>&-
    touch "$folder/complete"
  fi
  echo "$folder/$name.jar"
}
