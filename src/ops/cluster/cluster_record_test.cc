// A cluster remembers itself: its shape, and the database and keys that are its own.
#include "ops/cluster/cluster_record.h"

#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/strings.h"
#include "base/temp_dir.h"

namespace swell::ops {
namespace {

class ClusterRecordTest : public ::testing::Test {
 protected:
  // What `swell up ARGUMENTS` would do.
  Result<std::map<std::string, std::string>> Up(const std::vector<std::string>& arguments,
                                                const AllowedChanges& allowed = {}) {
    cli::Flags flags;
    nodes = 1;
    listen = "127.0.0.1:0";
    flags.Int("--nodes", &nodes, "N", "");
    flags.Text("--listen", &listen, "HOST:PORT", "");
    std::vector<std::string> words;
    EXPECT_TRUE(flags.Parse(arguments, &words).ok());
    auto record = ReadClusterRecord(dir);
    if (!record.ok()) return record.status();
    auto shape = TakeShape(flags, *record, allowed);
    if (shape.ok()) {
      ClusterRecord now{*shape, "", ""};
      TakeFiles(dir, now);
      EXPECT_TRUE(WriteClusterRecord(dir, now).ok());
    }
    return shape;
  }
  Status Check(const AllowedChanges& allowed = {}) {
    auto record = ReadClusterRecord(dir);
    if (!record.ok()) return record.status();
    SWELL_RETURN_IF_ERROR(CheckClusterFiles(dir, *record, allowed));
    return KeepPort(dir, *record);
  }
  void Put(const std::string& name, const std::string& bytes, int mode = 0600) {
    ASSERT_TRUE(WriteFileAtomically(StrCat(dir.path, "/", name), bytes, mode).ok());
  }
  void SetUp() override { ASSERT_TRUE(PrepareDataDir(dir).ok()); }

  TempDir temp;
  const DataDir dir{temp.File("cluster")};
  int64_t nodes = 0;
  std::string listen;
};

TEST_F(ClusterRecordTest, AnotherStartHasTheShapeOfTheFirst) {
  ASSERT_TRUE(Up({"--nodes", "3"}).ok());
  ASSERT_TRUE(Up({}).ok());
  EXPECT_EQ(nodes, 3);
  ASSERT_TRUE(Up({"--nodes", "3"}).ok());
  const auto other = Up({"--nodes", "1", "--listen", "0.0.0.0:6443"});
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.status().message(),
            "the cluster in this directory has another shape: --nodes 1 (it was started with 3), "
            "--listen 0.0.0.0:6443 (it was started without this flag); leave the flags out to "
            "start it as it was, or add --reshape to give it the shape of these flags alone");
  ASSERT_TRUE(Up({"--nodes", "2"}, {.shape = true}).ok());
  ASSERT_TRUE(Up({}).ok());
  EXPECT_EQ(nodes, 2);
  ASSERT_TRUE(Up({"--listen", "127.0.0.1:1"}, {.shape = true}).ok());
  ASSERT_TRUE(Up({}).ok());
  EXPECT_EQ(nodes, 1);
  EXPECT_EQ(listen, "127.0.0.1:1");
}

TEST_F(ClusterRecordTest, ARecordThatCannotBeReadIsRefused) {
  Put("cluster.json", "[]");
  EXPECT_EQ(Up({}).status().code(), Code::kInvalid);
  Put("cluster.json", R"({"flags":{"nodes":"many"}})");
  EXPECT_NE(Up({}).status().message().find("flags.nodes"), std::string::npos);
  EXPECT_TRUE(Up({"--nodes", "2"}, {.shape = true}).ok());
}

TEST_F(ClusterRecordTest, ADatabaseThatIsGoneIsNotMadeAnew) {
  EXPECT_TRUE(Check().ok());
  Put("port", "1");
  EXPECT_NE(Check().message().find("swell.db is missing"), std::string::npos);
  Put("swell.db", "");
  EXPECT_NE(Check().message().find("swell.db is empty"), std::string::npos);
}

TEST_F(ClusterRecordTest, AShapeThatIsGoneIsNotGuessed) {
  Put("swell.db", "x");
  EXPECT_TRUE(Check().ok());  // of a first start that got no further
  for (const char* name : {"port", "kubeconfig"}) {
    Put(name, "1");
    EXPECT_NE(Check().message().find("cluster.json is missing, which remembers the nodes"),
              std::string::npos);
    EXPECT_NE(Check({.keys = true}).message().find("Or add --reshape"), std::string::npos);
    EXPECT_TRUE(Check({.shape = true}).ok());
    ASSERT_TRUE(RemoveTree(StrCat(dir.path, "/", name)).ok());
  }
}

TEST_F(ClusterRecordTest, APortThatIsGoneIsTheOneOfTheRecord) {
  for (const char* name : {"pki/ca.crt", "pki/ca.key", "pki/sa.key", "swell.db"}) Put(name, name);
  Put("port", "23456");
  ASSERT_TRUE(Up({}).ok());
  for (const char* lost : {"", "no port"}) {
    Put("port", lost);
    ASSERT_TRUE(Check().ok());
    EXPECT_EQ(*ReadFile(dir.PortFile(), 16), "23456");
  }
  ASSERT_TRUE(RemoveTree(dir.PortFile()).ok());
  ASSERT_TRUE(Check().ok());
  EXPECT_EQ(*ReadFile(dir.PortFile(), 16), "23456");
}

TEST_F(ClusterRecordTest, KeysThatAreGoneOrOthersAreNotMadeAnew) {
  for (const char* name : {"pki/ca.crt", "pki/ca.key", "pki/sa.key", "swell.db"}) Put(name, name);
  ASSERT_TRUE(Up({}).ok());
  EXPECT_TRUE(Check().ok());
  for (const char* name : {"pki/ca.crt", "pki/sa.key", "pki/ca.key"}) {
    ASSERT_TRUE(RemoveTree(StrCat(dir.path, "/", name)).ok());
    EXPECT_NE(Check().message().find(StrCat(name, " is missing")), std::string::npos) << name;
    EXPECT_TRUE(Check({.keys = true}).ok());
    Put(name, name);
  }
  Put("pki/ca.crt", "other");
  EXPECT_NE(Check().message().find("ca.crt is not the one of this cluster"), std::string::npos);
}

TEST_F(ClusterRecordTest, AClusterThatRunsIsNotStartedAgain) {
  EXPECT_TRUE(CheckNotRunning(dir, {}).ok());
  ASSERT_TRUE(LockDataDir(dir).ok());
  const std::string runs =
      StrCat("a cluster already runs in ", dir.path, " (process ", ::getpid(), "); ");
  const std::string stop = StrCat("swell down --data-dir ", dir.path);
  EXPECT_EQ(CheckNotRunning(dir, {}).message(), StrCat(runs, "stop it with: ", stop));
  EXPECT_EQ(CheckNotRunning(dir, {.shape = true}).message(),
            StrCat(runs, "to start it with these flags, stop it first: ", stop));
}

TEST_F(ClusterRecordTest, ADirectoryOfOtherFilesIsRefused) {
  const DataDir other{temp.File("thesis")};
  EXPECT_TRUE(CheckDirectoryIsOurs(other).ok());
  ASSERT_TRUE(MakeDirs(other.path).ok());
  EXPECT_TRUE(CheckDirectoryIsOurs(other).ok());
  ASSERT_TRUE(WriteFileAtomically(other.path + "/chapter-1.tex", "x").ok());
  ASSERT_TRUE(WriteFileAtomically(other.path + "/chapter-2.tex", "x").ok());
  EXPECT_EQ(CheckDirectoryIsOurs(other).message(),
            StrCat("the data directory ", other.path,
                   " holds \"chapter-1.tex\" and 1 more, and no cluster; name a directory that is "
                   "empty or does not exist"));
  ASSERT_TRUE(WriteFileAtomically(other.path + "/images.yaml", "x").ok());
  EXPECT_TRUE(CheckDirectoryIsOurs(other).ok());
  EXPECT_FALSE(CheckDirectoryIsOurs({other.path + "/chapter-1.tex"}).ok());
}

TEST_F(ClusterRecordTest, KeysAndDirectoriesForAllAreRefused) {
  Put("pki/sa.key", "x", 0644);
  EXPECT_NE(Check().message().find("chmod 600"), std::string::npos);
  Put("pki/sa.key", "x");
  ASSERT_EQ(::chmod(dir.path.c_str(), 0777), 0);
  EXPECT_NE(Check().message().find("chmod o-w"), std::string::npos);
  ASSERT_EQ(::chmod(dir.path.c_str(), 0755), 0);
  EXPECT_TRUE(Check().ok());
}

}  // namespace
}  // namespace swell::ops
