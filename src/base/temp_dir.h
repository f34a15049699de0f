// TempDir: a directory of a test's own that goes away with it. For tests and benchmarks only.
// - Threads: none.
// - Ownership: the TempDir owns everything in the directory. It ends the test if it cannot remove
//   the directory.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/file.h"
#include "base/strings.h"

namespace swell {

class TempDir {
 public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "swell_test_XXXXXX").string();
    SWELL_CHECK(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~TempDir() { SWELL_CHECK_MSG(RemoveTree(path_).ok(), path_); }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  std::string File(std::string_view name) const { return StrCat(path_, "/", name); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace swell
