#include "ops/access/audit_events.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/apiserver/test_server.h"

namespace swell::ops {
namespace {

TEST(AuditEventsTest, BeginAndEndOfAGapAreEventsOfTheCluster) {
  apiserver::TestServer server;
  ASSERT_TRUE(server.Boot().boot.ok());
  const std::shared_ptr<api::RestHandler> handler(server.server.get(), [](api::RestHandler*) {});
  AuditEvents events(server.executor, server.executor, handler,
                     {"system:swell", "", {"system:masters"}}, 7);
  events.Tell("no space left on device", 0);
  events.Tell("", 12);
  server.executor.RunPosted();
  std::vector<std::string> told;
  const auto answer = server.Get("/api/v1/events");
  for (const json::Value& event : json::GetArray(answer.body, {"items"})) {
    EXPECT_EQ(json::GetString(event, {"involvedObject", "name"}), "kube-system");
    told.push_back(StrCat(json::GetString(event, {"type"}), " ", json::GetString(event, {"reason"}),
                          ": ", json::GetString(event, {"message"})));
  }
  std::sort(told.rbegin(), told.rend());
  EXPECT_EQ(told,
            (std::vector<std::string>{
                "Warning AuditLogFailed: the audit log misses what happens now: no space left on "
                "device",
                "Normal AuditLogWritten: the audit log is written again; events missing since the "
                "start: 12"}));
}

}  // namespace
}  // namespace swell::ops
