#include "autoscaling/goodput_scaler.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "autoscaling/goodput_round.h"
#include "base/strings.h"
#include "kube/api/meta/gpu_type_keys.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"
#include "kube/controllers/pod_facts.h"
#include "sched/state/types.h"
#include "sched_inputs/goodput_note.h"

namespace swell::autoscaling {
namespace {

constexpr double kResizeSecondsMax = 600;
constexpr double kMustLastSecondsMax = 24 * 3600;
constexpr int64_t kStepMax = int64_t{1} << 53;
// Sizes that did not pay are tried again after so long, and as long as the job had run: so each
// retry waits longer than the one before.
constexpr Duration kRetryAfter = std::chrono::hours(6);
// The SDK knows the noise after a hundred steps. A script that does not know it some steps later
// cannot measure it, and slow steps must not hold a size for long.
constexpr int64_t kStepsForNoise = 150;
constexpr Duration kWaitForNoise = std::chrono::minutes(10);
// A step has another batch if its records differ by this factor, up or down.
constexpr double kOtherBatch = 1.25;

std::string MembersText(int64_t members) {
  return StrCat(members, members == 1 ? " member" : " members");
}

// What the first rank reports.
struct Report {
  int64_t step = -1;
  double steps_per_second = 0;
  double records_per_second = 0;
  std::optional<double> sync_s;
  double resize_s = 0;
  double batch = 0;  // records of a step
  double noise = 0;  // the noise scale of the gradient, in records
};

double NumberIn(const json::Value& object, std::string_view field) {
  const json::Value* value = json::Find(object, {field});
  if (value == nullptr || !value->is_number()) return 0;
  const auto number = value->to_number<double>();
  return std::isfinite(number) && number > 0 ? number : 0;
}

// The pod's report, if it is about a group of `members` members. Scripts without the SDK do not
// say that.
std::optional<Report> ReportOf(const json::Value& pod, int64_t members, int64_t ranks_per_member) {
  const std::string_view text = api::Annotation(pod, api::keys::kMetrics);
  if (text.empty()) return {};
  const auto metrics = json::Parse(text, {.depth = 8, .bytes = 64 << 10});
  if (!metrics.ok() || !metrics->is_object()) return {};
  const int64_t world = json::GetInt(*metrics, {"world"});
  if (json::Find(*metrics, {"world"}) != nullptr) {
    const bool unknown = ranks_per_member == 0;
    if (unknown ? world < members || world % members != 0 : world != members * ranks_per_member) {
      return {};
    }
  }
  Report report;
  report.step = std::clamp<int64_t>(json::GetInt(*metrics, {"training_step"}, -1), -1, kStepMax);
  report.steps_per_second = NumberIn(*metrics, "steps_per_second");
  report.records_per_second = NumberIn(*metrics, "records_per_second");
  if (json::Find(*metrics, {"sync_seconds"}) != nullptr) {
    report.sync_s = NumberIn(*metrics, "sync_seconds");
  }
  report.resize_s = NumberIn(*metrics, "last_resize_seconds");
  if (report.step < 0 || report.steps_per_second == 0) return {};
  report.batch = NumberIn(*metrics, "batch_records");
  if (report.batch == 0) report.batch = report.records_per_second / report.steps_per_second;
  // A rank that is alone now reports what it measured when it was not.
  if (world > 1) report.noise = NumberIn(*metrics, "gradient_noise_records");
  return report;
}

// The report of the latest step.
std::optional<Report> NewestReport(const std::vector<json::SharedValue>& pods,
                                   int64_t members,
                                   int64_t ranks_per_member) {
  std::optional<Report> newest;
  for (const json::SharedValue& pod : pods) {
    const std::optional<Report> report = ReportOf(*pod, members, ranks_per_member);
    if (report && (!newest || report->step > newest->step)) newest = report;
  }
  return newest;
}

// The members are not empty.
const json::Value& FirstMember(const std::vector<json::SharedValue>& members) {
  return **std::min_element(members.begin(), members.end(), [](const auto& a, const auto& b) {
    return api::Name(*a) < api::Name(*b);
  });
}

}  // namespace

std::string SecondsText(double seconds) {
  if (seconds >= 10) return StrCat(std::llround(seconds), " s");
  const auto tenths = std::max<int64_t>(1, std::llround(seconds * 10));
  return StrCat(tenths / 10, ".", tenths % 10, " s");
}

std::string PercentText(double ratio) {
  const auto percent = std::llround((ratio - 1) * 100);
  return StrCat(percent > 0 ? "+" : "", percent, " %");
}

GoodputScaler::GoodputScaler(controllers::Context context,
                             client::Resource resource,
                             ReadGoodputRole read,
                             std::string default_mode,
                             FindRooms find_rooms)
    : JobScaler(std::move(context), std::move(resource), "goodput"),
      read_(read),
      groups_(context_.informers.Of(client::resources::kPodGroups)),
      nodes_(context_.informers.Of(client::resources::kNodes)),
      defaults_(context_, std::move(default_mode), [this] { RequeueAll(); }),
      find_rooms_(std::move(find_rooms)) {}

void GoodputScaler::ObserveAndDecide(const std::string& key,
                                     const json::SharedValue& job,
                                     client::WorkQueue::Done done) {
  auto target = read_(*job, defaults_.Of(*job));
  if (!target.ok()) {
    Complain(*job, known_[key], target.status().message());
    return done(Duration::zero());
  }
  if (!*target) {
    Drop(*job);
    Forget(key);
    return done(Duration::zero());
  }
  Known& known = Remember(key, *job, **target);
  if (!IsDue(known, *job, (*target)->interval, done)) return;
  auto round = std::make_shared<Round>();
  Begin(*round, key, job, **target, (*target)->interval, std::move(done));
  round->target = std::move(**target);
  FindMembers(*round);
  Observe(*round, known);
  Decide(round);
}

ScaleObservation* GoodputScaler::Recall(const std::string& key) {
  const auto known = known_.find(key);
  return known == known_.end() ? nullptr : &known->second;
}

GoodputScaler::Known& GoodputScaler::Remember(const std::string& key,
                                              const json::Value& job,
                                              const GoodputRole& role) {
  Known& known = known_[key];
  if (known.uid != api::Uid(job)) {
    known = Known();
    known.uid = api::Uid(job);
    const json::Value* status = json::Find(job, {"status", "goodput"});
    known.is_new = status == nullptr;
    if (status != nullptr && json::GetString(*status, {"role"}) == role.role) {
      known.state = GoodputState::FromStatus(*status);
    }
  }
  // The annotation is written together with the number, so it says who set it.
  known.memory = api::Annotation(job, kScaleMemory);
  const auto memory = json::Parse(known.memory, {.depth = 4, .bytes = 4 << 10});
  const json::Value* ours =
      !known.memory.empty() && memory.ok() ? json::Find(*memory, {role.role}) : nullptr;
  known.held = ours != nullptr && json::GetInt(*ours, {"currentReplicas"}) != role.replicas;
  return known;
}

void GoodputScaler::FindMembers(Round& round) const {
  const std::string set = ToLower(round.role);
  std::set<std::string, std::less<>> nodes;
  for (const json::SharedValue& pod : pods_.ByIndex("owner", api::Uid(*round.job))) {
    if (api::Label(*pod, api::keys::kPodSet) != set) continue;
    // Members of another priority are in a group of their own; the first group is the job's.
    const std::string_view group = api::Label(*pod, api::keys::kPodGroup);
    if (round.group.empty() || group.size() < round.group.size()) round.group = group;
    if (api::IsDeleting(*pod) || api::Phase(*pod) != "Running" || controllers::WasPreempted(*pod))
      continue;
    round.members.push_back(pod);
    nodes.emplace(api::NodeName(*pod));
  }
  round.nodes = static_cast<int>(std::max<size_t>(1, nodes.size()));
}

void GoodputScaler::EnterSize(int64_t members, Known& known) const {
  GoodputState& state = known.state;
  known.resized.reset();
  if (members > 0 && state.members > 0) known.resized = context_.clock.Steady();
  state.LeaveSize();
  state.members = members;
  known.fresh = 0;
  known.warm = false;
  known.batch = 0;
  known.noise = false;
  known.other_batch = 0;
}

void GoodputScaler::Observe(const Round& round, Known& known) {
  GoodputState& state = known.state;
  const auto members = static_cast<int64_t>(round.members.size());
  if (members != state.members) EnterSize(members, known);
  if (members == 0) return;
  FollowHold(round, known);
  const json::Value& first = FirstMember(round.members);
  if (known.first != api::Uid(first)) {
    // How long a pod has run that was there before this process says nothing of its start.
    known.starting = !known.first.empty() || known.is_new;
    known.first = api::Uid(first);
    known.warm = false;
  }
  const std::optional<Report> newest =
      NewestReport(round.members, members + round.target.others, round.target.ranks_per_member);
  if (!newest || newest->step == known.step) return;
  known.step = newest->step;
  if (std::exchange(known.starting, false)) NoteStart(first, state);
  const std::optional<SteadyTime> resized = std::exchange(known.resized, std::nullopt);
  if (newest->resize_s > 0) {
    state.resize_s = newest->resize_s;
  } else if (resized) {
    // Nobody measured it: it took until the first report, at most.
    const std::chrono::duration<double> took = context_.clock.Steady() - *resized;
    state.resize_s = std::min(kResizeSecondsMax, took.count());
  }
  if (!std::exchange(known.warm, true)) {
    known.first_step = newest->step;
    known.first_report = context_.clock.Steady();
    return;
  }
  FollowGpuType(round, known);
  // A job that chooses its batch by goodput changes it without being another job.
  if (round.target.batch != goodput::BatchRule::kChosen) FollowBatch(round, known, newest->batch);
  if (newest->noise > 0) {
    known.noise = true;
    state.AddNoise(newest->noise);
  }
  const std::string_view unit = newest->records_per_second > 0 ? "records" : "steps";
  if (state.unit != unit) {
    state.Forget();
    state.unit = unit;
  }
  goodput::Observation seen{.nodes = round.nodes,
                            .speed = newest->records_per_second,
                            .step_s = 1 / newest->steps_per_second,
                            .sync_s = newest->sync_s,
                            .batch = newest->batch,
                            .at_s = context_.clock.Now().unix_ns / 1'000'000'000};
  if (seen.speed == 0) {
    // Steps of members with batches of their own do more the more members there are.
    const bool each = round.target.batch == goodput::BatchRule::kPerMember;
    seen.speed = newest->steps_per_second * (each ? static_cast<double>(members) : 1);
  }
  state.Add(members, seen);
  ++known.fresh;
  if (known.fresh < round.target.observations) return;
  if (AwaitsNoise(round, known)) {
    return SetDecision(known, "Waits for the noise of the gradient, which takes 100 steps");
  }
  NoteMeasured(round, known);
}

bool GoodputScaler::AwaitsNoise(const Round& round, const Known& known) const {
  const int64_t members = known.state.members + round.target.others;
  const int64_t ranks = members * std::max<int64_t>(1, round.target.ranks_per_member);
  if (round.target.batch == goodput::BatchRule::kConstant || ranks < 2) return false;
  return known.state.noise == 0 && known.step - known.first_step < kStepsForNoise &&
         context_.clock.Steady() - known.first_report < kWaitForNoise;
}

// It took until the first report, at most.
void GoodputScaler::NoteStart(const json::Value& pod, GoodputState& state) const {
  const auto start = api::ParseTime(json::GetString(pod, {"status", "startTime"}));
  if (!start) return;
  const double seconds = std::chrono::duration<double>(context_.clock.Now() - *start).count();
  if (seconds > 0) state.restart_s = std::clamp(seconds, 0.1, kResizeSecondsMax);
}

void GoodputScaler::FollowGpuType(const Round& round, Known& known) const {
  const json::SharedValue node = nodes_.Get(api::NodeName(FirstMember(round.members)));
  const std::string_view type =
      node ? api::Label(*node, api::keys::kGpuProduct) : std::string_view();
  const std::string& before = known.state.gpu_type;
  if (type.empty() || type == before) return;
  if (!before.empty()) {
    known.fresh = 0;
    SetDecision(known, StrCat("Measures anew: its GPUs are ", type, " now, and were ", before));
  }
  known.state.ChangeGpuType(type);
}

void GoodputScaler::FollowBatch(const Round& round, Known& known, double records) const {
  if (records <= 0) return;
  if (known.batch == 0) known.batch = records;
  const double ratio = records / known.batch;
  const bool other = ratio > kOtherBatch || ratio < 1 / kOtherBatch;
  known.other_batch = other ? known.other_batch + 1 : 0;
  if (known.other_batch < round.target.observations) return;
  known.state.Forget();
  known.fresh = 0;
  SetDecision(known, StrCat("Measures anew: a step has ", std::llround(records),
                            " records now, and had ", std::llround(known.batch)));
  known.batch = records;
  known.other_batch = 0;
}

// Runs when the present size has been measured: reports what the last change brought.
void GoodputScaler::NoteMeasured(const Round& round, Known& known) {
  GoodputState& state = known.state;
  const int64_t before = std::exchange(state.measured_at, state.members);
  NoteMoved(round, known);
  if (before == 0 || before == state.members) return;
  const auto& sizes = state.published.sizes();
  const auto was = sizes.find(static_cast<int>(before));
  const auto is = sizes.find(static_cast<int>(state.members));
  if (was == sizes.end() || is == sizes.end()) return;
  const goodput::BatchFacts batch = BatchOf(state, round.target);
  const auto goodput_at = [&](const auto& size) {
    return size.second.speed * goodput::EfficiencyAt(state.published, batch, size.first);
  };
  std::string text =
      StrCat(state.members > before ? "Grew" : "Shrank", " from ", before, " to ", state.members,
             ": ", PercentText(goodput_at(*is) / goodput_at(*was)), " goodput measured");
  if (state.resize_s > 0) text += StrCat("; the resize took ", SecondsText(state.resize_s));
  events_.Record(*round.job, "Normal", "GoodputMeasured", text);
  // Why it went back says more.
  if (std::exchange(known.went_back, false) && state.members < before) return;
  SetDecision(known, std::move(text));
}

void GoodputScaler::SetDecision(Known& known, std::string decision) const {
  if (known.state.decision == decision) return;
  known.state.decision = std::move(decision);
  known.state.decided_at = context_.clock.Now();
}

Duration GoodputScaler::RunOf(const Round& round) const {
  const auto start = api::ParseTime(json::GetString(*round.job, {"status", "startTime"}));
  if (!start) return Duration::zero();
  return std::max<Duration>(Duration::zero(), context_.clock.Now() - *start);
}

std::string GoodputScaler::TooDear(const Round& round,
                                   const GoodputState& state,
                                   int wanted) const {
  const goodput::Curve& curve = round.outlook.curve;
  const double here = static_cast<double>(curve.At(round.replicas));
  const double gain = static_cast<double>(curve.At(wanted)) / here - 1;
  const double usual = std::chrono::duration<double>(sched::kResizeCostUnknown).count();
  // A size that is only tried may have to be left again.
  const double resizes = round.outlook.Tried(wanted) ? 1 : 2;
  const double cost_s = resizes * (state.resize_s > 0 ? state.resize_s : usual);
  const double must_last_s = std::min(cost_s / gain, kMustLastSecondsMax);
  const Duration must_last = std::chrono::seconds(std::llround(must_last_s));
  if (gain > 0 && goodput::LastsFor(RunOf(round)) >= must_last) return "";
  return StrCat("Stays at ", MembersText(round.replicas), ": to try ", wanted,
                " it would stand still for ", SecondsText(cost_s),
                "; it tries when it has run for ",
                api::HumanDuration(goodput::RunUntilLasts(must_last)));
}

void GoodputScaler::ForgetOld(const Round& round, Known& known) const {
  GoodputState& state = known.state;
  // What was seen at s after a run of r is old at s + kRetryAfter + r.
  const WallTime old = context_.clock.Now() - (kRetryAfter + RunOf(round)) / 2;
  const size_t before = state.published.sizes().size();
  const auto forget = [&](goodput::Measurements& measured) {
    measured.ForgetLarger(static_cast<int>(state.members), old.unix_ns / 1'000'000'000);
  };
  forget(state.measured);
  forget(state.published);
  for (auto& [type, measured] : state.other_types) forget(measured);
  // Noise grows while a model learns, so an old number would keep the job small for ever.
  if (!known.noise && state.published.sizes().size() < before) state.noise = 0;
}

void GoodputScaler::Decide(const RoundPtr& round) {
  Known& known = known_.at(round->key);
  GoodputState& state = known.state;
  const bool measured = state.members > 0 && state.measured_at == state.members;
  if (measured && !known.held) ForgetOld(*round, known);
  round->outlook = OutlookOf(state, round->target);
  const std::vector<goodput::SizeSpeed>& speeds = round->outlook.speeds;
  const int64_t now = round->replicas;
  state.wanted = now;
  if (known.held) {
    SetDecision(known, StrCat(now,
                              " members were asked for by somebody else, and stay; without the "
                              "annotation ",
                              kScaleMemory, " goodput decides again"));
    return Write(round);
  }
  if (speeds.empty()) {
    if (state.decision.empty()) SetDecision(known, "Waits for the first reports of its speed");
    return Write(round);
  }
  // A size that is new is measured before the next decision.
  if (!measured) return Write(round);
  const int wanted =
      goodput::SizeToRequest(speeds, static_cast<int>(std::min<int64_t>(now, INT32_MAX)));
  if (wanted != now) RequestSize(*round, known, wanted);
  if (state.wanted == now && ConsiderMove(round)) return;
  Write(round);
}

void GoodputScaler::RequestSize(const Round& round, Known& known, int wanted) const {
  const int64_t now = round.replicas;
  const std::string change = ChangeText(round.outlook.curve, now, wanted);
  if (wanted < now) {
    known.went_back = true;
    SetDecision(known,
                StrCat("Goes back from ", MembersText(now), " to ", wanted, ", because ", now,
                       round.members.size() == static_cast<size_t>(now) ? " made " : " would make ",
                       MoreText(round.outlook.curve, wanted, now),
                       " goodput; it tries more again when its batch or the type of its GPUs "
                       "changes, or after ",
                       api::HumanDuration(kRetryAfter + RunOf(round))));
  } else if (std::string dear = TooDear(round, known.state, wanted); !dear.empty()) {
    return SetDecision(known, std::move(dear));
  } else if (round.outlook.Tried(wanted)) {
    SetDecision(known, StrCat("Asks for ", MembersText(wanted), " instead of ", now, ": ", change,
                              " goodput expected"));
  } else {
    SetDecision(known, StrCat("Tries ", MembersText(wanted), " instead of ", now,
                              ": not measured yet, at best ", change, " goodput"));
  }
  known.state.wanted = wanted;
}

void GoodputScaler::Write(const RoundPtr& round) {
  Known& known = known_.at(round->key);
  if (known.state.wanted == 0 || known.state.wanted == round->replicas) return WriteNote(round);
  const int64_t wanted = known.state.wanted;
  const std::string memory =
      json::Print(json::Object{{round->role, json::Object{{"currentReplicas", wanted}}}});
  WriteJob(round, wanted, {}, memory, [this, round](const Status& written) {
    if (written.ok()) return WriteNote(round);
    // Another writer changed the job: the decision is taken again from what it wrote.
    known_.at(round->key).looked.reset();
    Finish(round, written);
  });
}

void GoodputScaler::WriteNote(const RoundPtr& round) {
  const GoodputState& state = known_.at(round->key).state;
  const json::SharedValue group = groups_.Get(StrCat(round->ns, "/", round->group));
  if (round->outlook.curve.empty() || !group) return WriteStatus(round);
  sched::GoodputInfo goodput{
      .pod_set = ToLower(round->role),
      .curve = round->outlook.curve.points(),
      .measured_at = static_cast<int32_t>(std::min<int64_t>(state.measured_at, INT32_MAX))};
  if (state.resize_s > 0) {
    goodput.resize_cost = std::chrono::milliseconds(std::llround(state.resize_s * 1000));
  }
  const std::string note = sched_inputs::GoodputNote(goodput);
  if (api::Annotation(*group, sched_inputs::kGoodputNote) == note) return WriteStatus(round);
  json::Value patch;
  json::Set(patch, {"metadata", "uid"}, api::Uid(*group));
  json::Set(patch, {"metadata", "annotations", sched_inputs::kGoodputNote}, note);
  client_.Patch(client::resources::kPodGroups, round->ns, round->group, client::PatchType::kMerge,
                patch, [this, round](const Result<json::SharedValue>& written) {
                  if (!written.ok()) return Finish(round, written.status());
                  if (Recall(round->key) == nullptr) return Finish(round, Status::Ok());
                  WriteStatus(round);
                });
}

void GoodputScaler::Drop(const json::Value& job) {
  const std::string ns(api::Namespace(job));
  const json::SharedValue group = groups_.Get(api::KeyOf(job));
  if (group && !api::Annotation(*group, sched_inputs::kGoodputNote).empty()) {
    json::Value patch;
    json::Set(patch, {"metadata", "annotations", sched_inputs::kGoodputNote}, json::Value(nullptr));
    client_.Patch(client::resources::kPodGroups, ns, api::Name(job), client::PatchType::kMerge,
                  patch, {});
  }
  // A hold that somebody else wrote is theirs.
  const bool held = json::Find(job, {"status", "goodput", "heldTo"}) != nullptr;
  if (held && !api::Annotation(job, api::keys::kHeldGpuType).empty()) {
    json::Value patch;
    json::Set(patch, {"metadata", "uid"}, api::Uid(job));
    json::Set(patch, {"metadata", "annotations", api::keys::kHeldGpuType}, json::Value(nullptr));
    client_.Patch(resource_, ns, api::Name(job), client::PatchType::kMerge, patch, {});
  }
  // What was measured stays, for when the default is back.
  if (!held && json::Find(job, {"status", "goodput", "defaultOf"}) == nullptr) return;
  json::Value patch;
  json::Set(patch, {"metadata", "uid"}, api::Uid(job));
  json::Set(patch, {"status", "goodput", "defaultOf"}, json::Value(nullptr));
  json::Set(patch, {"status", "goodput", "heldTo"}, json::Value(nullptr));
  client_.Patch(resource_, ns, api::Name(job), client::PatchType::kMerge, patch, {}, "status");
}

void GoodputScaler::WriteStatus(const RoundPtr& round) {
  json::Value wanted = ToStatus(known_.at(round->key).state, round->target, round->outlook);
  const json::Value* shown = json::Find(*round->job, {"status", "goodput"});
  if (shown != nullptr && json::Equal(*shown, wanted)) return Finish(round, Status::Ok());
  for (std::string_view optional :
       {"gpuType", "otherTypes", "defaultOf", "nextPercent", "resizeSeconds", "noiseRecords",
        "decision", "decidedAt", "restartSeconds", "heldTo", "typeDecision", "move"}) {
    if (json::Find(wanted, {optional}) == nullptr)
      json::Set(wanted, {optional}, json::Value(nullptr));
  }
  PatchStatusField(round, {"status", "goodput"}, std::move(wanted));
}

}  // namespace swell::autoscaling
