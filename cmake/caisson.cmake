# Helpers for the modules of src/: one library per folder, tests beside the code they test.
#
#   caisson_library(NAME base SRCS ... DEPS ...)      -> caisson_base
#   caisson_test(NAME base_test SRCS ... DEPS ... LABEL unit|root)

find_package(Threads REQUIRED)
find_package(Boost 1.81 REQUIRED)
find_package(fmt REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(ZLIB REQUIRED)
find_package(GTest REQUIRED)

add_library(caisson_flags INTERFACE)
target_include_directories(caisson_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_compile_options(caisson_flags INTERFACE
  -Wall -Wextra -Wshadow -Wno-missing-field-initializers -Werror
  -fno-omit-frame-pointer -Xclang -fno-pch-timestamp
  # So that the linker can leave out what a program does not use; envd has to be small.
  -ffunction-sections -fdata-sections)
target_compile_definitions(caisson_flags INTERFACE
  _GNU_SOURCE
  CAISSON_VERSION="${PROJECT_VERSION}"
  # Boost's heavy parts are compiled once (src/base/boost.cc); mixing modes would break the ODR.
  BOOST_ASIO_SEPARATE_COMPILATION BOOST_BEAST_SEPARATE_COMPILATION
  BOOST_ASIO_NO_DEPRECATED)
target_link_options(caisson_flags INTERFACE -fuse-ld=lld-19)
target_link_libraries(caisson_flags INTERFACE fmt::fmt-header-only Threads::Threads)
if(CAISSON_SANITIZE)
  target_compile_options(caisson_flags INTERFACE
    -fsanitize=${CAISSON_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(caisson_flags INTERFACE -fsanitize=${CAISSON_SANITIZE})
endif()
if(CAISSON_COVERAGE)
  # Relocated counters live in the mapped profile, so what is killed has counted, too (%c).
  # -fprofile-instr-generate by the names its parts have inside clang: with it, ccache hashes the folder.
  target_compile_options(caisson_flags INTERFACE
    "SHELL:-Xclang -fprofile-instrument=clang" "SHELL:-Xclang -fcoverage-mapping"
    -fcoverage-compilation-dir=. "SHELL:-mllvm -runtime-counter-relocation")
  target_link_options(caisson_flags INTERFACE -fprofile-instr-generate)
endif()

function(caisson_library)
  cmake_parse_arguments(A "" "NAME" "SRCS;DEPS" ${ARGN})
  add_library(caisson_${A_NAME} STATIC ${A_SRCS})
  target_link_libraries(caisson_${A_NAME} PUBLIC caisson_flags ${A_DEPS})
  if(NOT A_NAME STREQUAL "base")
    target_precompile_headers(caisson_${A_NAME} REUSE_FROM caisson_base)
  endif()
endfunction()

# A gtest binary. LABEL unit: needs nothing. LABEL root: needs root and the kernel's namespaces.
# Not optimised: compiling the tests was half of the build.
function(caisson_test)
  cmake_parse_arguments(A "" "NAME;LABEL" "SRCS;DEPS" ${ARGN})
  add_executable(${A_NAME} ${A_SRCS})
  target_link_libraries(${A_NAME} PRIVATE ${A_DEPS} caisson_test_main)
  target_compile_options(${A_NAME} PRIVATE -O0)
  target_precompile_headers(${A_NAME} REUSE_FROM caisson_test_main)
  set_target_properties(${A_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME ${A_NAME} COMMAND ${A_NAME})
  set_tests_properties(${A_NAME} PROPERTIES LABELS "${A_LABEL}")
endfunction()
