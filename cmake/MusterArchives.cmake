# muster_link_archives(PATTERN): where an imported shared library, whose target's name matches, has an
# archive beside it, that archive is linked instead. Each shared library costs every start of the program
# about 0.1 ms of CPU, and a job starts many processes. For libraries that get no security updates:
# those (OpenSSL) stay shared.
function(muster_link_archives pattern)
  get_property(targets DIRECTORY PROPERTY IMPORTED_TARGETS)
  list(FILTER targets INCLUDE REGEX "${pattern}")
  foreach(target ${targets})
    get_target_property(type ${target} TYPE)
    if(NOT type MATCHES "^(SHARED|UNKNOWN)_LIBRARY$")
      continue()
    endif()
    set(properties IMPORTED_LOCATION)
    get_target_property(configurations ${target} IMPORTED_CONFIGURATIONS)
    if(configurations)
      list(TRANSFORM configurations PREPEND IMPORTED_LOCATION_ OUTPUT_VARIABLE properties)
    endif()
    foreach(property ${properties})
      get_target_property(shared ${target} ${property})
      muster_find_archive(archive "${shared}")
      if(EXISTS "${archive}")
        set_target_properties(${target} PROPERTIES ${property} "${archive}")
      endif()
    endforeach()
  endforeach()
endfunction()

# muster_find_archive(RESULT SHARED): the path of the archive beside a shared library.
function(muster_find_archive result shared)
  string(REGEX REPLACE "\\.so[.0-9]*$" ".a" archive "${shared}")
  set(${result} "${archive}" PARENT_SCOPE)
endfunction()

# The library that has no package: its archive, where there is one.
find_library(MUSTER_FARMHASH NAMES libfarmhash.a farmhash REQUIRED)
add_library(farmhash UNKNOWN IMPORTED)
set_target_properties(farmhash PROPERTIES IMPORTED_LOCATION "${MUSTER_FARMHASH}")

set(MUSTER_PORTABLE_OPENSSL "" CACHE PATH
    "Where another OpenSSL 3 is installed, whose archives the portable program takes")

# OpenSSL: shared, but archives in a program that has the property MUSTER_PORTABLE. Such a program
# runs where there is no OpenSSL, or another version of it. Versions of OpenSSL 3 have the same functions, so
# that its archives may be newer than the headers that everything is compiled with.
function(muster_add_openssl)
  add_library(muster_openssl INTERFACE)
  target_include_directories(muster_openssl INTERFACE $<BUILD_INTERFACE:${OPENSSL_INCLUDE_DIR}>)
  if(MUSTER_PORTABLE_OPENSSL)
    foreach(name ssl crypto)
      find_library(${name} NAMES lib${name}.a PATHS ${MUSTER_PORTABLE_OPENSSL} PATH_SUFFIXES lib lib64
                   NO_DEFAULT_PATH NO_CACHE)
      if(NOT ${name})
        message(FATAL_ERROR "MUSTER_PORTABLE_OPENSSL: ${MUSTER_PORTABLE_OPENSSL} has no lib${name}.a in lib or "
                            "lib64; install OpenSSL there with no-shared, or set it to nothing")
      endif()
    endforeach()
  else()
    muster_find_archive(ssl "${OPENSSL_SSL_LIBRARY}")
    muster_find_archive(crypto "${OPENSSL_CRYPTO_LIBRARY}")
  endif()
  set(portable $<BOOL:$<TARGET_PROPERTY:MUSTER_PORTABLE>>)
  target_link_libraries(muster_openssl INTERFACE
    $<BUILD_INTERFACE:$<IF:${portable},${ssl},OpenSSL::SSL>>
    $<BUILD_INTERFACE:$<IF:${portable},${crypto},OpenSSL::Crypto>>
    $<INSTALL_INTERFACE:OpenSSL::SSL>)
endfunction()
