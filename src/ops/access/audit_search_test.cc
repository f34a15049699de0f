// What somebody finds in the audit log, and how far a search goes.
#include "ops/access/audit_search.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/strings.h"
#include "base/temp_dir.h"

namespace swell::ops {
namespace {

using apiserver::AuditQuery;

std::string Line(int at, const std::string& user, const std::string& verb, int code) {
  return StrCat(R"({"auditID":")", at, R"(","verb":")", verb, R"(","user":{"username":")", user,
                R"("},"objectRef":{"resource":"pods","namespace":"team","name":"p-)", at,
                R"("},"responseStatus":{"code":)", code, R"(},"stageTimestamp":"2026-01-01T00:00:)",
                at < 10 ? "0" : "", at, ".000000Z\"}\n");
}

class AuditSearchTest : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(dir_.path() + name, text).ok());
  }
  // The ids of what is found, the newest first; "+" where there may be more.
  std::string Find(std::string_view query) {
    const auto parsed = AuditQuery::Parse(query);
    if (!parsed.ok()) return parsed.status().message();
    const auto found = SearchAudit(dir_.path() + "/audit.log", *parsed);
    if (!found.ok()) return found.status().message();
    std::string ids;
    for (const json::Value& event : json::GetArray(*found, {"items"})) {
      ids += StrCat(ids.empty() ? "" : " ", json::GetString(event, {"auditID"}));
    }
    return json::GetBool(*found, {"more"}) ? ids + "+" : ids;
  }

  TempDir dir_;
};

TEST_F(AuditSearchTest, TheNewestComeFirstFromAllFiles) {
  EXPECT_EQ(Find(""), "");
  Write("/audit.log.2", Line(1, "ann", "create", 201) + Line(2, "bob", "delete", 403));
  Write("/audit.log.1",
        Line(3, "ann", "delete", 200) + "{\"cut off by a cra\n" + Line(4, "bob", "create", 201));
  Write("/audit.log", Line(5, "ann", "patch", 200) + Line(6, "bob", "delete", 409));
  EXPECT_EQ(Find(""), "6 5 4 3 2 1");
  EXPECT_EQ(Find("limit=2"), "6 5+");
  EXPECT_EQ(Find("user=ann"), "5 3 1");
  EXPECT_EQ(Find("user=bob&verb=delete"), "6 2");
  EXPECT_EQ(Find("refused=true"), "6 2");
  EXPECT_EQ(Find("name=p-3&resource=pods&namespace=team"), "3");
  EXPECT_EQ(Find("namespace=other"), "");
  EXPECT_EQ(Find("since=2026-01-01T00:00:04Z"), "6 5 4");
  EXPECT_EQ(Find("since=2026-01-01T00:00:02Z&until=2026-01-01T00:00:05Z&user=bob"), "4 2");
}

TEST_F(AuditSearchTest, LinesMayBeLongAndManyBlocks) {
  std::string text = Line(1, "ann", "create", 201);
  text += std::string(5 << 20, 'x') + "\n";  // no event, and longer than any
  for (int i = 0; i < 9000; ++i) text += Line(2, "bob", "create", 201);
  text += Line(3, "ann", "delete", 200);
  Write("/audit.log", text);
  EXPECT_EQ(Find("user=ann"), "3 1");
}

TEST_F(AuditSearchTest, AWrongQuestionNamesItsParameter) {
  EXPECT_EQ(Find("limit=0"), "audit: limit=0: expected 1 to 2000");
  EXPECT_EQ(Find("refused=maybe"), "audit: refused=maybe: expected true or false");
  EXPECT_EQ(Find("since=today"),
            "audit: since=today: expected a time such as 2026-01-31T08:00:00Z");
  EXPECT_NE(Find("colour=red").find("unknown parameter \"colour\""), std::string::npos);
}

}  // namespace
}  // namespace swell::ops
