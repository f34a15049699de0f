#include "kube/process/background/kept_logs.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/strings.h"
#include "base/temp_dir.h"

namespace swell::process {
namespace {

class KeptLogsTest : public testing::Test {
 protected:
  KeptLogs Make(KeptLogs::Bounds bounds = {}) {
    KeptLogs logs(dir_.path() + "/kept", dir_.path() + "/trash", remover_, bounds);
    EXPECT_TRUE(logs.Start().ok());
    return logs;
  }
  // Keeps a pod's log of that many bytes.
  Status Keep(KeptLogs& logs, const std::string& job, const std::string& pod, size_t bytes = 4) {
    const std::string from = StrCat(dir_.path(), "/pods/", pod, "/logs");
    EXPECT_TRUE(MakeDirs(from + "/main").ok());
    EXPECT_TRUE(WriteFileAtomically(from + "/main/0.log", "old").ok());
    EXPECT_TRUE(WriteFileAtomically(from + "/main/1.log", std::string(bytes, 'x')).ok());
    return logs.Keep({job, pod, "default/" + pod}, from);
  }
  static std::string TextOf(const KeptLogs& logs, const std::string& pod, int attempt = -1) {
    auto path = logs.Path(pod, "default/" + pod, "main", attempt);
    if (!path.ok()) return path.status().message();
    auto text = ReadFile(*path);
    return text.ok() ? *text : text.status().message();
  }

  TempDir dir_;
  Remover remover_;
};

TEST_F(KeptLogsTest, ALogIsReadAfterItsPodAndAfterARestart) {
  {
    KeptLogs logs = Make();
    ASSERT_TRUE(Keep(logs, "job", "a").ok());
    EXPECT_EQ(TextOf(logs, "a"), "xxxx");
    EXPECT_EQ(TextOf(logs, "a", 0), "old");
  }
  const KeptLogs again = Make();
  EXPECT_EQ(TextOf(again, "a"), "xxxx");
  EXPECT_EQ(again.Jobs(), std::vector<std::string>{"job"});
}

TEST_F(KeptLogsTest, NobodyReadsItUnderAnotherName) {
  KeptLogs logs = Make();
  ASSERT_TRUE(Keep(logs, "job", "a").ok());
  EXPECT_EQ(logs.Path("a", "other/a", "main", 0).status().code(), Code::kNotFound);
  EXPECT_EQ(logs.Path("b", "default/a", "main", 0).status().code(), Code::kNotFound);
  EXPECT_EQ(logs.Path("a", "default/a", "../../b", 0).status().code(), Code::kInvalid);
  EXPECT_EQ(logs.Keep({"..", "a", "default/a"}, dir_.path()).code(), Code::kInvalid);
}

TEST_F(KeptLogsTest, TheOldestGoWhenAJobHasTooManyOrTooLongOnes) {
  KeptLogs logs = Make({.pods_per_job = 2, .bytes_per_job = 100});
  for (const char* pod : {"a", "b", "c"}) ASSERT_TRUE(Keep(logs, "job", pod).ok());
  ASSERT_TRUE(Keep(logs, "other", "d").ok());
  EXPECT_NE(TextOf(logs, "a"), "xxxx");
  EXPECT_EQ(TextOf(logs, "b"), "xxxx");
  EXPECT_EQ(TextOf(logs, "c"), "xxxx");
  ASSERT_TRUE(Keep(logs, "job", "e", 95).ok());
  EXPECT_NE(TextOf(logs, "c"), "xxxx");
  EXPECT_EQ(TextOf(logs, "e").size(), 95u);
  EXPECT_EQ(TextOf(logs, "d"), "xxxx");
}

TEST_F(KeptLogsTest, TheOldestOfAllJobsGoesWhenThereAreTooManyInAll) {
  KeptLogs logs = Make({.pods = 2});
  ASSERT_TRUE(Keep(logs, "one", "a").ok());
  ASSERT_TRUE(Keep(logs, "two", "b").ok());
  ASSERT_TRUE(Keep(logs, "two", "c").ok());
  EXPECT_EQ(logs.Jobs(), std::vector<std::string>{"two"});
}

TEST_F(KeptLogsTest, APodThatIsRemovedAgainHasItsNewestLog) {
  KeptLogs logs = Make();
  ASSERT_TRUE(Keep(logs, "job", "a").ok());
  ASSERT_TRUE(Keep(logs, "job", "a", 7).ok());
  EXPECT_EQ(TextOf(logs, "a"), "xxxxxxx");
}

TEST_F(KeptLogsTest, TheLogsGoWithTheJob) {
  KeptLogs logs = Make();
  ASSERT_TRUE(Keep(logs, "job", "a").ok());
  ASSERT_TRUE(Keep(logs, "other", "b").ok());
  logs.Forget("job");
  logs.Forget("unknown");
  EXPECT_EQ(logs.Jobs(), std::vector<std::string>{"other"});
  EXPECT_EQ(*ListDir(dir_.path() + "/kept"), std::vector<std::string>{"other"});
  // A pod of it goes later.
  ASSERT_TRUE(Keep(logs, "job", "c").ok());
  EXPECT_EQ(logs.Jobs(), std::vector<std::string>{"other"});
}

}  // namespace
}  // namespace swell::process
