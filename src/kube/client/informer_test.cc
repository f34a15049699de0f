// Informers against a server that does everything a server under stress does, in virtual time: it
// must be known at any moment what it holds, so that the copy can be compared.
#include "kube/client/informer.h"

#include <cstdlib>
#include <deque>

#include <gtest/gtest.h>

#include "base/sim_executor.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/rest/sink_capabilities.h"

namespace swell::client {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Which of its bad habits the server has at the moment, in percent per opportunity.
struct Habits {
  int refuse_list = 0;    // 500, 503, 429 or a broken connection
  int refuse_watch = 0;   // the same, or 410
  int cut_watch = 0;      // after each event: often in the middle of a line
  int error_event = 0;    // before each event: ERROR with 410 or 500
  int garbage = 0;        // before each event: a line that is not an event
  int go_silent = 0;      // the watch says nothing any more and never ends
  int expire_token = 0;   // continue tokens are too old
  int slow_answer_s = 0;  // answers take up to this long
  int share_object = 50;  // each event, and each page of a list, comes as documents
};

constexpr Habits kHostile{.refuse_list = 30,
                          .refuse_watch = 30,
                          .cut_watch = 10,
                          .error_event = 5,
                          .garbage = 2,
                          .go_silent = 3,
                          .expire_token = 20,
                          .slow_answer_s = 20};

class HostileServer final : public api::RestHandler {
 public:
  HostileServer(SimExecutor& executor, uint64_t seed) : executor_(executor), random_(seed) {}

  void Put(const std::string& name) {
    auto it = objects_.find(name);
    std::string type = it == objects_.end() ? "ADDED" : "MODIFIED";
    std::string uid =
        it == objects_.end() ? StrCat("uid-", version_) : std::string(api::Uid(it->second));
    json::Value object = Object(name, uid, ++version_);
    objects_[name] = object;
    Tell(type, object);
  }
  void Delete(const std::string& name) {
    auto it = objects_.find(name);
    if (it == objects_.end()) return;
    json::Value last = Object(name, api::Uid(it->second), ++version_);
    objects_.erase(it);
    Tell("DELETED", last);
  }
  // As after a compaction: nothing before now can be watched from.
  void Compact() { history_.clear(); }
  // The process dies: every watch is cut.
  void Restart() {
    for (auto& watch : std::exchange(watches_, {})) watch->sink->OnStreamEnd(Broken());
  }
  void Behave(const Habits& habits) { habits_ = habits; }

  std::map<std::string, std::string> Versions() const {
    std::map<std::string, std::string> versions;
    for (const auto& [name, object] : objects_) {
      versions["ns/" + name] = json::GetString(object, {"metadata", "resourceVersion"});
    }
    return versions;
  }
  int lists = 0;
  int watches = 0;
  size_t open_watches() const { return watches_.size(); }

  std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                        std::shared_ptr<api::RestSink> sink) override {
    auto gone = std::make_shared<bool>(false);
    auto query = api::ParseQuery(request.query);
    std::map<std::string, std::string> parameters(query->begin(), query->end());
    Duration delay = milliseconds(1 + random_.Below(20));
    if (habits_.slow_answer_s > 0) delay += seconds(random_.Below(habits_.slow_answer_s));
    executor_.After(delay, [this, gone, parameters, sink] {
      if (*gone) return;
      if (parameters.contains("watch")) {
        Watch(parameters, gone, sink);
      } else {
        List(parameters, sink);
      }
    });
    struct Call final : api::RestCall {
      explicit Call(std::shared_ptr<bool> flag) : gone(std::move(flag)) {}
      ~Call() override { *gone = true; }
      std::shared_ptr<bool> gone;
    };
    return std::make_unique<Call>(gone);
  }

 private:
  struct OpenWatch {
    std::shared_ptr<bool> gone;
    std::shared_ptr<api::RestSink> sink;
    bool silent = false;
  };
  struct Event {
    uint64_t version;
    std::string type;
    json::SharedValue object;  // without managedFields
    std::string line;
  };

  bool Chance(int percent) { return static_cast<int>(random_.Below(100)) < percent; }
  static Status Broken() { return Status(Code::kUnavailable, "connection reset by peer"); }

  static json::Value Object(const std::string& name, std::string_view uid, uint64_t version) {
    return json::Object{{"apiVersion", "v1"},
                        {"kind", "Pod"},
                        {"metadata", json::Object{{"namespace", "ns"},
                                                  {"name", name},
                                                  {"uid", uid},
                                                  {"managedFields", json::Array{1, 2, 3}},
                                                  {"resourceVersion", std::to_string(version)}}}};
  }
  static api::RestResponse Answer(int status, std::string_view reason) {
    json::Value body =
        json::Object{{"kind", "Status"}, {"reason", reason}, {"message", reason}, {"code", status}};
    api::RestResponse response;
    response.status = status;
    response.body = {api::MakeChunk(json::Print(body))};
    return response;
  }
  void Refuse(api::RestSink& sink) {
    switch (random_.Below(4)) {
      case 0:
        return sink.OnResponse(Answer(500, "InternalError"));
      case 1:
        return sink.OnResponse(Answer(503, "ServiceUnavailable"));
      case 2:
        return sink.OnResponse(Answer(429, "TooManyRequests"));
      default:
        return sink.OnResponse(Answer(401, "Unauthorized"));
    }
  }

  // Pages are slices of a snapshot that is kept with its token.
  void List(std::map<std::string, std::string> parameters,
            const std::shared_ptr<api::RestSink>& sink) {
    ++lists;
    if (Chance(habits_.refuse_list)) return Refuse(*sink);
    std::string token = parameters["continue"];
    if (token.empty()) {
      token = std::to_string(++tokens_);
      snapshots_[token] = {version_, {}};
      for (const auto& [name, object] : objects_) snapshots_[token].second.push_back(object);
      if (snapshots_.size() > 4) snapshots_.erase(snapshots_.begin());
    } else if (Chance(habits_.expire_token) || !snapshots_.contains(token)) {
      return sink->OnResponse(Answer(410, "Expired"));
    }
    auto& [version, rest] = snapshots_[token];
    int64_t limit = ParseInt(parameters["limit"]).value_or(0);
    json::Array items;
    api::ObjectList shared{{}, std::to_string(version), ""};
    const bool share = Chance(habits_.share_object);
    auto size = [&] { return static_cast<int64_t>(items.size() + shared.items.size()); };
    while (!rest.empty() && (limit == 0 || size() < limit)) {
      json::Value item = std::move(rest.front());
      rest.pop_front();
      if (share) {
        json::Remove(item, {"metadata", "managedFields"});
        shared.items.push_back(std::make_shared<const json::Value>(std::move(item)));
        continue;
      }
      json::Remove(item, {"kind"});
      json::Remove(item, {"apiVersion"});
      items.push_back(std::move(item));
    }
    if (share) {
      if (!rest.empty()) shared.continue_token = token;
      return sink->capabilities().objects->OnObjects(std::move(shared));
    }
    json::Object metadata{{"resourceVersion", std::to_string(version)}};
    if (!rest.empty()) metadata["continue"] = token;
    json::Value list = json::Object{{"kind", "PodList"},
                                    {"apiVersion", "v1"},
                                    {"metadata", std::move(metadata)},
                                    {"items", std::move(items)}};
    api::RestResponse response;
    response.body = {api::MakeChunk(json::Print(list))};
    sink->OnResponse(std::move(response));
  }

  void Watch(std::map<std::string, std::string> parameters,
             const std::shared_ptr<bool>& gone,
             const std::shared_ptr<api::RestSink>& sink) {
    ++watches;
    if (Chance(habits_.refuse_watch)) return Refuse(*sink);
    auto from = ParseUint(parameters["resourceVersion"]).value_or(0);
    bool known = from == version_ || (!history_.empty() && history_.front().version <= from + 1);
    if (!known) return sink->OnResponse(Answer(410, "Expired"));
    sink->OnStreamStart(200, "application/json");
    auto watch = std::make_shared<OpenWatch>(OpenWatch{gone, sink});
    watches_.push_back(watch);
    executor_.After(seconds(ParseInt(parameters["timeoutSeconds"]).value_or(300)),
                    [this, watch] { End(watch, Status::Ok()); });
    for (const Event& event : std::deque<Event>(history_)) {
      if (event.version > from) Send(watch, event);
    }
  }

  void Tell(const std::string& type, const json::Value& object) {
    json::Value content = object;
    json::Remove(content, {"metadata", "managedFields"});
    const Event event{version_, type, std::make_shared<const json::Value>(std::move(content)),
                      StrCat(json::Print(json::Object{{"type", type}, {"object", object}}), "\n")};
    history_.push_back(event);
    if (history_.size() > 200) history_.pop_front();
    for (const auto& watch : std::vector<std::shared_ptr<OpenWatch>>(watches_)) Send(watch, event);
    if (!Chance(20)) return;
    json::Value mark = json::Object{
        {"type", "BOOKMARK"},
        {"object",
         json::Object{{"metadata", json::Object{{"resourceVersion", std::to_string(version_)}}}}}};
    for (const auto& watch : std::vector<std::shared_ptr<OpenWatch>>(watches_)) {
      Write(*watch, StrCat(json::Print(mark), "\n"));
    }
  }

  void Send(const std::shared_ptr<OpenWatch>& watch, const Event& event) {
    if (!IsOpen(watch) || *watch->gone) return;
    if (Chance(habits_.go_silent)) watch->silent = true;
    if (watch->silent) return;
    if (Chance(habits_.error_event)) {
      bool gone = Chance(50);
      Write(*watch,
            gone ? R"({"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Gone"}})"
                   "\n"
                 : R"({"type":"ERROR","object":{"kind":"Status","code":500}})"
                   "\n");
      watch->silent = true;  // and never ends the stream
      return;
    }
    if (Chance(habits_.garbage)) Write(*watch, "{\"type\":\"ADDED\",\"obj\n");
    if (Chance(habits_.cut_watch)) {
      Write(*watch, event.line.substr(0, random_.Below(event.line.size())));
      return End(watch, Broken());
    }
    auto* objects = watch->sink->capabilities().objects;
    ASSERT_NE(objects, nullptr) << "an informer shares what its server has";
    if (Chance(habits_.share_object)) {
      objects->OnObject(event.type, event.object);
    } else {
      Write(*watch, event.line);
    }
  }
  // In pieces of any size.
  void Write(OpenWatch& watch, std::string_view bytes) {
    if (watch.silent) return;
    while (!bytes.empty()) {
      size_t size = 1 + random_.Below(bytes.size());
      watch.sink->OnChunk(api::MakeChunk(std::string(bytes.substr(0, size))));
      bytes.remove_prefix(size);
    }
  }
  bool IsOpen(const std::shared_ptr<OpenWatch>& watch) const {
    return std::find(watches_.begin(), watches_.end(), watch) != watches_.end();
  }
  void End(const std::shared_ptr<OpenWatch>& watch, const Status& why) {
    if (!IsOpen(watch) || watch->silent) return;
    std::erase(watches_, watch);
    if (!*watch->gone) watch->sink->OnStreamEnd(why);
  }

  SimExecutor& executor_;
  Random random_;
  Habits habits_;
  uint64_t version_ = 100;
  uint64_t tokens_ = 0;
  std::map<std::string, json::Value> objects_;
  std::map<std::string, std::pair<uint64_t, std::deque<json::Value>>> snapshots_;
  std::deque<Event> history_;
  std::vector<std::shared_ptr<OpenWatch>> watches_;
};

// What a controller would believe from the handlers alone; checks that they tell a true story.
class Story {
 public:
  explicit Story(Informer& informer) {
    informer.AddHandlers(
        {.on_add =
             [this](const json::SharedValue& object) {
               EXPECT_FALSE(known.contains(api::KeyOf(*object))) << "added twice";
               Keep(*object);
             },
         .on_update =
             [this](const json::SharedValue& old_object, const json::SharedValue& object) {
               EXPECT_TRUE(known.contains(api::KeyOf(*object)));
               EXPECT_EQ(api::Uid(*old_object), api::Uid(*object));
               Keep(*object);
             },
         .on_delete =
             [this](const json::SharedValue& last) {
               EXPECT_EQ(known.erase(api::KeyOf(*last)), 1u) << "deleted twice";
             }});
  }
  std::map<std::string, std::string> known;  // key → resourceVersion

 private:
  void Keep(const json::Value& object) {
    EXPECT_EQ(json::Find(object, {"metadata", "managedFields"}), nullptr);
    EXPECT_EQ(json::GetString(object, {"kind"}), "Pod");
    std::string version(json::GetString(object, {"metadata", "resourceVersion"}));
    std::string& last = known[api::KeyOf(object)];
    EXPECT_LE(ParseInt(last).value_or(0), ParseInt(version).value_or(0)) << "time went back";
    last = version;
  }
};

uint64_t FirstSeed() {
  const char* text = std::getenv("SWELL_SEED");
  return text ? ParseUint(text).value_or(1) : 1;
}

class InformerTest : public ::testing::Test {
 protected:
  void Make(uint64_t seed, InformerOptions options = {}) {
    server = std::make_shared<HostileServer>(executor, seed);
    informer = std::make_unique<Informer>(executor, server, api::UserInfo{}, resources::kPods,
                                          options, seed);
    story = std::make_unique<Story>(*informer);
  }

  SimExecutor executor;
  std::shared_ptr<HostileServer> server;
  std::unique_ptr<Informer> informer;
  std::unique_ptr<Story> story;
};

TEST_F(InformerTest, PagesItsListAndThenWatches) {
  Make(1, {.page_size = 10});
  for (int i = 0; i < 35; ++i) server->Put(StrCat("pod-", i));
  informer->Start();
  executor.Advance(seconds(2));
  EXPECT_TRUE(informer->synced());
  EXPECT_EQ(server->lists, 4);
  EXPECT_EQ(story->known, server->Versions());
  server->Put("late");
  server->Delete("pod-7");
  executor.Advance(seconds(1));
  EXPECT_EQ(story->known, server->Versions());
  EXPECT_EQ(informer->lists(), 1);
}

TEST_F(InformerTest, EverybodySeesWhatIsKnownFromElsewhere) {
  Make(1);
  std::string word = "early";
  informer->SetTransform([&word](const json::SharedValue& pod) {
    if (api::Name(*pod) != "a" || api::Annotation(*pod, "word") == word) return pod;
    json::Value changed = *pod;
    json::Set(changed, {"metadata", "annotations", "word"}, word);
    return std::make_shared<const json::Value>(std::move(changed));
  });
  std::string heard;
  informer->AddIndex(
      "word", [](const json::Value& pod) { return std::string(api::Annotation(pod, "word")); });
  informer->AddHandlers(
      {.on_add = [&](const json::SharedValue& it) { heard += api::Annotation(*it, "word"); },
       .on_update =
           [&](const json::SharedValue& old_object, const json::SharedValue& it) {
             heard += StrCat(" ", api::Annotation(*old_object, "word"), ">",
                             api::Annotation(*it, "word"));
           },
       .on_delete =
           [&](const json::SharedValue& last) {
             heard += StrCat(" -", api::Annotation(*last, "word"));
           }});
  server->Put("a");
  server->Put("b");
  informer->Start();
  executor.Advance(seconds(2));
  word = "late";
  informer->Retransform("ns/a");
  informer->Retransform("ns/b");
  informer->Retransform("ns/nobody");
  EXPECT_EQ(informer->ByIndex("word", "late").size(), 1u);
  EXPECT_TRUE(informer->ByIndex("word", "early").empty());
  server->Put("a");
  server->Delete("a");
  executor.Advance(seconds(1));
  EXPECT_EQ(heard, "early early>late late>late -late");
  EXPECT_EQ(story->known, server->Versions());
}

TEST_F(InformerTest, ResumesWhereItWasAfterARestart) {
  Make(1);
  server->Put("a");
  informer->Start();
  executor.Advance(seconds(2));
  server->Restart();
  server->Put("b");
  server->Delete("a");
  executor.Advance(seconds(2));
  EXPECT_EQ(story->known, server->Versions());
  EXPECT_EQ(informer->lists(), 1) << "it had not lost its place";
}

TEST_F(InformerTest, ListsAgainWhenItsPlaceIsGone) {
  Make(1);
  server->Put("a");
  server->Put("b");
  informer->Start();
  executor.Advance(seconds(2));
  server->Restart();
  server->Delete("a");
  server->Put("c");
  server->Compact();
  executor.Advance(seconds(5));
  EXPECT_EQ(story->known, server->Versions());
  EXPECT_EQ(informer->lists(), 2);
}

TEST_F(InformerTest, GivesUpAWatchThatFellSilent) {
  Make(1);
  informer->Start();
  executor.Advance(seconds(2));
  server->Behave({.go_silent = 100});
  server->Put("unheard");
  server->Behave({});
  executor.Advance(seconds(10));
  EXPECT_TRUE(story->known.empty());
  executor.Advance(std::chrono::minutes(11));
  EXPECT_EQ(story->known, server->Versions());
  EXPECT_EQ(informer->lists(), 1);
}

TEST_F(InformerTest, AsksAServerThatIsAwayAboutEveryHalfMinute) {
  Make(1);
  server->Behave({.refuse_list = 100});
  informer->Start();
  executor.Advance(std::chrono::minutes(1));
  int in_the_first_minute = server->lists;
  EXPECT_LE(in_the_first_minute, 14);
  executor.Advance(std::chrono::minutes(60));
  int an_hour = server->lists - in_the_first_minute;
  EXPECT_GE(an_hour, 115);
  EXPECT_LE(an_hour, 240);
  server->Behave({});
  server->Put("a");
  executor.Advance(seconds(31));
  EXPECT_EQ(story->known, server->Versions());
}

TEST_F(InformerTest, QuietWatchesAreRenewedWithoutDelay) {
  Make(1);
  informer->Start();
  executor.Advance(std::chrono::hours(10));
  int before = server->watches;
  EXPECT_GE(before, 60) << "a watch lasts five to ten minutes";
  EXPECT_LE(before, 125);
  server->Put("a");
  executor.Advance(milliseconds(500));
  EXPECT_EQ(story->known, server->Versions());
}

// Forty minutes of a server that does everything wrong, with writers all the while; then peace.
TEST_F(InformerTest, NeverLosesItsPlace) {
  for (uint64_t seed = FirstSeed(); seed < FirstSeed() + 40; ++seed) {
    SCOPED_TRACE(StrCat("SWELL_SEED=", seed));
    Make(seed, {.page_size = 7});
    Random random(seed * 77);
    server->Behave(kHostile);
    informer->Start();
    for (int step = 0; step < 2000; ++step) {
      std::string name = StrCat("pod-", random.Below(40));
      if (random.Below(3) == 0) {
        server->Delete(name);
      } else {
        server->Put(name);
      }
      if (random.Below(100) == 0) server->Restart();
      if (random.Below(200) == 0) server->Compact();
      executor.Advance(milliseconds(random.Below(2400)));
    }
    server->Behave({});
    executor.Advance(std::chrono::minutes(12));
    ASSERT_EQ(story->known, server->Versions());
    ASSERT_EQ(informer->objects().size(), server->Versions().size());
    informer.reset();
    executor.Advance(std::chrono::minutes(12));
  }
}

}  // namespace
}  // namespace swell::client
