// Watches: what is sent, in which form, and how they end.
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/api/rest/sink_capabilities.h"
#include "kube/apiserver/test_server.h"

namespace swell::apiserver {
namespace {

std::string Summary(const std::vector<json::Value>& events) {
  std::string text;
  for (const json::Value& event : events) {
    text += StrCat(json::GetString(event, {"type"}), ":",
                   json::GetString(event, {"object", "metadata", "name"}), " ");
  }
  return text;
}

class WatchTest : public ::testing::Test {
 protected:
  void SetUp() override { server.Boot(); }
  TestServer server;
  const std::string pods = StrCat(kPods, "?watch=true");
};

TEST_F(WatchTest, StartsWithTheStateOrAtAVersion) {
  server.Post(kPods, PodJson("a"));
  const std::string version = server.Get(kPods).Str({"metadata", "resourceVersion"});
  server.Post(kPods, PodJson("b"));
  EXPECT_EQ(Summary(server.Watch(pods).Take()), "ADDED:a ADDED:b ");
  EXPECT_EQ(Summary(server.Watch(StrCat(pods, "&resourceVersion=0")).Take()), "ADDED:a ADDED:b ");
  EXPECT_EQ(Summary(server.Watch(StrCat(pods, "&resourceVersion=", version)).Take()), "ADDED:b ");
  TestWatch one = server.Watch("/api/v1/namespaces/default/pods/a?watch=1");
  EXPECT_EQ(Summary(one.Take()), "ADDED:a ");
  TestWatch old_path = server.Watch("/api/v1/watch/namespaces/default/pods");
  EXPECT_EQ(Summary(old_path.Take()), "ADDED:a ADDED:b ");
}

TEST_F(WatchTest, LiveEventsCarryTheWholeObjectOnce) {
  TestWatch first = server.Watch(pods);
  TestWatch second = server.Watch(pods);
  const Answer made = server.Post(kPods, PodJson("p"));
  server.Merge(StrCat(kPods, "/p"), R"({"metadata":{"labels":{"x":"y"}}})");
  const Answer gone = server.Delete(StrCat(kPods, "/p"));
  const auto events = first.Take();
  EXPECT_EQ(Summary(events), "ADDED:p MODIFIED:p DELETED:p ");
  EXPECT_EQ(json::Print(*json::Find(events[0], {"object"})), made.text);
  // A deletion has a version of its own.
  EXPECT_GT(json::GetString(events[2], {"object", "metadata", "resourceVersion"}),
            json::GetString(events[1], {"object", "metadata", "resourceVersion"}));
  // Printed once, shared by both.
  ASSERT_EQ(first.sink->chunks.size(), second.sink->chunks.size());
  EXPECT_EQ(first.sink->chunks[0], second.sink->chunks[0]);
}

TEST_F(WatchTest, SelectionsAreEnteredAndLeft) {
  TestWatch labelled = server.Watch(StrCat(pods, "&labelSelector=app%3Dx"));
  TestWatch unbound = server.Watch(StrCat(pods, "&fieldSelector=spec.nodeName%3D"));
  server.Post(kPods, PodJson("p", "", R"({"app":"y"})"));
  server.Merge(StrCat(kPods, "/p"), R"({"metadata":{"labels":{"app":"x"}}})");
  server.Merge(StrCat(kPods, "/p"), R"({"metadata":{"labels":{"b":"c"}}})");
  const Answer left = server.Merge(StrCat(kPods, "/p"), R"({"metadata":{"labels":{"app":"z"}}})");
  const auto events = labelled.Take();
  EXPECT_EQ(Summary(events), "ADDED:p MODIFIED:p DELETED:p ");
  // What left is shown as it last was inside, at the version of leaving.
  EXPECT_EQ(json::GetString(events[2], {"object", "metadata", "labels", "app"}), "x");
  EXPECT_EQ(json::GetString(events[2], {"object", "metadata", "resourceVersion"}),
            left.Str({"metadata", "resourceVersion"}));
  server.Post(StrCat(kPods, "/p/binding"),
              R"({"metadata":{"name":"p"},"target":{"kind":"Node","name":"n"}})");
  EXPECT_EQ(Summary(unbound.Take()), "ADDED:p MODIFIED:p MODIFIED:p MODIFIED:p DELETED:p ");
}

// A caller in the server's process.
class SharingSink final : public api::RestSink, public api::ObjectSink {
 public:
  api::SinkCapabilities capabilities() override { return {.objects = this}; }
  void OnResponse(api::RestResponse) override { said += "response "; }
  void OnStreamStart(int, std::string) override {}
  bool OnChunk(const api::Chunk& chunk) override {
    const json::Value event = *json::Parse(*chunk);
    said += StrCat("bytes:", json::GetString(event, {"type"}), " ");
    return true;
  }
  void OnStreamEnd(const Status&) override { said += "end "; }
  bool OnObject(std::string_view type, const json::SharedValue& object) override {
    said += StrCat(type, ":", json::GetString(*object, {"metadata", "name"}), " ");
    objects.push_back(object);
    return true;
  }
  void OnObjects(api::ObjectList list) override {
    said += StrCat("list@", list.resource_version, list.continue_token.empty() ? " " : "+ ");
    objects = std::move(list.items);
  }

  std::string said;
  std::vector<json::SharedValue> objects;
};

TEST_F(WatchTest, ReceiversInTheProcessShareOneDocument) {
  auto first = std::make_shared<SharingSink>();
  auto second = std::make_shared<SharingSink>();
  TestWatch bytes = server.Watch(pods);
  const auto one = server.server->Handle(server.Request("GET", pods), first);
  const auto two = server.server->Handle(server.Request("GET", pods), second);
  server.Post(kPods, PodJson("p"));
  server.Merge(StrCat(kPods, "/p"), R"({"metadata":{"labels":{"x":"y"}}})");
  server.Post(StrCat(kPods, "/p/binding"),
              R"({"apiVersion":"v1","kind":"Binding","metadata":{"name":"p","labels":{"z":"1"},)"
              R"("annotations":{"devices":"0,1"}},"target":{"kind":"Node","name":"n"}})");
  server.Delete(StrCat(kPods, "/p?gracePeriodSeconds=0"));
  EXPECT_EQ(first->said, "ADDED:p MODIFIED:p MODIFIED:p DELETED:p ");
  EXPECT_EQ(second->said, first->said);
  EXPECT_EQ(second->objects, first->objects);
  auto events = bytes.Take();
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(json::GetString(*first->objects[2], {"spec", "nodeName"}), "n");
  for (size_t i = 0; i < events.size(); ++i) {
    json::Remove(events[i], {"object", "metadata", "managedFields"});
    EXPECT_EQ(json::Print(*first->objects[i]), json::Print(*json::Find(events[i], {"object"})));
  }
}

TEST_F(WatchTest, ListsForReceiversInTheProcessHaveTheVersionTheyAskFor) {
  server.Post(kPods, PodJson("a"));
  server.Post(kPods, PodJson("b"));
  server.Post("/apis/batch/v1/namespaces/default/cronjobs",
              R"({"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"c"},"spec":)"
              R"({"schedule":"* * * * *","jobTemplate":{"spec":{"template":{"spec":)"
              R"({"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}}})");
  const std::string version = server.Get(kPods).Str({"metadata", "resourceVersion"});
  auto list = [this](const std::string& target) {
    auto sink = std::make_shared<SharingSink>();
    const auto call = server.server->Handle(server.Request("GET", target), sink);
    return sink;
  };
  const auto all = list(kPods);
  EXPECT_EQ(all->said, StrCat("list@", version, " "));
  ASSERT_EQ(all->objects.size(), 2u);
  EXPECT_EQ(json::GetString(*all->objects[0], {"kind"}), "Pod");
  EXPECT_EQ(all->objects, list(kPods)->objects);
  EXPECT_EQ(list(StrCat(kPods, "?limit=1"))->said, StrCat("list@", version, "+ "));
  // What would have to be converted is printed.
  EXPECT_EQ(list("/apis/batch/v1/namespaces/default/cronjobs")->objects.size(), 1u);
  EXPECT_EQ(list("/apis/batch/v1beta1/namespaces/default/cronjobs")->said, "response ");
  EXPECT_EQ(list(StrCat(kPods, "/missing"))->said, "response ");
}

TEST_F(WatchTest, EndsWithItsTime) {
  TestWatch watch = server.Watch(StrCat(pods, "&timeoutSeconds=5"));
  server.executor.Advance(std::chrono::seconds(4));
  EXPECT_EQ(watch.sink->ends, 0);
  server.executor.Advance(std::chrono::seconds(2));
  EXPECT_EQ(watch.sink->ends, 1);
  EXPECT_TRUE(watch.sink->end.ok());
}

TEST_F(WatchTest, BookmarksKeepTheVersionFresh) {
  TestWatch watch = server.Watch(StrCat(pods, "&allowWatchBookmarks=true"));
  TestWatch without = server.Watch(pods);
  server.Post("/api/v1/namespaces/default/configmaps", R"({"metadata":{"name":"c"}})");
  server.executor.Advance(std::chrono::seconds(61));
  const auto events = watch.Take();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(json::GetString(events[0], {"type"}), "BOOKMARK");
  EXPECT_EQ(json::GetString(events[0], {"object", "kind"}), "Pod");
  EXPECT_EQ(json::GetString(events[0], {"object", "metadata", "resourceVersion"}),
            std::to_string(server.store->Version()));
  EXPECT_TRUE(without.Take().empty());
}

TEST_F(WatchTest, StreamingListEndsWithItsBookmark) {
  server.Post(kPods, PodJson("a"));
  const std::string query =
      "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
  const auto events = server.Watch(StrCat(pods, query)).Take();
  ASSERT_EQ(Summary(events), "ADDED:a BOOKMARK: ");
  EXPECT_EQ(json::GetString(events[1],
                            {"object", "metadata", "annotations", "k8s.io/initial-events-end"}),
            "true");
  EXPECT_EQ(server.Get(StrCat(pods, "&sendInitialEvents=true")).status, 422);
}

// Reads when it is told to.
class PacedTestSink final : public api::RestSink, public api::PacedSink {
 public:
  explicit PacedTestSink(size_t limit) : limit(limit) {}
  api::SinkCapabilities capabilities() override { return {.paced = this}; }
  void OnResponse(api::RestResponse /*response*/) override { ADD_FAILURE(); }
  void OnStreamStart(int /*status*/, std::string /*content_type*/) override {}
  bool OnChunk(const api::Chunk& chunk) override {
    EXPECT_TRUE(HasRoom()) << "more than was asked for";
    unread += chunk->size();
    got.sink->stream += *chunk;
    return true;
  }
  void OnStreamEnd(const Status& why) override { end = why; }
  void OnLongResponse(api::RestResponse head) override {
    EXPECT_EQ(head.status, 200);
    EXPECT_TRUE(head.body.empty());
    ++long_responses;
  }
  bool HasRoom() const override { return unread < limit / 2; }
  void WhenRoom(std::function<void()> go_on) override {
    ASSERT_EQ(go_on_, nullptr);
    go_on_ = std::move(go_on);
  }
  // false: nothing waits for it.
  bool Read() {
    unread = 0;
    const auto go_on = std::exchange(go_on_, nullptr);
    if (go_on) go_on();
    return go_on != nullptr;
  }

  const size_t limit;
  size_t unread = 0;
  int long_responses = 0;
  TestWatch got{std::make_shared<TestSink>(), nullptr};
  std::optional<Status> end;

 private:
  std::function<void()> go_on_;
};

TEST_F(WatchTest, WhatIsThereAtOnceIsSentAtTheReceiversPace) {
  const std::string maps = "/api/v1/namespaces/default/configmaps";
  const auto write = [&](int i) {
    server.Post(maps, StrCat(R"({"metadata":{"name":"m)", i, R"("},"data":{"x":")",
                             std::string(40'000, 'x'), R"("}})"));
  };
  const std::string before = server.Get(maps).Str({"metadata", "resourceVersion"});
  for (int i = 0; i < 20; ++i) write(i);
  for (const std::string& query :
       {std::string("?watch=1&resourceVersion=0&allowWatchBookmarks=1"),
        StrCat("?watch=1&allowWatchBookmarks=1&resourceVersion=", before),
        std::string("?watch=1&sendInitialEvents=1&resourceVersionMatch=NotOlderThan")}) {
    // With a small buffer, each object takes all of the room.
    for (const size_t limit : {size_t{64} << 10, size_t{512} << 10}) {
      auto sink = std::make_shared<PacedTestSink>(limit);
      const auto call = server.server->Handle(server.Request("GET", StrCat(maps, query)), sink);
      server.executor.RunPosted();
      EXPECT_LT(sink->got.Take().size(), 6U);
      // What happens meanwhile comes behind it, and no bookmark before it.
      server.Merge(StrCat(maps, "/m7"), R"({"data":{"x":"new"}})");
      server.executor.Advance(std::chrono::minutes(2));
      EXPECT_TRUE(sink->got.Take().empty()) << query;
      sink->got.read = 0;
      int pieces = 0;
      for (; sink->Read(); ++pieces) server.executor.RunPosted();
      EXPECT_GE(pieces, 9) << query;
      const auto events = sink->got.Take();
      ASSERT_GE(events.size(), 21U) << query;
      const json::Value& last = events[20];
      EXPECT_EQ(json::GetString(last, {"type"}), "MODIFIED") << json::Print(last).substr(0, 200);
      EXPECT_EQ(json::GetString(last, {"object", "data", "x"}), "new");
      EXPECT_FALSE(sink->end.has_value());
      write(7);
      server.Delete(StrCat(maps, "/m7"));
      write(7);
    }
  }
}

TEST_F(WatchTest, LongListsAreSentAtTheReceiversPace) {
  const std::string maps = "/api/v1/namespaces/default/configmaps";
  for (int i = 0; i < 20; ++i) {
    server.Post(maps, StrCat(R"({"metadata":{"name":"m)", i, R"("},"data":{"x":")",
                             std::string(200'000, 'x'), R"("}})"));
  }
  const std::string whole = server.Get(maps).text;
  auto sink = std::make_shared<PacedTestSink>(512 << 10);
  const auto call = server.server->Handle(server.Request("GET", maps), sink);
  server.executor.RunPosted();
  EXPECT_EQ(sink->long_responses, 1);
  EXPECT_LT(sink->got.sink->stream.size(), whole.size() / 2);
  // It is all of one moment.
  server.Delete(StrCat(maps, "/m19"));
  int pieces = 0;
  for (; sink->Read(); ++pieces) server.executor.RunPosted();
  EXPECT_GE(pieces, 1);
  ASSERT_TRUE(sink->end.has_value());
  EXPECT_TRUE(sink->end->ok());
  EXPECT_EQ(sink->got.sink->stream, whole);
}

TEST_F(WatchTest, TooOldIsGone) {
  store::Options small;
  small.history_events = 10;
  TestServer other({}, small);
  other.Boot();
  const std::string version = other.Get(kPods).Str({"metadata", "resourceVersion"});
  for (int i = 0; i < 20; ++i) other.Post(kPods, PodJson(StrCat("p", i)));
  const auto gone = other.Watch(StrCat(pods, "&resourceVersion=", version)).Take();
  ASSERT_EQ(gone.size(), 1U);
  EXPECT_EQ(json::GetString(gone[0], {"type"}), "ERROR");
  EXPECT_EQ(json::GetInt(gone[0], {"object", "code"}), 410);
  EXPECT_EQ(json::GetString(gone[0], {"object", "reason"}), "Expired");
  EXPECT_EQ(json::GetString(gone[0], {"object", "message"})
                .rfind(StrCat("too old resource version: ", version), 0),
            0U);
  EXPECT_EQ(other.Get(StrCat(pods, "&resourceVersion=999999")).status, 504);
  // So is a page of a list.
  const std::string token = other.Get(StrCat(kPods, "?limit=2")).Str({"metadata", "continue"});
  for (int i = 20; i < 40; ++i) other.Post(kPods, PodJson(StrCat("p", i)));
  const Answer page = other.Get(StrCat(kPods, "?limit=2&continue=", api::EscapeQuery(token)));
  EXPECT_EQ(page.status, 410);
  const std::string next = page.Str({"metadata", "continue"});
  EXPECT_EQ(other.Get(StrCat(kPods, "?limit=2&continue=", api::EscapeQuery(next))).status, 200);
}

TEST_F(WatchTest, ASlowReceiverEndsAlone) {
  TestWatch slow = server.Watch(pods, "", 1);
  TestWatch good = server.Watch(pods);
  for (int i = 0; i < 4; ++i) ASSERT_EQ(server.Post(kPods, PodJson(StrCat("p", i))).status, 201);
  EXPECT_EQ(slow.sink->ends, 1);
  EXPECT_EQ(slow.sink->end.code(), Code::kTooManyRequests);
  EXPECT_EQ(slow.Take().size(), 1U);
  EXPECT_EQ(good.sink->ends, 0);
  EXPECT_EQ(good.Take().size(), 4U);
}

TEST_F(WatchTest, ACancelledWatchHearsNothing) {
  TestWatch watch = server.Watch(pods);
  watch.call.reset();
  server.Post(kPods, PodJson("p"));
  server.executor.Advance(std::chrono::hours(2));
  EXPECT_TRUE(watch.sink->stream.empty());
  EXPECT_EQ(watch.sink->ends, 0);
}

TEST_F(WatchTest, TablesNameTheirColumnsOnce) {
  constexpr char kTable[] = "application/json;as=Table;v=v1;g=meta.k8s.io";
  TestWatch watch = server.Watch(pods, kTable);
  server.Post(kPods, PodJson("a"));
  server.Post(kPods, PodJson("b"));
  const auto events = watch.Take();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(json::GetString(events[0], {"object", "kind"}), "Table");
  EXPECT_EQ(json::GetArray(events[0], {"object", "columnDefinitions"}).size(), 9U);
  EXPECT_EQ(json::GetArray(events[1], {"object", "columnDefinitions"}).size(), 0U);
  EXPECT_EQ(json::GetArray(events[1], {"object", "rows"}).size(), 1U);
}

// The law of list and watch: a list and every event after it give the final state.
class WatchProperty : public ::testing::TestWithParam<uint64_t> {};

using State = std::map<std::string, std::string>;  // name → object

void ApplyEvents(const std::vector<json::Value>& events, State& state) {
  for (const json::Value& event : events) {
    const std::string name(json::GetString(event, {"object", "metadata", "name"}));
    if (json::GetString(event, {"type"}) == "DELETED") {
      ASSERT_EQ(state.erase(name), 1U) << name;
    } else {
      const bool added = json::GetString(event, {"type"}) == "ADDED";
      ASSERT_EQ(state.count(name) == 0, added) << name;
      state[name] = json::Print(*json::Find(event, {"object"}));
    }
  }
}

State ListState(TestServer& server, const std::string& query, std::string* version = nullptr) {
  const Answer list = server.Get(StrCat("/api/v1/namespaces/default/configmaps", query));
  EXPECT_EQ(list.status, 200) << list.text;
  State state;
  for (const json::Value& item : json::GetArray(list.body, {"items"})) {
    state[std::string(json::GetString(item, {"metadata", "name"}))] = json::Print(item);
  }
  if (version != nullptr) *version = list.Str({"metadata", "resourceVersion"});
  return state;
}

TEST_P(WatchProperty, ListAndWatchGiveTheFinalState) {
  SCOPED_TRACE(StrCat("seed ", GetParam()));
  TestServer server({}, {}, GetParam());
  server.Boot();
  Random random(GetParam());
  const std::string base = "/api/v1/namespaces/default/configmaps";
  struct Follower {
    std::string query;
    State state;
    TestWatch watch;
  };
  std::vector<Follower> followers;
  for (int step = 0; step < 300; ++step) {
    if (step % 50 == 0) {
      for (const char* selector : {"", "labelSelector=k%3D1", "fieldSelector=metadata.name%3Dc3"}) {
        Follower follower;
        follower.query = selector;
        std::string version;
        follower.state = ListState(server, StrCat("?", selector), &version);
        follower.watch =
            server.Watch(StrCat(base, "?watch=1&resourceVersion=", version, "&", selector));
        followers.push_back(std::move(follower));
      }
    }
    const std::string name = StrCat("c", random.Below(8));
    const std::string body = StrCat(R"({"metadata":{"name":")", name, R"(","labels":{"k":")",
                                    random.Below(3), R"("}},"data":{"step":")", step, "\"}}");
    // Fired without waiting for the answers: writes overlap.
    const uint64_t what = random.Below(4);
    api::RestRequest request =
        server.Request(what == 0   ? "DELETE"
                       : what == 1 ? "PATCH"
                                   : "POST",
                       what <= 1 ? StrCat(base, "/", name) : base, what == 0 ? "" : body,
                       what == 1 ? "application/merge-patch+json" : "");
    auto sink = std::make_shared<TestSink>();
    auto call = server.server->Handle(std::move(request), sink);
    if (random.OneIn(3)) server.executor.RunPosted();
    call.reset();  // not waiting does not undo the write
  }
  server.executor.RunPosted();
  for (Follower& follower : followers) {
    ApplyEvents(follower.watch.Take(), follower.state);
    EXPECT_EQ(follower.state, ListState(server, StrCat("?", follower.query))) << follower.query;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, WatchProperty, ::testing::Range<uint64_t>(1, 21));

}  // namespace
}  // namespace swell::apiserver
