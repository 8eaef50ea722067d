# math/kernels_{baseline,avx2,avx512}.cc are one source compiled for three instruction sets, beside
# them kernels_amx.cc for tiles; math/kernels.cc chooses at run time. They are optimised in every build type: the tests of everything above wait for them.
set(kernel_flags -O3 -fno-trapping-math -fno-math-errno)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 takes the undefined lanes of its own intrinsics for ours.
  list(APPEND kernel_flags -Wno-maybe-uninitialized -Wno-uninitialized)
endif()
if(MUSTER_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # Checks as calls, since clang takes minutes to put them in line; no fuzz target reaches the kernels.
  list(APPEND kernel_flags -O1 -fsanitize-address-outline-instrumentation -fno-sanitize=undefined
                           -fno-sanitize-coverage=trace-cmp,inline-8bit-counters,pc-table)
endif()
set(avx2_flags "")
set(avx512_flags "")
set(amx_flags "")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(avx2_flags -mavx2 -mfma)
  set(avx512_flags -mavx512f -mavx512vl -mavx512dq -mavx512bw -mavx2 -mfma
                   -mprefer-vector-width=512)
  set(amx_flags ${avx512_flags} -mavx512bf16 -mamx-tile -mamx-bf16)
endif()
foreach(isa baseline avx2 avx512 amx)
  set_source_files_properties(math/kernels_${isa}.cc PROPERTIES
                              COMPILE_OPTIONS "${kernel_flags};${${isa}_flags}"
                              SKIP_UNITY_BUILD_INCLUSION ON)
endforeach()
