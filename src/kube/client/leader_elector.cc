#include "kube/client/leader_elector.h"

#include <algorithm>

#include "base/log.h"
#include "base/strings.h"
#include "kube/api/meta/lease_term.h"
#include "kube/api/meta/meta.h"

namespace swell::client {
namespace {

constexpr Duration kReleaseWait = std::chrono::seconds(1);
constexpr Duration kSoonest = std::chrono::milliseconds(10);
// After the first one each follows a write that had been given up and came late.
constexpr int kTriesMax = 5;

std::string_view HolderOf(const json::Value& lease) {
  return json::GetString(lease, {"spec", "holderIdentity"});
}

// What a holder writes; each renewal changes it.
std::string RecordOf(const json::Value& lease) {
  const json::Value* spec = json::Find(lease, {"spec"});
  return spec ? json::Print(*spec) : std::string();
}

json::Value Step(std::string_view op, std::string_view path, json::Value value) {
  return json::Object{{"op", op}, {"path", path}, {"value", std::move(value)}};
}

// Whether the server said that the Lease is not what it was taken for.
bool IsOtherwise(const Status& status) {
  return status.code() == Code::kConflict || status.code() == Code::kInvalid ||
         status.code() == Code::kNotFound;
}

int64_t Seconds(Duration span) {
  return std::chrono::duration_cast<std::chrono::seconds>(span).count();
}

}  // namespace

Status LeaderOptions::Check() const {
  auto invalid = [](std::string message) { return Status(Code::kBadRequest, std::move(message)); };
  if (lease_duration % std::chrono::seconds(1) != Duration::zero() ||
      lease_duration <= Duration::zero()) {
    return invalid("the lease duration must be whole seconds, and more than none");
  }
  if (lease_duration <= renew_deadline) {
    return invalid("the lease duration must be greater than the renew deadline");
  }
  if (retry_period <= Duration::zero()) return invalid("the retry period must be more than zero");
  if (renew_deadline <= retry_period * 6 / 5) {
    return invalid("the renew deadline must be greater than 1.2 times the retry period");
  }
  return Status::Ok();
}

LeaderElector::LeaderElector(Executor& executor,
                             const Clock& clock,
                             std::shared_ptr<api::RestHandler> server,
                             api::UserInfo user,
                             uint64_t seed,
                             LeaderOptions options,
                             LeaderCallbacks callbacks)
    : executor_(executor),
      clock_(clock),
      server_(std::move(server)),
      user_(std::move(user)),
      random_(seed),
      options_(std::move(options)),
      callbacks_(std::move(callbacks)) {
  NewClient();
}

void LeaderElector::NewClient() {
  client_ = std::make_unique<Client>(executor_, server_, user_, "swell-leader-election");
}

void LeaderElector::Start() { Tick(); }

// A server that is slow may take as long as the deadline allows; one that never answers is asked
// anew.
void LeaderElector::Tick() {
  const SteadyTime now = clock_.Steady();
  if (asking_ && now - *asking_ >= options_.renew_deadline * (leading_ ? 1 : 2)) GiveUp();
  if (!asking_) TryAcquireOrRenew();
  tick_timer_.Start(NextLook(), [this] { Tick(); });
}

Duration LeaderElector::NextLook() {
  Duration next = options_.retry_period;
  if (leading_) return next;
  next += Duration(random_.Below(static_cast<uint64_t>(options_.retry_period.count()) / 5 + 1));
  if (!lease_ || !HeldByAnother()) return next;
  const Duration held_for =
      std::chrono::seconds(json::GetInt(*lease_, {"spec", "leaseDurationSeconds"}));
  return std::max(kSoonest, std::min(next, changed_ + held_for - clock_.Steady()));
}

void LeaderElector::GiveUp() {
  NewClient();
  asking_.reset();
}

// The holder knows the Lease as it wrote it.
void LeaderElector::TryAcquireOrRenew() {
  asking_ = clock_.Steady();
  tries_ = 0;
  if (lease_ && HolderOf(*lease_) == options_.identity) return Take(*lease_);
  client_->Get(resources::kLeases, options_.ns, options_.name,
               [this](const Result<json::SharedValue>& lease) { OnLease(lease); });
}

void LeaderElector::OnLease(const Result<json::SharedValue>& lease) {
  if (lease.ok()) {
    Observe(*lease);
    if (HeldByAnother() || releasing_) return Finish(Status::Ok());
    return Take(*lease_);
  }
  if (lease.status().code() != Code::kNotFound || releasing_) return Finish(lease.status());
  Observe(std::make_shared<const json::Value>(json::Object{}));
  json::Value fresh =
      json::Object{{"apiVersion", "coordination.k8s.io/v1"},
                   {"kind", "Lease"},
                   {"metadata", json::Object{{"name", options_.name}, {"namespace", options_.ns}}}};
  json::Set(fresh, {"spec"}, Record(fresh));
  taking_ = clock_.Steady();
  client_->Create(resources::kLeases, options_.ns, fresh,
                  [this](const Result<json::SharedValue>& made) { OnTaken(made); });
}

// What the Lease says when this replica has it.
json::Value LeaderElector::Record(const json::Value& lease) const {
  const bool ours = HolderOf(lease) == options_.identity;
  const std::string now = api::FormatMicroTime(clock_.Now());
  int64_t transitions = json::GetInt(lease, {"spec", "leaseTransitions"});
  if (!ours && json::Find(lease, {"spec"}) != nullptr) ++transitions;
  return json::Object{
      {"holderIdentity", options_.identity},
      {"leaseDurationSeconds", Seconds(options_.lease_duration)},
      {"acquireTime",
       ours ? std::string(json::GetString(lease, {"spec", "acquireTime"}, now)) : now},
      {"renewTime", now},
      {"leaseTransitions", transitions}};
}

// If nobody has written the holder's part since. A resourceVersion would say more than that: who
// annotates the Lease again and again would keep its holder from renewing it.
void LeaderElector::Write(const json::Value& lease, json::Value record, ObjectCallback done) {
  json::Array patch{Step("test", "/metadata/uid", json::Value(api::Uid(lease)))};
  if (const json::Value* spec = json::Find(lease, {"spec"})) {
    patch.push_back(Step("test", "/spec", *spec));
  } else {
    const std::string_view version = json::GetString(lease, {"metadata", "resourceVersion"});
    patch.push_back(Step("test", "/metadata/resourceVersion", json::Value(version)));
  }
  patch.push_back(Step("add", "/spec", std::move(record)));
  client_->Patch(resources::kLeases, options_.ns, options_.name, PatchType::kJson, patch,
                 std::move(done));
}

void LeaderElector::Take(const json::Value& lease) {
  taking_ = clock_.Steady();
  ++tries_;
  Write(lease, Record(lease), [this](const Result<json::SharedValue>& taken) { OnTaken(taken); });
}

void LeaderElector::OnTaken(const Result<json::SharedValue>& lease) {
  if (!lease.ok()) {
    if (!IsOtherwise(lease.status()) || releasing_) return Finish(lease.status());
    return ReadAgain(lease.status());
  }
  Observe(*lease);
  if (clock_.Steady() - taking_ < options_.renew_deadline && !releasing_) {
    renewed_ = taking_;
    Lead();
  }
  Finish(Status::Ok());
}

// Another may have it, or it is gone, or a write came late that had been given up.
void LeaderElector::ReadAgain(const Status& refused) {
  client_->Get(resources::kLeases, options_.ns, options_.name,
               [this, refused](const Result<json::SharedValue>& now) {
                 if (now.ok()) {
                   Observe(*now);
                   if (HeldByAnother() || releasing_) return Finish(Status::Ok());
                   return tries_ < kTriesMax ? Take(*lease_) : Finish(refused);
                 }
                 if (now.status().code() == Code::kNotFound) {
                   lease_ = nullptr;
                   Lose(now.status());
                 }
                 Finish(now.status());
               });
}

bool LeaderElector::HeldByAnother() const {
  const std::string_view holder = HolderOf(*lease_);
  if (holder.empty() || holder == options_.identity) return false;
  const Duration held_for =
      std::chrono::seconds(json::GetInt(*lease_, {"spec", "leaseDurationSeconds"}));
  return clock_.Steady() - changed_ < held_for;
}

void LeaderElector::Observe(json::SharedValue lease) {
  if (!lease_ || RecordOf(*lease_) != RecordOf(*lease)) changed_ = clock_.Steady();
  lease_ = std::move(lease);
  const std::string holder(HolderOf(*lease_));
  if (leading_ && holder != options_.identity) {
    Lose(Status(Code::kConflict, StrCat(Quote(holder), " has taken the lease")));
  }
  if (holder == holder_) return;
  holder_ = holder;
  if (callbacks_.on_holder) callbacks_.on_holder(holder_);
}

void LeaderElector::Lead() {
  deadline_timer_.Cancel();
  const Duration left = renewed_ + options_.renew_deadline - clock_.Steady();
  deadline_timer_.Start(std::max(left, Duration::zero()), [this] {
    Lose(Status(Code::kTimeout, "the lease could not be renewed in time"));
  });
  if (leading_) return;
  leading_ = true;
  SWELL_LOG_INFO("leader", "leading", {"lease", StrCat(options_.ns, "/", options_.name)},
                 {"identity", options_.identity}, {"term", api::LeaseTerm::Of(*lease_).ToString()});
  if (callbacks_.on_lead) callbacks_.on_lead(api::LeaseTerm::Of(*lease_).ToString());
}

void LeaderElector::Lose(const Status& why) {
  if (!leading_) return;
  leading_ = false;
  deadline_timer_.Cancel();
  SWELL_LOG_WARNING("leader", "leading no more", {"lease", StrCat(options_.ns, "/", options_.name)},
                    {"why", why.ToString()});
}

void LeaderElector::Finish(const Status& status) {
  asking_.reset();
  const bool lost_race = status.code() == Code::kConflict || status.code() == Code::kAlreadyExists;
  // The same problem every half second is told once.
  std::string problem = status.ok() || lost_race ? "" : status.ToString();
  if (!problem.empty() && problem != reported_problem_) {
    SWELL_LOG_WARNING("leader", "lease not reached",
                      {"lease", StrCat(options_.ns, "/", options_.name)}, {"error", problem});
  }
  reported_problem_ = std::move(problem);
  if (releasing_ && released_) EndRelease();
}

void LeaderElector::Release(std::function<void()> done) {
  if (releasing_) return;
  releasing_ = true;
  released_ = std::move(done);
  leading_ = false;
  tick_timer_.Cancel();
  deadline_timer_.Cancel();
  tick_timer_.Start(kReleaseWait, [this] {
    if (auto released = std::exchange(released_, {})) released();
  });
  if (!asking_) EndRelease();
}

// Once what was under way is answered, so that it does not come after.
void LeaderElector::EndRelease() {
  auto end = [this] {
    tick_timer_.Cancel();
    if (auto released = std::exchange(released_, {})) released();
  };
  if (!lease_ || HolderOf(*lease_) != options_.identity) return end();
  json::Value free = Record(*lease_);
  json::Set(free, {"holderIdentity"}, json::Value(""));
  json::Set(free, {"leaseDurationSeconds"}, json::Value(1));
  Write(*lease_, std::move(free), [end](const Result<json::SharedValue>&) { end(); });
}

}  // namespace swell::client
