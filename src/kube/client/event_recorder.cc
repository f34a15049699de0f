#include "kube/client/event_recorder.h"

#include <algorithm>

#include "base/log.h"
#include "base/strings.h"
#include "kube/api/meta/meta.h"

namespace swell::client {
namespace {

constexpr size_t kKnownMax = 4096;
constexpr size_t kMessageBytesMax = 1024;
// Four microseconds; as many of them as there are in 292 years.
constexpr int kTickBits = 12;
constexpr size_t kTickDigits = 13;
constexpr double kRefillPerSecond = 1.0 / 300;

}  // namespace

EventRecorder::EventRecorder(Executor& executor,
                             Clock& clock,
                             std::shared_ptr<api::RestHandler> server,
                             api::UserInfo user,
                             std::string component,
                             uint64_t seed,
                             std::string host)
    : clock_(clock),
      component_(component),
      host_(std::move(host)),
      random_(seed),
      client_(executor, std::move(server), std::move(user), std::move(component)) {}

bool EventRecorder::Spend(uint64_t object_key) {
  if (budgets_.size() > kKnownMax) budgets_.clear();
  Budget& budget = budgets_[object_key];
  int64_t now = clock_.Steady().ns;
  if (budget.refilled_ns != 0) {
    budget.tokens = std::min(25.0, budget.tokens + static_cast<double>(now - budget.refilled_ns) *
                                                       1e-9 * kRefillPerSecond);
  }
  budget.refilled_ns = now;
  if (budget.tokens < 1) return false;
  budget.tokens -= 1;
  return true;
}

// A list of events is sorted by name: names grow with time, so that it is in the order in which the
// events happened, even within one second.
std::string EventRecorder::NextSuffix() {
  last_tick_ = std::max(last_tick_ + 1, static_cast<uint64_t>(clock_.Now().unix_ns) >> kTickBits);
  std::string tick(kTickDigits, '0');
  for (uint64_t left = last_tick_, i = tick.size(); i > 0; left >>= 4) {
    tick[--i] = "0123456789abcdef"[left & 15];
  }
  return StrCat(tick, random_.NameSuffix(5));
}

void EventRecorder::Remember(uint64_t key, const Known& known) {
  if (known_.emplace(key, known).second) known_order_.push_back(key);
  while (known_order_.size() > kKnownMax) {
    known_.erase(known_order_.front());
    known_order_.pop_front();
  }
}

void EventRecorder::Record(const json::Value& object,
                           std::string_view type,
                           std::string_view reason,
                           std::string_view message) {
  if (waiting_.size() >= kWaitingMax) return;
  const uint64_t object_key = StableHash(
      StrCat(json::GetString(object, {"kind"}), "/", api::KeyOf(object), "/", api::Uid(object)));
  const uint64_t key = StableHash(StrCat("/", type, "/", reason, "/", message), object_key);
  std::string now = api::FormatTime(clock_.Now());
  if (!Spend(object_key)) return;
  auto it = known_.find(key);
  if (it != known_.end() && !it->second.name.empty()) {
    ++it->second.count;
    return Send(
        {key, false, [known = it->second, now] {
           const json::Value patch = json::Object{{"count", known.count}, {"lastTimestamp", now}};
           return api::RestRequest{.method = "PATCH",
                                   .path = resources::kEvents.Path(known.ns, known.name),
                                   .content_type = "application/merge-patch+json",
                                   .body = json::Print(patch)};
         }});
  }
  std::string ns(api::Namespace(object));
  if (ns.empty()) ns = "default";
  const Known known{StrCat(api::Name(object), ".", NextSuffix()), ns, 1};
  Remember(key, known);
  Send({key, true,
        [this, known, now, about = api::ObjectReferenceTo(object), type = std::string(type),
         reason = std::string(reason), said = std::string(message.substr(0, kMessageBytesMax))] {
          json::Object source{{"component", component_}};
          if (!host_.empty()) source["host"] = host_;
          const json::Value event = json::Object{
              {"apiVersion", "v1"},
              {"kind", "Event"},
              {"metadata", json::Object{{"name", known.name}, {"namespace", known.ns}}},
              {"involvedObject", about},
              {"reason", reason},
              {"message", said},
              {"source", std::move(source)},
              {"firstTimestamp", now},
              {"lastTimestamp", now},
              {"count", 1},
              {"type", type},
              {"reportingComponent", component_},
              {"reportingInstance", host_}};
          return api::RestRequest{.method = "POST",
                                  .path = resources::kEvents.Path(known.ns),
                                  .body = json::Print(event)};
        }});
}

void EventRecorder::Send(Write write) {
  waiting_.push_back(std::move(write));
  Pump();
}

void EventRecorder::Pump() {
  const int open_max = client_.in_order() ? kOpenMax : kRemoteOpenMax;
  while (open_ < open_max && !waiting_.empty()) {
    Write write = std::move(waiting_.front());
    waiting_.pop_front();
    ++open_;
    client_.Call(write.make(), [this, key = write.key,
                                fresh = write.fresh](const Result<api::RestResponse>& result) {
      --open_;
      if (!result.ok()) {
        known_.erase(key);  // it may have expired meanwhile: the next one is a new one
        if (fresh) {
          SWELL_LOG_WARNING("client", "event not recorded", {"error", result.status().ToString()});
        }
      }
      Pump();
    });
  }
}

}  // namespace swell::client
