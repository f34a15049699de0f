// Webhooks: servers outside that are asked before a call can be answered, whether it may be
// (admission) or what an object is in another version (conversion). Nodes are asked in the same way
// what they use.
//
// A handler is one synchronous step from what it reads to what it writes. Where it meets a question
// that nobody has answered yet, it asks, fails with Unanswered(), and is run again from its start
// when everything it asked is answered (Call::Fail). So what it writes still fits what it read: had
// that changed meanwhile, the question would be another one. Answers are known by the whole text of
// their question.
//
// - Threads: core executor only.
// - Ownership: Questions belong to a call; what comes later is dropped.
// - Invariants: a call asks at most kMaxQuestions; each question ends by its timeout.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kube/api/cel/cel.h"
#include "kube/api/selector.h"
#include "kube/apiserver/core.h"

namespace swell::apiserver {

// How a webhook is reached: a clientConfig of the three kinds that have one.
struct Webhook {
  std::string url;      // https://host:port/path; empty: the service
  std::string service;  // its name
  std::string service_ns;
  std::string service_path;
  int64_t service_port = 443;
  std::string ca_pem;

  static Webhook FromJson(const json::Value* client_config);
  // What is called, without the parameters: of a service, https://name.ns.svc:443/path.
  std::string Url() const;
};

class Questions : public std::enable_shared_from_this<Questions> {
 public:
  using Answer = Result<json::Value>;
  // Files an answer under the keys that it is about.
  using File = std::function<void(Questions&, const Answer&)>;
  static constexpr size_t kMaxQuestions = 200;

  explicit Questions(const Core& core) : core_(core) {}
  ~Questions();

  // Null: not answered yet.
  const Answer* Find(const std::string& key) const;
  void Put(const std::string& key, Answer answer) { answers_.insert_or_assign(key, answer); }
  // Sends the review, unless `key` was asked before. The webhook is told of its timeout where
  // `tell_timeout` says so.
  void Ask(const std::string& key,
           const Webhook& webhook,
           const json::Value& review,
           Duration timeout,
           bool tell_timeout,
           File file);
  // Sends a node's endpoints a request whose answer is JSON, unless `key` was asked before.
  void AskNode(const std::string& key,
               std::shared_ptr<api::RestHandler> node,
               api::RestRequest request,
               Duration timeout);
  // Whether something was asked since `then` was last given.
  bool fresh() const { return fresh_; }
  // Runs `then`, from the executor, once nothing is open any more.
  void WhenAnswered(std::function<void()> then);
  // A new uid for a review.
  std::string NewUid() const { return core_.random.Uuid(); }

 private:
  struct UnderWay {
    std::shared_ptr<api::RestHandler> server;
    std::unique_ptr<api::RestCall> call;
    TimerId timer = kNoTimer;
  };
  using Finished = std::function<void(const Answer&)>;
  // What ends the question of the next number.
  Finished Begin(File file);
  void Send(uint64_t number,
            std::shared_ptr<api::RestHandler> server,
            api::RestRequest request,
            Duration timeout,
            std::function<void()> expired,
            std::function<void(const api::RestResponse&)> done);
  void Finish(uint64_t number, const File& file, const Answer& answer);
  void GoOn();

  const Core& core_;  // outlives its calls' questions: both end with the server
  std::map<std::string, Answer> answers_;
  std::set<std::string> asked_;
  std::map<uint64_t, UnderWay> under_way_;
  uint64_t next_ = 1;
  size_t open_ = 0;
  bool fresh_ = false;
  std::function<void()> then_;
};

// What a handler returns that cannot go on before its questions are answered.
Status Unanswered();
bool IsUnanswered(const Status& status);
// The call's questions, made when first needed.
Questions& QuestionsOf(const Core& core, Call& call);
// A short name of a text, for keys.
std::string Digest(std::string_view text);

// "a.b/v1, Kind=C".
std::string GvkText(std::string_view api_version, std::string_view kind);

// One webhook of a (Mutating|Validating)WebhookConfiguration.
struct AdmissionWebhook {
  struct Rule {
    std::vector<std::string> operations, groups, versions, resources;
    std::string scope;
  };
  std::string name;
  std::string id;  // its configuration, its place there and the version of that
  Webhook webhook;
  std::vector<Rule> rules;
  api::LabelSelector namespaces;
  api::LabelSelector objects;
  bool ignore_failure = false;
  bool equivalent = true;
  bool again = false;    // reinvocationPolicy IfNeeded
  bool dry_run = false;  // may be asked about dry runs
  Duration timeout{0};
  std::vector<std::string> review_versions;
  // All must hold (matchConditions).
  std::vector<std::shared_ptr<const api::CelProgram>> conditions;
};

// How the objects of one definition get from version to version.
struct Converter {
  Webhook webhook;
  std::vector<std::string> review_versions;
};

// All webhooks of the cluster.
struct Webhooks {
  bool stale = true;  // the configurations have changed since
  std::vector<AdmissionWebhook> mutating;
  std::vector<AdmissionWebhook> validating;
  std::map<std::string, Converter, std::less<>> converters;  // by "foos.example.com"
  // Servers that were called, with their connections, by address and certificates.
  std::map<std::string, std::shared_ptr<api::RestHandler>> servers;
};

}  // namespace swell::apiserver
