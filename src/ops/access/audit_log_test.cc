// The audit log on a disk that is full.
#include "ops/access/audit_log.h"

#include <unistd.h>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/strings.h"
#include "base/temp_dir.h"

namespace swell::ops {
namespace {

class AuditLogTest : public testing::Test {
 protected:
  // Until the writing thread has told so much.
  std::vector<std::string> Told(size_t count) {
    MutexLock lock(mutex_);
    while (told_.size() < count) changed_.Wait(mutex_);
    return told_;
  }

  TempDir dir_;
  const std::string path_ = dir_.File("audit.log");
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> told_;
};

TEST(AuditPlanTest, AMistakeNamesItsFlag) {
  EXPECT_TRUE(CheckAuditPlan({}).ok());
  EXPECT_EQ(AuditPlan{}.limits().bytes_max, LineFile::Limits{}.bytes_max);
  EXPECT_EQ(AuditPlan{}.limits().backups, LineFile::Limits{}.backups);
  EXPECT_EQ(CheckAuditPlan({.file_mib = 0}).message(),
            "--audit-log-maxsize 0: expected at least 1");
  EXPECT_EQ(CheckAuditPlan({.backups = 1001}).message(),
            "--audit-log-maxbackup 1001: expected 0 to 1000");
  const Status nothing = CheckAuditPlan({.level = "none", .required = true});
  EXPECT_TRUE(cli::IsMisuse(nothing));
  EXPECT_EQ(nothing.message(), "--audit-required: there is no audit log with --audit none");
}

TEST_F(AuditLogTest, AFullDiskIsAProblemUntilLinesAreWrittenAgain) {
  ASSERT_EQ(::symlink("/dev/full", path_.c_str()), 0);
  auto log = AuditLog::Open(path_, {}, nullptr, [this](const std::string& problem, uint64_t lost) {
    MutexLock lock(mutex_);
    told_.push_back(StrCat(problem.empty() ? "good" : "bad", ", missing ", lost));
    changed_.NotifyAll();
  });
  ASSERT_TRUE(log.ok()) << log.status().message();
  EXPECT_EQ((*log)->Problem(), "");
  (*log)->Append("{\"a\":1}\n");
  EXPECT_EQ(Told(1), std::vector<std::string>{"bad, missing 1"});
  EXPECT_NE((*log)->Problem().find("No space left on device"), std::string::npos)
      << (*log)->Problem();
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  (*log)->Append("{\"b\":2}\n");
  EXPECT_EQ(Told(2), (std::vector<std::string>{"bad, missing 1", "good, missing 1"}));
  EXPECT_EQ((*log)->Problem(), "");
  EXPECT_EQ(*ReadFile(path_, 100), "{\"b\":2}\n");
}

}  // namespace
}  // namespace swell::ops
