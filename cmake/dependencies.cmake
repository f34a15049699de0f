# What Debian 12 provides; tools/packages.txt names the packages.
find_package(Threads REQUIRED)
find_package(Boost 1.81 REQUIRED)
find_package(OpenSSL 3 REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
# The archive: the program then needs no more at run time than before.
find_library(RE2_LIBRARY NAMES libre2.a re2 REQUIRED)
# The sanitizers bring an allocator of their own.
if(NOT SWELL_SANITIZE)
  find_library(JEMALLOC_LIBRARY NAMES libjemalloc_pic.a jemalloc REQUIRED)
endif()
find_package(benchmark REQUIRED)
if(SWELL_TESTS)
  find_package(GTest REQUIRED)
endif()
