// FakeApi: just enough of an API server for the agent's tests: objects in a map, watches, patches,
// graceful deletion of pods. No validation, no defaults, no other kind's rules.
// - Threads: the test's thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "json/value.h"
#include "kube/api/rest/rest.h"
#include "kube/api/schema/scheme.h"

namespace swell::node {

class FakeApi final : public api::RestHandler {
 public:
  explicit FakeApi(Clock& clock) : clock_(clock) {}

  std::unique_ptr<api::RestCall> Handle(api::RestRequest request,
                                        std::shared_ptr<api::RestSink> sink) override;

  // Collections are URL paths: "/api/v1/namespaces/default/pods", "/api/v1/nodes".
  void Put(const std::string& collection, json::Value object);
  json::Value Get(const std::string& collection, const std::string& name) const;  // may be null
  bool Has(const std::string& collection, const std::string& name) const;
  std::vector<std::string> Names(const std::string& collection) const;
  // As DELETE does: pods on a node get a deletion timestamp, everything else goes at once.
  void Delete(const std::string& collection, const std::string& name, int64_t grace_seconds);

  // Requests for which this holds are answered 500 or never processed.
  std::function<bool(const api::RestRequest&)> fail;
  // Those for which this holds are answered 409: somebody's write that nobody can read yet.
  std::function<bool(const api::RestRequest&)> conflict;
  // "PATCH /api/v1/…" in order.
  std::vector<std::string> requests;

 private:
  struct Watch;
  class Call;

  void Changed(const std::string& type, const std::string& path);
  void Answer(api::RestSink& sink, int status, const json::Value& body);
  void Refuse(api::RestSink& sink, int status, std::string_view reason, const std::string& why);
  void List(const std::string& collection, const std::string& query, api::RestSink& sink);
  void Patch(const api::RestRequest& request, api::RestSink& sink);
  std::unique_ptr<api::RestCall> StartWatch(const std::string& collection,
                                            const std::string& query,
                                            const std::shared_ptr<api::RestSink>& sink);

  Clock& clock_;
  std::unique_ptr<api::Scheme> scheme_ = api::Scheme::BuiltIn();
  std::map<std::string, json::Value> objects_;  // by URL path
  uint64_t version_ = 1;
  std::vector<std::weak_ptr<Watch>> watches_;
};

}  // namespace swell::node
