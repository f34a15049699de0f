#include "sim/sim_history.h"

#include <utility>

#include "base/random.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"

namespace swell::sim {
namespace {

constexpr size_t kViolationsMax = 100;

}  // namespace

void SimHistory::Add(const std::vector<store::Change>& batch) {
  for (const store::Change& change : batch) {
    const store::Entry& entry = *change.entry;
    hash_ = StableHash(StrCat(static_cast<int>(change.type), "|", entry.version, "|",
                              entry.key.resource, "|", entry.key.ns, "|", entry.key.name, "|"),
                       hash_);
    hash_ = StableHash(*entry.text, hash_);
    if (entry.version <= version_) {
      Violation(StrCat("version ", entry.version, " is durable after ", version_));
    }
    version_ = entry.version;
    if (change.type == store::EventType::kDeleted) {
      live_.erase(entry.attributes.uid);
    } else {
      live_.insert(entry.attributes.uid);
    }
    changes_[entry.key.resource].push_back(change);
    for (const auto& hear : hear_) hear(change);
  }
}

void SimHistory::CheckAnswer(uint64_t number,
                             const api::RestRequest& request,
                             const api::RestResponse& response) {
  for (const Listener& hear : hear_answers_) hear(number, request, response.status);
  if (response.status == 409) ++conflicts_;
  if (request.method == "GET" || response.status >= 300) return;
  auto body = json::Parse(response.BodyString());
  if (!body.ok())
    return Violation(StrCat(request.method, " ", request.path, ": answer is not JSON"));
  ++answers_checked_;
  const std::string said(api::ResourceVersionText(*body));
  const uint64_t version = ParseUint(said).value_or(0);
  if (version > version_) {
    Violation(StrCat(request.method, " ", request.path, " was answered with version ", said,
                     ", but only ", version_, " is durable"));
  }
  if (request.method != "DELETE" || api::KindOf(*body) != "Status") return;
  const std::string uid(json::GetString(*body, {"details", "uid"}));
  if (live_.contains(uid)) Violation(StrCat(request.path, " is said to be deleted, but is there"));
}

void SimHistory::Violation(const std::string& what) {
  if (violations_.size() >= kViolationsMax) return;
  const int64_t ms = executor_.Steady().ns / 1'000'000;
  violations_.push_back(StrCat("at ", ms, " ms, version ", version_, ": ", what));
}

}  // namespace swell::sim
