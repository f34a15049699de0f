# Compiler settings shared by every target.
option(SWELL_TESTS "build tests" ON)
option(SWELL_FUZZ "build libFuzzer targets" OFF)
option(SWELL_PCH "use precompiled headers" ON)
option(SWELL_UNITY "compile several files of a target at once" OFF)
set(SWELL_SANITIZE "" CACHE STRING "sanitizers, as -fsanitize takes them")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_FLAGS_DEV "-O1 -g1")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1")  # checks stay on: NDEBUG is never defined
set(CMAKE_EXE_LINKER_FLAGS_DEV "")

add_compile_options(-Wall -Wextra -Werror -Wno-missing-field-initializers -fno-omit-frame-pointer)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_compile_options(-Wthread-safety)
else()
  # GCC 12 sees overreads inside its own inlined std::string at -O2 (PR 105329, PR 105651).
  add_compile_options(-Wno-restrict -Wno-stringop-overread -Wno-maybe-uninitialized
                      -Wno-array-bounds -Wno-stringop-overflow -Wno-dangling-pointer)
endif()
if(SWELL_SANITIZE)
  add_compile_options(-fsanitize=${SWELL_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${SWELL_SANITIZE})
endif()
if(SWELL_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
find_program(SWELL_LLD ld.lld)
if(SWELL_LLD)
  add_link_options(-fuse-ld=lld)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_BUILD_TYPE STREQUAL "Dev")
  add_compile_options(-gsplit-dwarf)
endif()

find_program(SWELL_CCACHE ccache)
if(SWELL_CCACHE)
  # Depend mode: what the compiler says it read is the key, instead of a preprocessor's run before each.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_DEPEND=1 CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} ${SWELL_CCACHE})
endif()
