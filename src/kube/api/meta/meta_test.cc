// Tests of metadata, times, conditions and names.
#include "kube/api/meta/meta.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/strings.h"
#include "json/json_test_util.h"
#include "kube/api/meta/rule_words.h"

namespace swell::api {
namespace {

using json::J;

TEST(Time, FormatsAndParses) {
  constexpr WallTime kStart{1767225600LL * 1'000'000'000};
  EXPECT_EQ(FormatTime(kStart), "2026-01-01T00:00:00Z");
  EXPECT_EQ(FormatMicroTime(kStart + std::chrono::nanoseconds(1'234'567)),
            "2026-01-01T00:00:00.001234Z");
  EXPECT_EQ(FormatTime({-1}), "1969-12-31T23:59:59Z");
  EXPECT_EQ(FormatMicroTime({-1000}), "1969-12-31T23:59:59.999999Z");
  EXPECT_EQ(ParseTime("2026-01-01T00:00:00Z"), kStart);
  EXPECT_EQ(ParseTime("2026-01-01T02:30:00+02:30"), kStart);
  EXPECT_EQ(ParseTime("2025-12-31t19:00:00-05:00"), kStart);
  EXPECT_EQ(ParseTime("2026-01-01T00:00:00.5z"), kStart + std::chrono::milliseconds(500));
  EXPECT_EQ(ParseTime("2026-01-01T00:00:00.1234567891Z"),
            kStart + std::chrono::nanoseconds(123'456'789));
  EXPECT_TRUE(ParseTime("2024-02-29T00:00:00Z").has_value());
}

TEST(Time, RefusesWhatIsNotATime) {
  for (const char* text :
       {"", "2026-01-01", "2026-01-01T00:00:00", "2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z",
        "2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z", "2026-01-01T00:00:60Z",
        "2026-01-01T00:00:00.Z", "2026-01-01T00:00:00+24:00", "2026-01-01T00:00:00Zx",
        "2026-1-1T00:00:00Z", "10000-01-01T00:00:00Z", "2026-01-01T00:00:00+0200", "now"}) {
    EXPECT_FALSE(ParseTime(text).has_value()) << text;
  }
}

TEST(Time, TimesBeyondTheClockAreItsEnds) {
  EXPECT_EQ(ParseTime("0001-01-01T00:00:00Z"), WallTime{INT64_MIN});
  EXPECT_EQ(ParseTime("9999-12-31T23:59:59Z"), WallTime{INT64_MAX});
  EXPECT_LT(*ParseTime("1969-12-31T23:59:59.5Z"), WallTime{});
}

TEST(Time, EverySecondComesBack) {
  Random random(1);
  for (int i = 0; i < 2000; ++i) {
    int64_t seconds = static_cast<int64_t>(random.Below(12'000'000'000)) - 4'000'000'000;
    WallTime time{seconds * 1'000'000'000};
    EXPECT_EQ(ParseTime(FormatTime(time)), time) << FormatTime(time);
  }
}

TEST(Meta, ReadsTheFieldsOfEveryObject) {
  json::Value pod = J(R"({"metadata":{"name":"p","namespace":"team","uid":"u1",
      "resourceVersion":"42","labels":{"app":"x"},"annotations":{"a/b":"y"},
      "creationTimestamp":"2026-01-01T00:00:00Z","deletionTimestamp":"2026-01-01T00:00:01Z"}})");
  EXPECT_EQ(KeyOf(pod), "team/p");
  EXPECT_EQ(KeyOf(J(R"({"metadata":{"name":"n"}})")), "n");
  EXPECT_EQ(Uid(pod), "u1");
  EXPECT_EQ(ResourceVersion(pod), 42u);
  EXPECT_EQ(ResourceVersion(J(R"({"metadata":{"resourceVersion":"4x"}})")), 0u);
  EXPECT_EQ(Label(pod, "app"), "x");
  EXPECT_EQ(Label(pod, "nope"), "");
  EXPECT_EQ(Annotation(pod, "a/b"), "y");
  EXPECT_TRUE(IsDeleting(pod));
  EXPECT_FALSE(IsDeleting(J("{}")));
  EXPECT_EQ(FormatTime(CreationTime(pod)), "2026-01-01T00:00:00Z");
  EXPECT_EQ(CreationTime(J("[]")), WallTime{});
}

TEST(Meta, OwnersAreMadeAndFound) {
  json::Value owner =
      J(R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j","uid":"u"}})");
  json::Value reference = MakeOwnerReference(owner);
  EXPECT_EQ(json::Print(reference),
            R"({"apiVersion":"batch/v1","kind":"Job","name":"j","uid":"u","controller":true,)"
            R"("blockOwnerDeletion":true})");
  json::Value object = J("{}");
  json::Set(object, {"metadata", "ownerReferences"},
            json::Array({MakeOwnerReference(J("{}"), false), reference, 3}));
  EXPECT_EQ(Owners(object).size(), 2u);
  auto controller = ControllerOf(object);
  ASSERT_TRUE(controller.has_value());
  EXPECT_EQ(controller->name, "j");
  EXPECT_TRUE(controller->block_owner_deletion);
  EXPECT_FALSE(ControllerOf(J("{}")).has_value());
}

TEST(Conditions, TransitionTimeMovesWithTheStatusOnly) {
  json::Value object = J(R"({"status":{"conditions":[{"type":"Ready","status":"False",
      "lastTransitionTime":"2025-01-01T00:00:00Z","reason":"Old","message":"m","extra":1}]}})");
  json::Array& conditions = json::FindMutable(object, {"status", "conditions"})->get_array();
  WallTime now = *ParseTime("2026-01-01T00:00:00Z");
  EXPECT_FALSE(SetCondition(conditions, "Ready", "False", "Old", "m", now));
  EXPECT_TRUE(SetCondition(conditions, "Ready", "False", "New", "m", now));
  EXPECT_EQ(json::GetString(conditions[0], {"lastTransitionTime"}), "2025-01-01T00:00:00Z");
  EXPECT_FALSE(ConditionIsTrue(object, "Ready"));
  EXPECT_TRUE(SetCondition(conditions, "Ready", "True", "New", "m", now));
  EXPECT_EQ(json::GetString(conditions[0], {"lastTransitionTime"}), "2026-01-01T00:00:00Z");
  EXPECT_EQ(json::GetInt(conditions[0], {"extra"}), 1);
  EXPECT_TRUE(SetCondition(conditions, "Other", "True", "r", "m", now));
  EXPECT_TRUE(ConditionIsTrue(object, "Ready"));
  ASSERT_TRUE(FindCondition(object, "Other"));
  EXPECT_EQ(FindCondition(object, "Other")->document, &conditions[1]);
  EXPECT_FALSE(FindCondition(object, "None"));
}

TEST(Conditions, EachIsReadOnce) {
  const json::Value object = J(R"({"status":{"conditions":[
            {"type":"Ready","status":"False","reason":"Why","message":"what",
             "lastTransitionTime":"2026-01-01T00:00:00Z"},
            {"type":"Odd","status":7}]}})");
  const std::vector<Condition> all = Conditions(object);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].type, "Ready");
  EXPECT_TRUE(all[0].IsFalse());
  EXPECT_EQ(all[0].reason, "Why");
  EXPECT_EQ(all[0].message, "what");
  EXPECT_EQ(all[0].Since(), ParseTime("2026-01-01T00:00:00Z"));
  EXPECT_FALSE(all[1].IsTrue());
  EXPECT_FALSE(all[1].IsFalse());
  EXPECT_FALSE(all[1].Since());
  EXPECT_TRUE(Conditions(J("{}")).empty());
}

TEST(Durations, AsKubectlPrintsThem) {
  const std::pair<int64_t, std::string> cases[] = {{-5, "<invalid>"},
                                                   {-1, "0s"},
                                                   {0, "0s"},
                                                   {59, "59s"},
                                                   {119, "119s"},
                                                   {120, "2m"},
                                                   {192, "3m12s"},
                                                   {599, "9m59s"},
                                                   {600, "10m"},
                                                   {3 * 3600 - 1, "179m"},
                                                   {3 * 3600, "3h"},
                                                   {3 * 3600 + 60, "3h1m"},
                                                   {8 * 3600 + 60, "8h"},
                                                   {47 * 3600, "47h"},
                                                   {48 * 3600, "2d"},
                                                   {52 * 3600, "2d4h"},
                                                   {8 * 86400 + 3600, "8d"},
                                                   {729 * 86400, "729d"},
                                                   {730 * 86400, "2y"},
                                                   {731 * 86400, "2y1d"},
                                                   {9LL * 365 * 86400, "9y"}};
  for (const auto& [seconds, text] : cases) {
    EXPECT_EQ(HumanDuration(std::chrono::seconds(seconds)), text) << seconds;
  }
}

TEST(Names, AreCheckedInKubernetesWords) {
  for (const char* good : {"a", "a-b", "1.2.3", "a.b-c"}) EXPECT_EQ(CheckDnsSubdomain(good), "");
  for (const char* bad : {"", "A", "a..b", "-a", "a-", ".a", "a_b", "a."}) {
    EXPECT_NE(CheckDnsSubdomain(bad).find("a lowercase RFC 1123 subdomain must consist"),
              std::string::npos)
        << bad;
  }
  EXPECT_EQ(CheckDnsSubdomain(std::string(254, 'a')), "must be no more than 253 characters");
  EXPECT_EQ(CheckDnsLabel("a-1"), "");
  EXPECT_NE(CheckDnsLabel("a.b"), "");
  EXPECT_EQ(CheckDnsLabel(std::string(64, 'a')), "must be no more than 63 characters");
  for (const char* good : {"app", "A_b.c", "example.com/Name"}) {
    EXPECT_EQ(CheckQualifiedName(good), "") << good;
  }
  EXPECT_EQ(CheckQualifiedName(""), "name part must be non-empty");
  EXPECT_EQ(CheckQualifiedName("a/"), "name part must be non-empty");
  EXPECT_EQ(CheckQualifiedName("/a"), "prefix part must be non-empty");
  EXPECT_NE(CheckQualifiedName("a/b/c").find("a qualified name must consist"), std::string::npos);
  EXPECT_NE(CheckQualifiedName("A/b").find("prefix part a lowercase"), std::string::npos);
  EXPECT_NE(CheckQualifiedName("-a").find("name part must consist"), std::string::npos);
  EXPECT_EQ(CheckLabelValue(""), "");
  EXPECT_EQ(CheckLabelValue("a_b"), "");
  EXPECT_NE(CheckLabelValue("a b").find("a valid label must be an empty string"),
            std::string::npos);
  EXPECT_EQ(CheckLabelValue(std::string(64, 'a')), "must be no more than 63 characters");
}

TEST(Meta, ReferencesNameWhatTheObjectSays) {
  const json::Value object = json::Object{
      {"apiVersion", "batch/v1"},
      {"kind", "Job"},
      {"metadata",
       json::Object{{"name", "j"}, {"namespace", "n"}, {"uid", "u"}, {"resourceVersion", "7"}}}};
  const json::Object all{{"apiVersion", "batch/v1"}, {"kind", "Job"}, {"name", "j"},
                         {"namespace", "n"},         {"uid", "u"},    {"resourceVersion", "7"}};
  EXPECT_EQ(ObjectReferenceTo(object), all);
  const json::Value node = json::Object{{"metadata", json::Object{{"name", "n1"}}}};
  EXPECT_EQ(ObjectReferenceTo(node), (json::Object{{"name", "n1"}}));
}

TEST(RuleWords, AStarStandsForEveryWord) {
  const std::vector<std::string> texts = {"get", "list"};
  EXPECT_TRUE(HasWordOrAll(texts, "list"));
  EXPECT_FALSE(HasWordOrAll(texts, "watch"));
  EXPECT_FALSE(HasWordOrAll(std::vector<std::string>(), "get"));
  EXPECT_TRUE(HasWordOrAll(std::vector<std::string>{"get", "*"}, "watch"));
  EXPECT_TRUE(HasWordOrAll(json::Array{"get"}, "get"));
  EXPECT_TRUE(HasWordOrAll(json::Array{1, "*"}, "watch"));
  EXPECT_FALSE(HasWordOrAll(json::Array{1, "get"}, "watch"));
}

}  // namespace
}  // namespace swell::api
