#include "elastic/job_master.h"

#include <algorithm>

#include "base/strings.h"

namespace swell::elastic {
namespace {

constexpr int64_t kTasksPerRequestMax = 1000;
constexpr int64_t kWaitMs = 100;
constexpr int64_t kSpeedWindowS = 10;
constexpr size_t kNameBytesMax = 253;
constexpr size_t kAddressBytesMax = 512;
constexpr size_t kFactsMax = 64;

Status NotKnownYet() {
  return {Code::kConflict, "the job is not known yet: send POST /v1/job first"};
}

Status Wrong(std::string_view field, std::string_view message) {
  return {Code::kInvalid, StrCat(field, ": ", message)};
}

Result<int64_t> Number(const json::Value& body, std::string_view field) {
  const json::Value* value = json::Find(body, {field});
  if (value == nullptr) return Wrong(field, "Required value");
  boost::json::error_code error;
  const int64_t number = value->is_number() ? value->to_number<int64_t>(error) : 0;
  if (!value->is_number() || error) return Wrong(field, "Invalid value: must be a whole number");
  return number;
}

json::Object PrintLease(const Lease& lease) {
  return {{"id", lease.id},
          {"epoch", lease.range.epoch},
          {"start", lease.range.start},
          {"end", lease.range.end},
          {"tries", lease.range.tries}};
}

Result<LedgerOptions> ReadJob(const json::Value& body) {
  LedgerOptions options;
  SWELL_ASSIGN_OR_RETURN(options.records, Number(body, "records"));
  SWELL_ASSIGN_OR_RETURN(options.records_per_task, Number(body, "recordsPerTask"));
  options.epochs = json::GetInt(body, {"epochs"}, options.epochs);
  options.shuffle = json::GetBool(body, {"shuffle"}, options.shuffle);
  options.seed = static_cast<uint64_t>(json::GetInt(body, {"seed"}, 1));
  options.tries_max = json::GetInt(body, {"triesMax"}, options.tries_max);
  options.hang_factor = json::GetInt(body, {"hangFactor"}, options.hang_factor);
  options.hang_floor = std::chrono::milliseconds(json::GetInt(body, {"hangFloorMs"}, 300'000));
  options.worker_timeout =
      std::chrono::milliseconds(json::GetInt(body, {"workerTimeoutMs"}, 30'000));
  options.exact_progress = json::GetBool(body, {"exactProgress"}, options.exact_progress);
  options.workers_max = json::GetInt(body, {"workersMax"}, options.workers_max);
  SWELL_RETURN_IF_ERROR(options.Check());
  return options;
}

Result<GateOptions> ReadGate(const json::Value& body) {
  GateOptions gate{.grads_to_wait = json::GetInt(body, {"gradsToWait"}, 1),
                   .version_tolerance = json::GetInt(body, {"versionTolerance"}, 0)};
  if (gate.grads_to_wait < 1) {
    return Wrong("gradsToWait",
                 StrCat("Invalid value: ", gate.grads_to_wait, ": must be at least 1"));
  }
  if (gate.version_tolerance < 0) {
    return Wrong("versionTolerance",
                 StrCat("Invalid value: ", gate.version_tolerance, ": must not be negative"));
  }
  return gate;
}

int64_t SecondOf(WallTime now) { return now.unix_ns / 1'000'000'000; }

}  // namespace

Result<JobMaster::Answer> JobMaster::Handle(std::string_view path,
                                            const json::Value& body,
                                            WallTime now) {
  if (path == "/v1/job") return Job(body);
  if (path == "/v1/restore") return RestorePosition(body);
  if (path == "/v1/facts") return Facts(body);
  if (!ledger_) return NotKnownYet();
  if (path == "/v1/end") return End();
  if (path == "/v1/expire") return Expire(body);
  const std::string_view worker = json::GetString(body, {"worker"});
  if (worker.empty()) return Wrong("worker", "Required value");
  if (worker.size() > kNameBytesMax || !IsValidUtf8(worker)) {
    return Wrong("worker", "Invalid value: must be a name of at most 253 characters");
  }
  if (path == "/v1/task") return Task(body, worker, now);
  if (path == "/v1/progress") return Progress(body, worker, now);
  if (path == "/v1/failed") return Failed(body, worker, now);
  if (path == "/v1/gradient") return Gradient(body, worker, now);
  if (path == "/v1/heartbeat") return Heartbeat(body, worker, now);
  if (path == "/v1/leave") return Leave(body, worker, now);
  return Status(Code::kNotFound, StrCat("there is no ", path));
}

Result<JobMaster::Answer> JobMaster::Job(const json::Value& body) {
  SWELL_ASSIGN_OR_RETURN(LedgerOptions options, ReadJob(body));
  SWELL_ASSIGN_OR_RETURN(GateOptions gate, ReadGate(body));
  if (ledger_) {
    if (!json::Equal(job_, body)) {
      return Status(Code::kConflict, StrCat("the job is another one: ", json::Print(job_)));
    }
    return Answer{State({}), false};
  }
  job_ = body;
  ledger_.emplace(options, first_lease_);
  gate_ = GradientGate(gate);
  return Answer{State({}), true};
}

Result<JobMaster::Answer> JobMaster::RestorePosition(const json::Value& body) {
  if (!ledger_) return NotKnownYet();
  const json::Value* snapshot = json::Find(body, {"snapshot"});
  // Numbers of before the restart are never given again: their holders may still be there.
  const int64_t next_lease = ledger_->next_lease();
  SWELL_ASSIGN_OR_RETURN(GateOptions gate, ReadGate(job_));
  if (snapshot == nullptr || snapshot->is_null()) {
    // A model that was never saved begins at the beginning.
    SWELL_ASSIGN_OR_RETURN(LedgerOptions options, ReadJob(job_));
    ledger_.emplace(options, next_lease);
    gate_ = GradientGate(gate);
  } else {
    const json::Value* job = json::Find(*snapshot, {"job"});
    const json::Value* ledger = json::Find(*snapshot, {"ledger"});
    if (job == nullptr || ledger == nullptr || !json::Equal(*job, job_)) {
      return Status(Code::kConflict, "the snapshot is of another job");
    }
    SWELL_ASSIGN_OR_RETURN(ShardLedger restored, ShardLedger::Restore(*ledger, next_lease));
    ledger_ = std::move(restored);
    ledger_->ReturnLeases();
    gate_ = GradientGate(gate);
    gate_.Restore(json::GetInt(*snapshot, {"modelVersion"}), json::GetInt(*snapshot, {"gradients"}),
                  json::GetInt(*snapshot, {"stale"}));
  }
  recent_.clear();
  sequence_ = 0;
  ended_ = false;
  return Answer{json::Object{{"version", gate_.version()}, {"done", ledger_->done()}}, true};
}

JobMaster::Answer JobMaster::Noted() const {
  json::Object answer;
  AddEnd(answer);
  return {std::move(answer), true};
}

void JobMaster::AddEnd(json::Object& answer) const {
  if (finished()) answer["finished"] = true;
  if (!ledger_->failure().empty()) answer["failure"] = ledger_->failure();
}

// Ranges that are done as a whole, told with the request for the next: one exchange for each range.
// The answer: those that were not the worker's any more.
Result<json::Array> JobMaster::Complete(const json::Value& body,
                                        std::string_view worker,
                                        WallTime now) {
  json::Array lost;
  const int64_t before = ledger_->done();
  for (const json::Value& one : json::GetArray(body, {"completed"})) {
    auto lease = one.is_int64() ? ledger_->leases().find(one.get_int64()) : ledger_->leases().end();
    if (lease == ledger_->leases().end() || lease->second.worker != worker) {
      lost.push_back(one);
      continue;
    }
    SWELL_RETURN_IF_ERROR(
        ledger_->Progress(worker, one.get_int64(), lease->second.range.size(), now));
  }
  Count(ledger_->done() - before, now);
  return lost;
}

Result<JobMaster::Answer> JobMaster::Task(const json::Value& body,
                                          std::string_view worker,
                                          WallTime now) {
  const int64_t count =
      std::clamp<int64_t>(json::GetInt(body, {"count"}, 1), 1, kTasksPerRequestMax);
  std::vector<int64_t> held;
  const json::Value* holding = json::Find(body, {"holding"});
  for (const json::Value& one : json::GetArray(body, {"holding"})) {
    if (!one.is_int64()) return Wrong("holding", "Invalid value: must be a list of tasks");
    held.push_back(one.get_int64());
  }
  json::Array tasks;
  json::Object answer;
  SWELL_ASSIGN_OR_RETURN(json::Array lost, Complete(body, worker, now));
  bool changed = json::Find(body, {"completed"}) != nullptr;
  if (holding != nullptr) changed = ledger_->HoldsOnly(worker, held) || changed;
  if (!lost.empty()) answer["lost"] = std::move(lost);
  SWELL_RETURN_IF_ERROR(ledger_->Alive(worker, now));
  for (int64_t i = 0; i < count && !ended_; ++i) {
    SWELL_ASSIGN_OR_RETURN(Handout handout, ledger_->Next(worker, now));
    if (handout.kind != Handout::Kind::kLease) break;
    tasks.push_back(PrintLease(handout.lease));
  }
  const bool none = tasks.empty();
  answer["tasks"] = std::move(tasks);
  if (none) AddEnd(answer);
  if (none && !answer.contains("finished") && !answer.contains("failure"))
    answer["waitMs"] = kWaitMs;
  return Answer{std::move(answer), changed || !none};
}

Result<JobMaster::Answer> JobMaster::Progress(const json::Value& body,
                                              std::string_view worker,
                                              WallTime now) {
  SWELL_ASSIGN_OR_RETURN(int64_t task, Number(body, "task"));
  SWELL_ASSIGN_OR_RETURN(int64_t done, Number(body, "done"));
  const int64_t before = ledger_->done();
  SWELL_RETURN_IF_ERROR(ledger_->Progress(worker, task, done, now));
  Count(ledger_->done() - before, now);
  return Noted();
}

Result<JobMaster::Answer> JobMaster::Failed(const json::Value& body,
                                            std::string_view worker,
                                            WallTime now) {
  SWELL_ASSIGN_OR_RETURN(int64_t task, Number(body, "task"));
  constexpr size_t kReasonBytesMax = 1000;
  const std::string why(json::GetString(body, {"error"}).substr(0, kReasonBytesMax));
  SWELL_RETURN_IF_ERROR(ledger_->Failed(worker, task, why, now));
  return Noted();
}

// The records of a gradient are done with when the gradient is in the sum; both or neither.
Result<JobMaster::Answer> JobMaster::Gradient(const json::Value& body,
                                              std::string_view worker,
                                              WallTime now) {
  SWELL_ASSIGN_OR_RETURN(int64_t task, Number(body, "task"));
  SWELL_ASSIGN_OR_RETURN(int64_t done, Number(body, "done"));
  SWELL_ASSIGN_OR_RETURN(int64_t version, Number(body, "version"));
  const int64_t sequence = json::GetInt(body, {"sequence"});
  if (sequence > 0 && sequence == sequence_) return Answer{sequence_answer_, false};
  json::Object answer{{"accepted", false}, {"apply", false}};
  GradientGate gate = gate_;
  GradientGate::Verdict verdict = gate.Offer(version);
  if (verdict == GradientGate::Verdict::kStale) {
    gate_ = gate;
    SWELL_RETURN_IF_ERROR(ledger_->Alive(worker, now));
  } else {
    const int64_t before = ledger_->done();
    SWELL_RETURN_IF_ERROR(ledger_->Progress(worker, task, done, now));
    Count(ledger_->done() - before, now);
    // What is left of the last sum is an update, too: no record is trained for nothing.
    if (ledger_->finished() && verdict == GradientGate::Verdict::kSummed) {
      verdict = gate.Complete();
    }
    gate_ = gate;
    answer["accepted"] = true;
    answer["apply"] = verdict == GradientGate::Verdict::kComplete;
    answer["gradients"] =
        verdict == GradientGate::Verdict::kComplete ? gate_.last_sum() : gate_.summed();
  }
  answer["version"] = gate_.version();
  AddEnd(answer);
  sequence_ = sequence;
  sequence_answer_ = answer;
  return Answer{std::move(answer), true};
}

Result<JobMaster::Answer> JobMaster::Heartbeat(const json::Value& body,
                                               std::string_view worker,
                                               WallTime now) {
  SWELL_RETURN_IF_ERROR(ledger_->Alive(worker, now));
  bool changed = false;
  auto it = members_.find(worker);
  if (it == members_.end()) {
    it = members_.emplace(std::string(worker), Member()).first;
    it->second.joined = ++joined_;
    ++round_;
    changed = true;
  }
  const std::string_view address = json::GetString(body, {"address"}, it->second.address);
  if (address.size() > kAddressBytesMax) {
    return Wrong("address", "Invalid value: must be at most 512 characters long");
  }
  if (address != it->second.address) {
    it->second.address = address;
    ++round_;
    changed = true;
  }
  it->second.step = json::GetInt(body, {"step"}, it->second.step);
  json::Object answer{{"rendezvous", Rendezvous(worker)}, {"facts", facts_}};
  AddEnd(answer);
  return Answer{std::move(answer), changed};
}

Result<JobMaster::Answer> JobMaster::End() {
  ended_ = true;
  return Answer{json::Object{}, true};
}

Result<JobMaster::Answer> JobMaster::Facts(const json::Value& body) {
  bool changed = false;
  for (const auto& fact : json::GetObject(body, {"facts"})) {
    const json::Value* known = facts_.if_contains(fact.key());
    if (known != nullptr && *known == fact.value()) continue;
    if (known == nullptr && facts_.size() >= kFactsMax) {
      return Wrong("facts", StrCat("Invalid value: there may be ", kFactsMax));
    }
    if (!fact.value().is_string() || fact.value().get_string().size() > kAddressBytesMax ||
        fact.key().size() > kNameBytesMax) {
      return Wrong("facts", "Invalid value: each must be a text of at most 512 characters");
    }
    facts_[fact.key()] = fact.value();
    changed = true;
  }
  return Answer{json::Object{{"facts", facts_}}, changed};
}

// Ranks in the order of joining, so that workers that stay keep their ranks where possible.
json::Value JobMaster::Rendezvous(std::string_view worker) const {
  std::vector<std::pair<int64_t, std::string_view>> order;
  for (const auto& [name, member] : members_) order.emplace_back(member.joined, name);
  std::sort(order.begin(), order.end());
  json::Object hint{{"round", round_}, {"world", static_cast<int64_t>(order.size())}};
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i].second == worker) hint["rank"] = static_cast<int64_t>(i);
  }
  if (!order.empty()) {
    hint["leader"] = order.front().second;
    hint["leaderAddress"] = members_.find(order.front().second)->second.address;
  }
  return hint;
}

void JobMaster::Forget(std::string_view worker) {
  auto it = members_.find(worker);
  if (it == members_.end()) return;
  members_.erase(it);
  ++round_;
}

Result<JobMaster::Answer> JobMaster::Leave(const json::Value& body,
                                           std::string_view worker,
                                           WallTime now) {
  const bool notice = json::GetBool(body, {"notice"}, true);
  if (notice) {
    ledger_->Leave(worker, now);
    if (json::GetString(body, {"reason"}) == "preempted") ++preempted_;
  } else {
    ledger_->Lost(worker, now);
    ++lost_;
  }
  Forget(worker);
  return Answer{json::Object{}, true};
}

json::Value JobMaster::FindExpired(WallTime now) const {
  if (!ledger_) return nullptr;
  const ShardLedger::Expired expired = ledger_->FindExpired(now);
  if (expired.empty()) return nullptr;
  json::Array lost, hung;
  for (const std::string& worker : expired.lost) lost.push_back(json::Value(worker));
  for (int64_t lease : expired.hung) hung.push_back(lease);
  return json::Object{{"lost", std::move(lost)}, {"hung", std::move(hung)}};
}

Result<JobMaster::Answer> JobMaster::Expire(const json::Value& body) {
  ShardLedger::Expired expired;
  for (const json::Value& worker : json::GetArray(body, {"lost"})) {
    if (!worker.is_string()) return Wrong("lost", "Invalid value: must be names");
    expired.lost.emplace_back(json::View(worker.get_string()));
  }
  for (const json::Value& lease : json::GetArray(body, {"hung"})) {
    if (!lease.is_int64()) return Wrong("hung", "Invalid value: must be tasks");
    expired.hung.push_back(lease.get_int64());
  }
  ledger_->Expire(expired);
  for (const std::string& worker : expired.lost) Forget(worker);
  lost_ += static_cast<int64_t>(expired.lost.size());
  hung_ += static_cast<int64_t>(expired.hung.size());
  return Answer{json::Object{}, true};
}

void JobMaster::ForgiveSilence(WallTime now) {
  if (ledger_) ledger_->ForgiveSilence(now);
}

void JobMaster::Count(int64_t records, WallTime now) {
  const int64_t second = SecondOf(now);
  if (recent_.empty() || recent_.back().first < second) recent_.emplace_back(second, 0);
  recent_.back().second += records;
  while (recent_.front().first <= second - kSpeedWindowS) recent_.pop_front();
}

double JobMaster::RecordsPerSecond(WallTime now) const {
  const int64_t second = SecondOf(now);
  int64_t sum = 0, since = second;
  for (const auto& [when, records] : recent_) {
    // The second that is under way is not whole yet.
    if (when <= second - kSpeedWindowS || when >= second) continue;
    sum += records;
    since = std::min(since, when);
  }
  return since == second ? 0 : static_cast<double>(sum) / static_cast<double>(second - since);
}

json::Value JobMaster::State(WallTime now) const {
  if (!ledger_) return json::Object{{"phase", "Waiting"}};
  json::Array workers;
  for (const WorkerView& view : ledger_->Workers(now)) {
    auto member = members_.find(view.name);
    workers.push_back(
        json::Object{{"name", view.name},
                     {"tasks", view.leases},
                     {"records", view.records},
                     {"recordsPerSecond", view.records_per_s},
                     {"silentMs", std::max<int64_t>(0, view.silent / std::chrono::milliseconds(1))},
                     {"straggler", view.straggler},
                     {"step", member == members_.end() ? 0 : member->second.step}});
  }
  const LedgerOptions& options = ledger_->options();
  const char* phase = !ledger_->failure().empty() ? "Failed" : finished() ? "Finished" : "Running";
  return json::Object{{"phase", phase},
                      {"failure", ledger_->failure()},
                      {"records", options.records},
                      {"epochs", options.epochs},
                      {"epoch", std::min(ledger_->epoch() + 1, options.epochs)},
                      {"done", ledger_->done()},
                      {"left", ledger_->left()},
                      {"leased", static_cast<int64_t>(ledger_->leases().size())},
                      {"handedOut", ledger_->handed_out()},
                      {"returned", ledger_->returned()},
                      {"repeatedMax", ledger_->repeated_max()},
                      {"version", gate_.version()},
                      {"gradients", gate_.summed()},
                      {"staleGradients", gate_.stale()},
                      {"recordsPerSecond", RecordsPerSecond(now)},
                      {"preempted", preempted_},
                      {"lost", lost_},
                      {"hung", hung_},
                      {"rendezvous", Rendezvous({})},
                      {"facts", facts_},
                      {"workers", std::move(workers)}};
}

std::string JobMaster::Metrics(WallTime now) const {
  std::string text;
  auto add = [&text](std::string_view name, std::string_view type, std::string_view help,
                     const std::string& value) {
    text += StrCat("# HELP swell_job_", name, " ", help, "\n# TYPE swell_job_", name, " ", type,
                   "\nswell_job_", name, " ", value, "\n");
  };
  if (!ledger_) return text;
  auto whole = [](int64_t value) { return std::to_string(value); };
  add("records_done_total", "counter", "Records that are trained.", whole(ledger_->done()));
  add("records_left", "gauge", "Records still to train.", whole(ledger_->left()));
  add("records_repeated_max", "counter", "Records that may have been trained twice.",
      whole(ledger_->repeated_max()));
  add("ranges_handed_out_total", "counter", "Ranges given to workers.",
      whole(ledger_->handed_out()));
  add("ranges_returned_total", "counter", "Ranges that came back.", whole(ledger_->returned()));
  add("workers", "gauge", "Workers that are there.",
      whole(static_cast<int64_t>(ledger_->worker_count())));
  add("workers_preempted_total", "counter", "Workers that left on notice.", whole(preempted_));
  add("workers_lost_total", "counter", "Workers that fell silent.", whole(lost_));
  add("ranges_hung_total", "counter", "Ranges taken back from hanging workers.", whole(hung_));
  add("gradients_stale_total", "counter", "Gradients of an older model, refused.",
      whole(gate_.stale()));
  add("model_version", "gauge", "Updates of the model.", whole(gate_.version()));
  add("records_per_second", "gauge", "Records trained per second, recently.",
      std::to_string(RecordsPerSecond(now)));
  return text;
}

json::Value JobMaster::Snapshot() const {
  json::Array members;
  for (const auto& [name, member] : members_) {
    members.push_back(json::Object{{"name", name},
                                   {"address", member.address},
                                   {"joined", member.joined},
                                   {"step", member.step}});
  }
  json::Object snapshot{{"firstLease", first_lease_},
                        {"job", job_},
                        {"modelVersion", gate_.version()},
                        {"gradients", gate_.summed()},
                        {"stale", gate_.stale()},
                        {"sequence", sequence_},
                        {"sequenceAnswer", sequence_answer_},
                        {"ended", ended_},
                        {"facts", facts_},
                        {"round", round_},
                        {"joined", joined_},
                        {"preempted", preempted_},
                        {"lost", lost_},
                        {"hung", hung_},
                        {"members", std::move(members)}};
  if (ledger_) snapshot["ledger"] = ledger_->Snapshot();
  return snapshot;
}

Status JobMaster::Restore(const json::Value& snapshot) {
  const json::Value* ledger = json::Find(snapshot, {"ledger"});
  const json::Value* job = json::Find(snapshot, {"job"});
  first_lease_ = json::GetInt(snapshot, {"firstLease"}, first_lease_);
  if (ledger != nullptr) {
    if (job == nullptr) return Wrong("job", "Required value");
    SWELL_ASSIGN_OR_RETURN(GateOptions gate, ReadGate(*job));
    SWELL_ASSIGN_OR_RETURN(ShardLedger restored, ShardLedger::Restore(*ledger, first_lease_));
    job_ = *job;
    ledger_ = std::move(restored);
    gate_ = GradientGate(gate);
    gate_.Restore(json::GetInt(snapshot, {"modelVersion"}), json::GetInt(snapshot, {"gradients"}),
                  json::GetInt(snapshot, {"stale"}));
  }
  sequence_ = json::GetInt(snapshot, {"sequence"});
  sequence_answer_ = json::GetObject(snapshot, {"sequenceAnswer"});
  facts_ = json::GetObject(snapshot, {"facts"});
  ended_ = json::GetBool(snapshot, {"ended"});
  round_ = json::GetInt(snapshot, {"round"});
  joined_ = json::GetInt(snapshot, {"joined"});
  preempted_ = json::GetInt(snapshot, {"preempted"});
  lost_ = json::GetInt(snapshot, {"lost"});
  hung_ = json::GetInt(snapshot, {"hung"});
  for (const json::Value& one : json::GetArray(snapshot, {"members"})) {
    members_[std::string(json::GetString(one, {"name"}))] = {
        .address = std::string(json::GetString(one, {"address"})),
        .joined = json::GetInt(one, {"joined"}),
        .step = json::GetInt(one, {"step"})};
  }
  return Status::Ok();
}

}  // namespace swell::elastic
