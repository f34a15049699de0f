// Large YAML bodies, read by another thread.
#include "kube/apiserver/request_filters/yaml_offload.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/apiserver/codec.h"
#include "kube/apiserver/test_server.h"

namespace swell::apiserver {
namespace {

constexpr std::string_view kYaml = "application/yaml";

std::string MapYaml(std::string_view name) {
  return StrCat("metadata:\n  name: ", name, "\ndata:\n  a: '", std::string(20'000, 'x'), "'\n");
}

class YamlAsideTest : public testing::Test {
 protected:
  YamlAsideTest() : test_(OptionsOf()) { test_.Boot(); }

  Options OptionsOf() {
    Options options;
    options.offload = [this](std::function<void()> work, size_t bytes) {
      if (bytes > room_) return false;
      aside_.push_back(std::move(work));
      return true;
    };
    return options;
  }
  api::RestRequest Body(std::string method, std::string path, std::string type, std::string body) {
    api::RestRequest request = test_.Request(std::move(method), std::move(path), std::move(body));
    request.content_type = std::move(type);
    return request;
  }
  // Starts it; what it answers comes when the other thread has worked.
  std::unique_ptr<api::RestCall> Begin(api::RestRequest request) {
    sink_ = std::make_shared<TestSink>();
    auto call = test_.server->Handle(std::move(request), sink_);
    test_.executor.RunPosted();
    return call;
  }
  void WorkAside() {
    for (auto& work : std::exchange(aside_, {})) work();
    test_.executor.RunPosted();
  }
  std::string Text() const {
    std::string text;
    for (const api::Chunk& chunk : sink_->answer.body) text += *chunk;
    return text;
  }

  size_t room_ = SIZE_MAX;
  std::vector<std::function<void()>> aside_;
  TestServer test_;
  std::shared_ptr<TestSink> sink_;
};

TEST_F(YamlAsideTest, IsWhatItWouldBeAtOnce) {
  auto call = Begin(Body("POST", kMaps, std::string(kYaml), MapYaml("one")));
  EXPECT_EQ(sink_->answers, 0);
  EXPECT_EQ(aside_.size(), 1u);
  WorkAside();
  EXPECT_EQ(sink_->answer.status, 201) << Text();
  call = Begin(Body("PATCH", StrCat(kMaps, "/two?fieldManager=x"), std::string(kApplyPatch),
                    "apiVersion: v1\nkind: ConfigMap\n" + MapYaml("two")));
  EXPECT_EQ(sink_->answers, 0);
  WorkAside();
  EXPECT_EQ(sink_->answer.status, 201) << Text();
}

TEST_F(YamlAsideTest, TellsWhatIsNamedTwice) {
  const std::string body = MapYaml("one") + "  a: short\n";
  auto call =
      Begin(Body("POST", StrCat(kMaps, "?fieldValidation=Strict"), std::string(kYaml), body));
  WorkAside();
  EXPECT_EQ(sink_->answer.status, 400);
  EXPECT_NE(Text().find("strict decoding error: line 5: key"), std::string::npos) << Text();
  call = Begin(Body("POST", kMaps, std::string(kYaml), body));
  WorkAside();
  EXPECT_EQ(sink_->answer.status, 201);
  EXPECT_NE(Text().find(R"("a":"short")"), std::string::npos) << Text();
  std::string warned;
  for (const auto& [key, value] : sink_->answer.headers) {
    if (key == "Warning") warned += value;
  }
  EXPECT_EQ(warned, R"(299 - "line 5: key \"a\" already set in map")");
}

TEST_F(YamlAsideTest, OnlyWhatTakesLongIsReadThere) {
  for (const auto& [type, body] :
       {std::pair<std::string, std::string>{kYaml, "metadata: {name: small}"},
        {"application/json", StrCat(R"({"metadata":{"name":"json"},"data":{"a":")",
                                    std::string(20'000, 'x'), R"("}})")}}) {
    auto call = Begin(Body("POST", kMaps, type, body));
    EXPECT_TRUE(aside_.empty());
    EXPECT_EQ(sink_->answer.status, 201) << Text();
  }
}

TEST_F(YamlAsideTest, SaysWhatIsWrongWithIt) {
  auto call = Begin(Body("POST", kMaps, std::string(kYaml), MapYaml("x") + "}"));
  WorkAside();
  EXPECT_EQ(sink_->answer.status, 400);
  EXPECT_NE(Text().find("the object provided is unrecognized"), std::string::npos) << Text();
  std::string list = "metadata: {name: x}\ndata:\n";
  for (int i = 0; i < 140'000; ++i) list += "- 0\n";
  call = Begin(Body("POST", kMaps, std::string(kYaml), list));
  WorkAside();
  EXPECT_EQ(sink_->answer.status, 413);
  call = Begin(Body("PATCH", StrCat(kMaps, "/x?fieldManager=x"), std::string(kApplyPatch),
                    MapYaml("x") + "---\n" + MapYaml("y")));
  WorkAside();
  EXPECT_EQ(sink_->answer.status, 400);
  EXPECT_NE(Text().find("must be one YAML document, not 2"), std::string::npos) << Text();
}

TEST_F(YamlAsideTest, WhoGivesUpMakesNothing) {
  auto call = Begin(Body("POST", kMaps, std::string(kYaml), MapYaml("given-up")));
  call.reset();
  WorkAside();
  EXPECT_EQ(sink_->answers, 0);
  EXPECT_EQ(test_.Get(StrCat(kMaps, "/given-up")).status, 404);
}

TEST_F(YamlAsideTest, WithoutRoomItIsToComeAgain) {
  room_ = 1000;
  auto call = Begin(Body("POST", kMaps, std::string(kYaml), MapYaml("x")));
  EXPECT_EQ(sink_->answer.status, 429) << Text();
}

TEST_F(YamlAsideTest, JsonOfTooManyValuesIsRefused) {
  std::string body = R"({"metadata":{"name":"x"},"data":[0)";
  for (int i = 0; i < 140'000; ++i) body += ",0";
  auto call = Begin(Body("POST", kMaps, "application/json", body + "]}"));
  EXPECT_EQ(sink_->answer.status, 413);
  EXPECT_NE(Text().find("more than the 131072 values allowed"), std::string::npos) << Text();
}

}  // namespace
}  // namespace swell::apiserver
