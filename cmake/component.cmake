# add_component(NAME base
#   SRCS status.cc ...          the library swell_<name>
#   DEPS json ...               layers used; transitive
#   LIBS OpenSSL::SSL ...       libraries from outside, private to the layer
#   TESTS status_test.cc ...    one test program <name>_test, ctest label "unit"
#   COST 50                     roughly the seconds that it takes, where these are many (tests/CMakeLists.txt)
#   BENCHES foo_bench.cc ...    one Google Benchmark program <name>_bench
#   FUZZERS foo_fuzz.cc ...     with SWELL_FUZZ: a libFuzzer program foo_fuzz each, label "fuzz-smoke";
#                               else a test of <name>_test each, FuzzSeeds.foo
# )
# Sources are listed, never globbed: tools/tidy.py fails on a file that no CMakeLists.txt names.
function(add_component)
  cmake_parse_arguments(A "" "NAME;COST" "SRCS;DEPS;LIBS;TESTS;TEST_DEPS;BENCHES;FUZZERS" ${ARGN})
  set(lib swell_${A_NAME})
  add_library(${lib} STATIC ${A_SRCS})
  target_include_directories(${lib} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  foreach(dep ${A_DEPS})
    target_link_libraries(${lib} PUBLIC swell_${dep})
  endforeach()
  target_link_libraries(${lib} PRIVATE ${A_LIBS})
  swell_pch(${lib})
  swell_unity(${lib})

  if(SWELL_TESTS AND A_TESTS)
    add_executable(${A_NAME}_test ${A_TESTS})
    target_link_libraries(${A_NAME}_test PRIVATE ${lib} ${A_LIBS} GTest::gmock GTest::gtest GTest::gtest_main)
    foreach(dep ${A_TEST_DEPS})
      target_link_libraries(${A_NAME}_test PRIVATE swell_${dep})
    endforeach()
    swell_pch(${A_NAME}_test)
    swell_unity(${A_NAME}_test)
    swell_fuzz_seeds(${A_NAME}_test ${A_FUZZERS})
    add_test(NAME ${A_NAME} COMMAND ${A_NAME}_test)
    # Property tests take several times as long under a sanitizer.
    set(limit 300)
    if(SWELL_SANITIZE)
      set(limit 1500)
    endif()
    set_tests_properties(${A_NAME} PROPERTIES LABELS unit TIMEOUT ${limit})
    if(A_COST)
      set_tests_properties(${A_NAME} PROPERTIES COST ${A_COST})
    endif()
  endif()

  if(A_BENCHES)
    add_executable(${A_NAME}_bench ${A_BENCHES})
    if(NOT SWELL_TESTS)
      # `./dev bench` asks for those it runs.
      set_target_properties(${A_NAME}_bench PROPERTIES EXCLUDE_FROM_ALL ON)
    endif()
    target_link_libraries(${A_NAME}_bench PRIVATE ${lib} ${A_LIBS} benchmark::benchmark benchmark::benchmark_main)
    swell_pch(${A_NAME}_bench)
  endif()
  if(SWELL_TESTS AND A_BENCHES)
    # The large sizes are for `./dev bench`.
    add_test(NAME ${A_NAME}_bench_smoke COMMAND ${A_NAME}_bench --benchmark_min_time=0.001
             "--benchmark_filter=-/[13]0000+$")
    set_tests_properties(${A_NAME}_bench_smoke PROPERTIES LABELS bench-smoke TIMEOUT 300)
  endif()

  if(SWELL_FUZZ)
    foreach(source ${A_FUZZERS})
      swell_fuzzer(${lib} ${source})
    endforeach()
  endif()
endfunction()

# foo_fuzz.cc starts from tests/fuzz/corpus/foo, which is only read; what it finds goes to the build
# folder.
function(swell_fuzzer lib source)
  get_filename_component(program ${source} NAME_WE)
  string(REGEX REPLACE "_fuzz$" "" corpus ${program})
  set(found ${CMAKE_CURRENT_BINARY_DIR}/${program}_corpus)
  file(MAKE_DIRECTORY ${found})
  add_executable(${program} ${source})
  target_compile_options(${program} PRIVATE -fsanitize=fuzzer)
  target_link_options(${program} PRIVATE -fsanitize=fuzzer)
  target_link_libraries(${program} PRIVATE ${lib})
  add_test(NAME ${program}_smoke
           COMMAND ${program} -runs=20000 -seed=1 -max_len=8192 ${found}
                   ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${corpus})
  set_tests_properties(${program}_smoke PROPERTIES LABELS fuzz-smoke TIMEOUT 300)
endfunction()

# A test program gives each target its corpus and mutations of it (base/fuzz_test_util.h).
function(swell_fuzz_seeds program)
  if(NOT ARGN OR SWELL_FUZZ)
    return()
  endif()
  set(text "#include \"base/fuzz_test_util.h\"\n")
  foreach(source ${ARGN})
    get_filename_component(name ${source} NAME_WE)
    string(REGEX REPLACE "_fuzz$" "" corpus ${name})
    # Of many targets in one program, each has a name of its own.
    set_source_files_properties(${source} PROPERTIES COMPILE_DEFINITIONS LLVMFuzzerTestOneInput=${name})
    string(APPEND text "extern \"C\" int ${name}(const uint8_t* data, size_t size);\n"
           "TEST(FuzzSeeds, ${corpus}) {\n"
           "  swell::FuzzSeeds(\"${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${corpus}\", ${name}).Run();\n}\n")
  endforeach()
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${program}_seeds.cc CONTENT "${text}" @ONLY)
  target_sources(${program} PRIVATE ${ARGN} ${CMAKE_CURRENT_BINARY_DIR}/${program}_seeds.cc)
endfunction()

# Everything shares one precompiled set of standard headers, built once in third_party/.
function(swell_pch target)
  if(SWELL_PCH)
    target_precompile_headers(${target} REUSE_FROM swell_pch)
  endif()
endfunction()

# With SWELL_UNITY one compiler run takes several files: what they include and instantiate is paid once.
# tools/unity.py chooses those that mean the same together as apart.
function(swell_unity target)
  if(NOT SWELL_UNITY)
    return()
  endif()
  find_program(SWELL_PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH REQUIRED)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources EXCLUDE REGEX "^/")  # what is generated is not there yet
  execute_process(COMMAND ${SWELL_PYTHON} ${CMAKE_SOURCE_DIR}/tools/unity.py 8 ${sources}
                  WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} COMMAND_ERROR_IS_FATAL ANY
                  OUTPUT_VARIABLE batches OUTPUT_STRIP_TRAILING_WHITESPACE)
  separate_arguments(batches)
  foreach(source batch IN ZIP_LISTS sources batches)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${batch})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # It takes a batch's files for headers, whose unnamed types would differ from user to user.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()
