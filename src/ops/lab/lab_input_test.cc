#include "ops/lab/lab_input.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "base/temp_dir.h"

namespace swell::ops {
namespace {

TEST(LabInput, AFileThatCannotBeMadeIsRefusedBeforeTheRun) {
  const TempDir folder;
  const LabInput input;
  const std::string missing = StrCat(folder.path(), "/none/jobs.csv");
  EXPECT_EQ(input.CheckOutput("--csv", missing).message(),
            StrCat("--csv ", missing, ": there is no folder ", folder.path(), "/none"));
  EXPECT_TRUE(input.CheckOutput("--csv", StrCat(folder.path(), "/jobs.csv")).ok());
  for (const char* file : {"", "-", "jobs.csv", "/dev/null"}) {
    EXPECT_TRUE(input.CheckOutput("--csv", file).ok()) << file;
  }
}

}  // namespace
}  // namespace swell::ops
