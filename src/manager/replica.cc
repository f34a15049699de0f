#include "manager/replica.h"

#include <utility>

#include "base/log.h"

namespace swell::manager {
namespace {

constexpr Duration kDrainLook = std::chrono::milliseconds(10);
constexpr Duration kDrainMax = std::chrono::seconds(2);

}  // namespace

Replica::Replica(Executor& executor,
                 Clock& clock,
                 Random& random,
                 std::shared_ptr<api::RestHandler> server,
                 api::UserInfo user,
                 ReplicaOptions options)
    : executor_(executor),
      clock_(clock),
      random_(random),
      server_(std::move(server)),
      user_(std::move(user)),
      options_(std::move(options)),
      gate_(std::make_shared<client::WriteGate>(
          server_,
          [this] { return leading() ? std::optional(term_) : std::nullopt; },
          client::WriteGate::kWaitingMax,
          options_.writes_under_way)) {
  registered_ = RegisterMetrics(options_.metrics, [this](MetricPage& page) {
    page.Add({"leader_election_master_status",
              MetricType::kGauge,
              "1 if this process is the leader, 0 if it stands by.",
              {"name"}},
             {options_.election ? options_.election->name : "swell-controller"}, leading());
    page.Add({"swell_controller_writes_under_way", MetricType::kGauge,
              "Writes that the API server has not answered yet."},
             static_cast<double>(gate_->under_way()));
  });
  if (!options_.election) return;
  elector_ = std::make_unique<client::LeaderElector>(
      executor_, clock_, server_, user_, random_.Next(), *options_.election,
      client::LeaderCallbacks{.on_lead = [this](const std::string& term) { Lead(term); },
                              .on_holder = [this](const std::string& holder) { Follow(holder); }});
}

Replica::~Replica() {
  stopping_ = true;  // what its end lets through the gate is not written
  drain_timer_.Cancel();
}

controllers::Context Replica::ContextOf(controllers::Informers& informers) const {
  return {executor_, clock_, random_, gate_, user_, informers, options_.metrics};
}

std::unique_ptr<controllers::Informers> Replica::MakeInformers() {
  auto informers =
      std::make_unique<controllers::Informers>(executor_, server_, user_, random_.Next());
  if (options_.prepare) options_.prepare(*informers);
  return informers;
}

// Watches what a Manager would, which one that is never started says best.
void Replica::WarmUp() {
  std::unique_ptr<controllers::Informers> asked = MakeInformers();
  { Manager never_started(ContextOf(*asked), options_.manager); }
  informers_ = MakeInformers();
  for (const client::Resource& resource : asked->resources()) informers_->Of(resource);
  informers_->Start();
}

void Replica::Start() {
  WarmUp();
  if (!elector_) return Manage();
  // A replica that lacks the rights to read the cluster leaves the lead to others.
  informers_->WhenSynced([this] {
    if (!stopping_) elector_->Start();
  });
}

void Replica::Lead(const std::string& term) {
  if (manager_ && term == term_) return;
  if (manager_) {
    manager_.reset();
    WarmUp();
  }
  term_ = term;
  informers_->Of(client::resources::kPods).Refresh([this, term] {
    if (!manager_ && term == term_ && elector_->leading() && !stopping_) Manage();
  });
}

void Replica::Manage() {
  ManagerOptions options = options_.manager;
  if (options_.recorder) options.recorder = options_.recorder();
  manager_ = std::make_unique<Manager>(ContextOf(*informers_), options);
  manager_->Start();
  informers_->WhenSynced([this] {
    if (leading() && options_.on_lead) options_.on_lead(*informers_);
  });
}

void Replica::Follow(const std::string& holder) {
  if (holder.empty() || holder == options_.election->identity) return;
  if (manager_) {
    manager_.reset();
    WarmUp();
  }
  if (options_.on_follow) options_.on_follow(holder);
}

void Replica::Stop(std::function<void()> done) {
  if (stopping_) return;
  if (leading()) manager_->Flush([] {});  // it is waited for with the other writes
  stopping_ = true;
  Drain(clock_.Steady() + kDrainMax, [this, done = std::move(done)] {
    manager_.reset();
    informers_.reset();  // they would tell the one that is gone
    if (!elector_) return done();
    elector_->Release(done);
  });
}

// The Lease is renewed meanwhile: nobody else decides before what is under way has become true.
void Replica::Drain(SteadyTime until, std::function<void()> done) {
  if (gate_->under_way() == 0) return done();
  if (clock_.Steady() >= until) {
    SWELL_LOG_WARNING("leader", "writes are not answered",
                      {"count", std::to_string(gate_->under_way())});
    gate_->Cut();
    return done();
  }
  drain_timer_.Start(kDrainLook, [this, until, done = std::move(done)]() mutable {
    Drain(until, std::move(done));
  });
}

}  // namespace swell::manager
