# What is installed, by component:
#   program      muster, muster-tensorflow and tensorflow-hdfs, with this machine's OpenSSL: the .deb
#   portable     these, to run on other machines: the .tar.gz and the wheel; only if it is named
#   documents    licences and the change log
#   development  the layers as static libraries, their headers, and the CMake package Muster
# and the packages that CPack makes of the first three (packaging/cpack.cmake). tools/release.sh makes them all.
include(CMakePackageConfigHelpers)

install(TARGETS muster muster-tensorflow COMPONENT program)
install(TARGETS muster_portable muster-tensorflow COMPONENT portable EXCLUDE_FROM_ALL)
install(PROGRAMS ${PROJECT_BINARY_DIR}/src/muster/muster-parquet DESTINATION ${CMAKE_INSTALL_BINDIR}
        COMPONENT program)
install(PROGRAMS ${PROJECT_BINARY_DIR}/src/muster/muster-parquet DESTINATION ${CMAKE_INSTALL_BINDIR}
        COMPONENT portable EXCLUDE_FROM_ALL)
# Programs of TensorFlow load it: control/tensorflow_hdfs.h says where muster looks for it.
set(MUSTER_TENSORFLOW_HDFS_DIR lib/muster/tensorflow-hdfs CACHE STRING "Where it is installed")
foreach(component program portable)
  set(only "")
  if(component STREQUAL portable)
    set(only EXCLUDE_FROM_ALL)
  endif()
  install(TARGETS libmuster-tensorflow-hdfs libhdfs DESTINATION ${MUSTER_TENSORFLOW_HDFS_DIR}
          COMPONENT ${component} ${only})
  install(FILES src/muster/files/tensorflow/sitecustomize.py
          DESTINATION ${MUSTER_TENSORFLOW_HDFS_DIR} COMPONENT ${component} ${only})
endforeach()
set(MUSTER_YARN_JAR "" CACHE FILEPATH "The ApplicationMaster for YARN to be installed (java/yarn/build.sh prints its path)")
set(MUSTER_TFRECORD_JAR "" CACHE FILEPATH "TFRecord's formats for Hadoop and Spark to be installed (java/tfrecord/build.sh prints their path)")
foreach(jar ${MUSTER_YARN_JAR} ${MUSTER_TFRECORD_JAR})
  install(FILES ${jar} DESTINATION ${CMAKE_INSTALL_DATADIR}/muster COMPONENT program)
  install(FILES ${jar} DESTINATION ${CMAKE_INSTALL_DATADIR}/muster COMPONENT portable EXCLUDE_FROM_ALL)
endforeach()
install(FILES LICENSE CHANGELOG.md packaging/THIRD_PARTY.txt DESTINATION ${CMAKE_INSTALL_DOCDIR}
        COMPONENT documents)

install(DIRECTORY src/muster DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
        FILES_MATCHING PATTERN "*.h"
        PATTERN "*_test*" EXCLUDE PATTERN "test_*" EXCLUDE PATTERN "*conformance*" EXCLUDE)
install(TARGETS muster_openssl EXPORT MusterTargets COMPONENT development)
set_target_properties(muster_openssl PROPERTIES EXPORT_NAME openssl)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Muster)
install(EXPORT MusterTargets NAMESPACE Muster:: DESTINATION ${package} COMPONENT development)
set(MUSTER_FIND_DEPENDENCIES "")
foreach(dependency ${MUSTER_PACKAGES})
  string(REPLACE "/" " " dependency ${dependency})
  string(APPEND MUSTER_FIND_DEPENDENCIES "find_dependency(${dependency})\n")
endforeach()
configure_package_config_file(cmake/MusterConfig.cmake.in MusterConfig.cmake
                              INSTALL_DESTINATION ${package})
write_basic_package_version_file(MusterConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/MusterConfig.cmake ${PROJECT_BINARY_DIR}/MusterConfigVersion.cmake
        DESTINATION ${package} COMPONENT development)

set(CPACK_PACKAGE_NAME muster)
set(CPACK_PACKAGE_VENDOR Muster)
set(CPACK_PACKAGE_CONTACT "The Muster developers <maintainers@muster.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Trains models where the data lives")
set(CPACK_PACKAGE_DESCRIPTION "One program that trains, evaluates and exports linear, deep and wide & deep
models and exported Keras models, alone or as a distributed job.")
string(TOLOWER ${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR} CPACK_SYSTEM_NAME)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/packaging/cpack.cmake)
include(CPack)
