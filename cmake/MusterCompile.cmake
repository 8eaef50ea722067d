# Language, warnings and sanitizers: the same for every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_UNITY_BUILD_BATCH_SIZE)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 12)
endif()

# Another checkout has the same objects, where debuggers find the sources from the build folder.
set(CMAKE_CXX_FLAGS_DEV "-O1 -g1 -ffile-prefix-map=${CMAKE_BINARY_DIR}=.")
# Functions in sections: muster is linked without those that it does not call.
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -DNDEBUG -ffunction-sections")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Below 1 GiB it collects no garbage, which takes 7 % of the time to compile.
  string(APPEND CMAKE_CXX_FLAGS_RELEASE " --param=ggc-min-heapsize=1048576")
endif()

# -ffp-contract=off outside the vector kernels: a result must not depend on the compiler's mood.
option(MUSTER_WARNINGS_ARE_ERRORS "Stop at a compiler's warning" ${PROJECT_IS_TOP_LEVEL})
add_compile_options(-Wall -Wextra -Wshadow -Wnon-virtual-dtor
                    $<$<BOOL:${MUSTER_WARNINGS_ARE_ERRORS}>:-Werror> -fno-math-errno
                    -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 sees an overlap in std::string::insert that cannot be (its bug 105651).
  add_compile_options(-Wno-restrict)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_compile_options(-Wthread-safety -Wno-gcc-compat)
endif()

set(MUSTER_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize= takes them")
if(MUSTER_SANITIZE)
  add_compile_options(-fsanitize=${MUSTER_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${MUSTER_SANITIZE})
  # The macro by which g++ tells that it instruments, which the sources and Abseil ask for.
  if(MUSTER_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    add_compile_definitions(__SANITIZE_ADDRESS__)
    # AddressSanitizer stops at each of these by itself, when the memory is used. To check them once
    # more costs a third of the time to compile.
    add_compile_options(-fno-sanitize=null,object-size,vptr)
  endif()
endif()

find_program(MUSTER_CCACHE ccache)
if(MUSTER_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${MUSTER_CCACHE})
endif()
