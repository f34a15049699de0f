#include "kube/client/write_gate.h"

#include <vector>

#include <gtest/gtest.h>

#include "base/strings.h"

namespace swell::client {
namespace {

class Answer final : public api::RestSink {
 public:
  void OnResponse(api::RestResponse response) override { statuses.push_back(response.status); }
  void OnStreamStart(int, std::string) override {}
  bool OnChunk(const api::Chunk&) override { return true; }
  void OnStreamEnd(const Status&) override {}
  std::vector<int> statuses;
};

// Answers when it is told to, in order.
class SlowServer final : public api::RestHandler {
 public:
  std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                        std::shared_ptr<api::RestSink> sink) override {
    asked.push_back(request.path);
    queries.push_back(request.query);
    sinks_.push_back(std::move(sink));
    return std::make_unique<Call>(cancelled);
  }
  void AnswerNext() {
    auto sink = std::move(sinks_.front());
    sinks_.erase(sinks_.begin());
    sink->OnResponse({});
  }
  std::vector<std::string> asked, queries;
  std::shared_ptr<int> cancelled = std::make_shared<int>(0);

 private:
  struct Call final : api::RestCall {
    explicit Call(std::shared_ptr<int> count) : count_(std::move(count)) {}
    ~Call() override { ++*count_; }
    std::shared_ptr<int> count_;
  };
  std::vector<std::shared_ptr<api::RestSink>> sinks_;
};

class WriteGateTest : public testing::Test {
 protected:
  struct Asked {
    std::shared_ptr<Answer> answer = std::make_shared<Answer>();
    std::unique_ptr<api::RestCall> call;
  };
  Asked Ask(const std::string& method, const std::string& path = "/api/v1/pods/x") {
    Asked asked;
    asked.call = gate_.Handle({.method = method, .path = path}, asked.answer);
    return asked;
  }

  bool may_ = true;
  std::string term_;
  std::shared_ptr<SlowServer> server_ = std::make_shared<SlowServer>();
  WriteGate gate_{server_, [this] { return may_ ? std::optional(term_) : std::nullopt; }, 100};
};

TEST_F(WriteGateTest, WritesPassOnlyWhileTheyMay) {
  Asked write = Ask("PATCH");
  server_->AnswerNext();
  EXPECT_EQ(write.answer->statuses, std::vector<int>{200});
  may_ = false;
  Asked refused = Ask("POST");
  EXPECT_EQ(refused.answer->statuses, std::vector<int>{429});
  Asked read = Ask("GET");
  Asked event = Ask("POST", "/api/v1/namespaces/default/events");
  EXPECT_EQ(server_->asked.size(), 3u);
}

TEST_F(WriteGateTest, WhatWaitedIsAskedAgainWhetherItMay) {
  std::vector<Asked> writes;
  for (size_t i = 0; i < WriteGate::kUnderWayMax + 2; ++i) writes.push_back(Ask("POST"));
  EXPECT_EQ(server_->asked.size(), WriteGate::kUnderWayMax);
  server_->AnswerNext();
  EXPECT_EQ(server_->asked.size(), WriteGate::kUnderWayMax + 1);
  may_ = false;
  server_->AnswerNext();
  EXPECT_EQ(server_->asked.size(), WriteGate::kUnderWayMax + 1);
  EXPECT_EQ(writes.back().answer->statuses, std::vector<int>{429});
  EXPECT_EQ(gate_.under_way(), WriteGate::kUnderWayMax - 1);
}

TEST_F(WriteGateTest, WritesSayInWhichTermTheyWereAsked) {
  term_ = "ns/lease/uid/3";
  Asked write = Ask("PATCH");
  Asked read = Ask("GET");
  Asked with_query;
  with_query.call =
      gate_.Handle({.method = "PUT", .path = "/x", .query = "dryRun=All"}, with_query.answer);
  const std::string said = "leaseTerm=" + api::EscapeQuery(term_);
  EXPECT_EQ(server_->queries, (std::vector<std::string>{said, "", "dryRun=All&" + said}));
}

TEST_F(WriteGateTest, WhatWaitedIntoAnotherTermIsRefused) {
  term_ = "ns/lease/uid/3";
  std::vector<Asked> writes;
  for (size_t i = 0; i < WriteGate::kUnderWayMax + 1; ++i) writes.push_back(Ask("POST"));
  term_ = "ns/lease/uid/5";
  server_->AnswerNext();
  EXPECT_EQ(server_->asked.size(), WriteGate::kUnderWayMax);
  EXPECT_EQ(writes.back().answer->statuses, std::vector<int>{429});
}

TEST_F(WriteGateTest, CutAnswersAllAndHearsNoMore) {
  std::vector<Asked> writes;
  for (size_t i = 0; i < WriteGate::kUnderWayMax + 2; ++i) writes.push_back(Ask("POST"));
  gate_.Cut();
  for (size_t i = 0; i < writes.size(); ++i) {
    const int expected = i < WriteGate::kUnderWayMax ? 503 : 429;
    EXPECT_EQ(writes[i].answer->statuses, std::vector<int>{expected}) << i;
  }
  EXPECT_EQ(*server_->cancelled, static_cast<int>(WriteGate::kUnderWayMax));
  server_->AnswerNext();
  EXPECT_EQ(writes.front().answer->statuses, std::vector<int>{503});
  EXPECT_EQ(gate_.under_way(), 0u);
}

TEST_F(WriteGateTest, WhoGivesUpMakesRoom) {
  std::vector<Asked> writes;
  for (size_t i = 0; i < WriteGate::kUnderWayMax; ++i) writes.push_back(Ask("POST"));
  Asked next = Ask("POST", "/next");
  EXPECT_EQ(server_->asked.size(), WriteGate::kUnderWayMax);
  writes.front().call.reset();
  EXPECT_EQ(server_->asked.back(), "/next");
}

TEST_F(WriteGateTest, TooManyWaiting) {
  std::vector<Asked> writes;
  for (size_t i = 0; i < WriteGate::kUnderWayMax + 100; ++i) writes.push_back(Ask("POST"));
  EXPECT_TRUE(writes.back().answer->statuses.empty());
  EXPECT_EQ(Ask("POST").answer->statuses, std::vector<int>{429});
}

}  // namespace
}  // namespace swell::client
