// What an API server records and finds again.
#include "ops/access/cluster_audit.h"

#include <unistd.h>

#include <optional>

#include <gtest/gtest.h>

#include "base/temp_dir.h"
#include "kube/net/reactor/reactor.h"

namespace swell::ops {
namespace {

class ClusterAuditTest : public testing::Test {
 protected:
  // What the server would be told; the log stays open.
  apiserver::Options Server(const AuditPlan& plan, AuditLog::Changed changed = {}) {
    apiserver::Options server;
    auto opened = ClusterAudit::Open(core_, plan, path_, nullptr, std::move(changed));
    EXPECT_TRUE(opened.ok()) << opened.status().ToString();
    if (opened.ok()) audit_ = std::move(*opened);
    if (audit_) audit_->AddTo(server);
    return server;
  }

  const TempDir folder_;
  const std::string path_ = folder_.File("audit.log");
  net::Reactor core_;
  std::unique_ptr<ClusterAudit> audit_;
};

TEST_F(ClusterAuditTest, ThePlanSaysWhatIsRecorded) {
  EXPECT_FALSE(Server({.level = "none"}).audit);
  const apiserver::Options writes = Server({});
  EXPECT_EQ(writes.audit_level, apiserver::AuditLevel::kWrites);
  EXPECT_FALSE(writes.audit_required);
  const apiserver::Options all = Server({.level = "all", .required = true});
  EXPECT_EQ(all.audit_level, apiserver::AuditLevel::kAll);
  EXPECT_TRUE(all.audit_required);
}

TEST_F(ClusterAuditTest, WhatIsRecordedIsFound) {
  const std::string line =
      R"({"auditID":"7","user":{"username":"ann"},"stageTimestamp":"2026-01-01T00:00:00.000000Z"})";
  Server({}).audit(line + "\n");
  audit_.reset();  // what waits is written
  const apiserver::Options server = Server({});
  EXPECT_EQ(server.audit_problem(), "");
  std::optional<Result<json::Value>> found;
  server.search_audit(apiserver::AuditQuery::Parse("user=ann").value(),
                      [&](Result<json::Value> answer) {
                        found = std::move(answer);
                        core_.Stop();
                      });
  core_.Run();
  ASSERT_TRUE(found->ok()) << found->status().ToString();
  const json::Array& items = json::GetArray(**found, {"items"});
  ASSERT_EQ(items.size(), 1U);
  EXPECT_EQ(json::GetString(items[0], {"auditID"}), "7");
}

TEST_F(ClusterAuditTest, AProblemIsToldOnTheExecutor) {
  ASSERT_EQ(::symlink("/dev/full", path_.c_str()), 0);
  std::string told;
  const apiserver::Options server = Server({}, [&](const std::string& problem, uint64_t missing) {
    told = problem;
    EXPECT_EQ(missing, 1U);
    core_.Stop();
  });
  server.audit("{}\n");
  core_.Run();
  EXPECT_NE(told.find("No space left on device"), std::string::npos) << told;
  EXPECT_EQ(server.audit_problem(), told);
}

}  // namespace
}  // namespace swell::ops
