// Events are written a few at a time, in order, and never pile up without bound.
#include "kube/client/event_recorder.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "base/sim_executor.h"
#include "base/strings.h"

namespace swell::client {
namespace {

// Keeps what it is asked until the test lets it answer.
class SlowServer final : public api::RestHandler {
 public:
  std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                        std::shared_ptr<api::RestSink> sink) override {
    requests.push_back(std::move(request));
    open.push_back(std::move(sink));
    return nullptr;
  }
  void AnswerAll(int status) {
    std::vector<std::shared_ptr<api::RestSink>> asked;
    asked.swap(open);
    for (const auto& sink : asked) {
      api::RestResponse response;
      response.status = status;
      sink->OnResponse(std::move(response));
    }
  }
  std::vector<api::RestRequest> requests;
  std::vector<std::shared_ptr<api::RestSink>> open;
};

struct World {
  SimExecutor executor;
  std::shared_ptr<SlowServer> server = std::make_shared<SlowServer>();
  EventRecorder recorder{executor, executor, server, {"tester", "", {}}, "test", 1};

  void Tell(int number) {
    const json::Value pod = json::Object{
        {"apiVersion", "v1"},
        {"kind", "Pod"},
        {"metadata", json::Object{{"name", StrCat("p-", number)}, {"namespace", "default"}}}};
    recorder.Record(pod, "Normal", "Scheduled", "it is");
  }
};

TEST(EventRecorder, WritesAFewAtATimeInOrder) {
  World world;
  for (int i = 0; i < 100; ++i) world.Tell(i);
  world.executor.RunPosted();
  EXPECT_EQ(world.server->open.size(), static_cast<size_t>(EventRecorder::kRemoteOpenMax));
  while (!world.server->open.empty()) {
    world.server->AnswerAll(201);
    world.executor.RunPosted();
  }
  ASSERT_EQ(world.server->requests.size(), 100u);
  for (int i = 0; i < 100; ++i) {
    EXPECT_NE(world.server->requests[i].body.find(StrCat("\"p-", i, "\"")), std::string::npos) << i;
  }
}

TEST(EventRecorder, NamesComeInTheOrderOfWhatHappened) {
  World world;
  const json::Value pod = json::Object{
      {"kind", "Pod"}, {"metadata", json::Object{{"name", "p"}, {"namespace", "default"}}}};
  std::vector<std::string> names;
  for (int i = 0; i < 20; ++i) {
    world.recorder.Record(pod, "Normal", "Told", StrCat("time ", i));
    world.executor.RunPosted();
    world.server->AnswerAll(201);
    auto event = json::Parse(world.server->requests.back().body);
    ASSERT_TRUE(event.ok());
    names.emplace_back(json::GetString(*event, {"metadata", "name"}));
    if (i % 2 == 0) world.executor.Advance(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end())) << names.front() << " " << names.back();
}

TEST(EventRecorder, KeepsNoMoreThanItsBound) {
  World world;
  const int told = static_cast<int>(EventRecorder::kWaitingMax) + 200;
  for (int i = 0; i < told; ++i) world.Tell(i);
  while (!world.server->open.empty()) {
    world.server->AnswerAll(201);
    world.executor.RunPosted();
  }
  EXPECT_EQ(world.server->requests.size(),
            EventRecorder::kWaitingMax + static_cast<size_t>(EventRecorder::kRemoteOpenMax));
}

TEST(EventRecorder, CountsWhatIsToldAgainAndBeginsAnewWhenItIsGone) {
  World world;
  for (const int status : {201, 404, 201}) {
    world.Tell(1);
    world.executor.RunPosted();
    world.server->AnswerAll(status);
    world.executor.RunPosted();
  }
  ASSERT_EQ(world.server->requests.size(), 3u);
  EXPECT_EQ(world.server->requests[0].method, "POST");
  EXPECT_EQ(world.server->requests[1].method, "PATCH");
  EXPECT_EQ(world.server->requests[2].method, "POST");
}

}  // namespace
}  // namespace swell::client
