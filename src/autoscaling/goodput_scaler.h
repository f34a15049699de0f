// GoodputScaler: measures elastic jobs with `mode: Goodput` at every size that they have, and tells
// the scheduler what they would make of more members.
//
// Once per interval it reads what the job's members report of their speed, keeps means by size in
// status.goodput, and works out the curve (src/goodput). The curve goes to the scheduler as an
// annotation of the job's PodGroup, from which the scheduler decides who gets members beyond the
// minima (docs/scheduling.md). The job itself asks for as many members as pay (SizeToRequest), and
// never for more than twice what was measured. Where the batch grows with the members, the noise of
// the gradient says what that is worth. A size that was never measured is taken to pay at
// best, so it is tried where that is worth the resizes. One that did not pay is tried again when
// the batch has changed, or after a long time. Each type of GPU has measurements of its own; sizes
// that were measured on another type alone follow from the ratio of both.
//
// A job that would make clearly more of GPUs of another type moves there: it is held to that type
// by an annotation, by which its controller restarts it (src/jobs). One job moves at a time.
//
// A job that names no mode is scaled so where its project or the cluster makes it the default.
// A job whose number of members somebody else sets is still measured; its number stays.
//
// - Threads: core executor only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autoscaling/goodput_status.h"
#include "autoscaling/goodput_target.h"
#include "autoscaling/job_scaler.h"
#include "autoscaling/scaling_defaults.h"
#include "goodput/type_move.h"
#include "sched/room_elsewhere.h"

namespace swell::autoscaling {

class GoodputScaler final : public JobScaler {
 public:
  // What the pod group of that key could have on nodes with other values of the label.
  using FindRooms = std::function<std::vector<sched::RoomElsewhere>(const std::string& group,
                                                                    const std::string& label)>;
  // `default_mode`: the cluster's, of jobs that name none and whose projects have no default.
  // Without `find_rooms` no job moves to another type.
  GoodputScaler(controllers::Context context,
                client::Resource resource,
                ReadGoodputRole read,
                std::string default_mode,
                FindRooms find_rooms);

 private:
  struct Known : ScaleObservation {
    GoodputState state;
    std::string memory;       // the annotation, as written
    bool held = false;        // somebody else set the number of members
    int64_t step = -1;        // of the observation before
    int64_t fresh = 0;        // observations of the present size
    bool warm = false;        // the first observation of this size was skipped: it says little
    int64_t first_step = 0;   // of the present size that was reported
    SteadyTime first_report;  // when that was
    double batch = 0;         // records of a step at this size; 0: not known yet
    bool noise = false;       // this size measures the gradient's noise; one rank alone cannot
    int other_batch = 0;      // observations in a row with clearly more or fewer
    bool went_back = false;   // it shrinks, because what it tried did not pay
    std::optional<SteadyTime> resized;  // when the size changed, until its first report
    bool is_new = false;                // nothing was known of the job when this process saw it
    std::string first;                  // the uid of the first member's pod
    bool starting = false;              // that pod is new and has reported nothing yet
    std::optional<SteadyTime> moves_considered;
  };
  struct Round;
  using RoundPtr = std::shared_ptr<Round>;

  void ObserveAndDecide(const std::string& key,
                        const json::SharedValue& job,
                        client::WorkQueue::Done done) override;
  ScaleObservation* Recall(const std::string& key) override;
  void Forget(const std::string& key) override { known_.erase(key); }
  Known& Remember(const std::string& key, const json::Value& job, const GoodputRole& role);
  void FindMembers(Round& round) const;
  void Observe(const Round& round, Known& known);
  // Whether the job may still learn what a larger batch is worth, at this size.
  bool AwaitsNoise(const Round& round, const Known& known) const;
  // The job has another number of members: what is measured from now on belongs to that size.
  void EnterSize(int64_t members, Known& known) const;
  // With GPUs of another type the size is measured anew.
  void FollowGpuType(const Round& round, Known& known) const;
  void NoteStart(const json::Value& pod, GoodputState& state) const;
  // With another batch, what was measured counts no more.
  void FollowBatch(const Round& round, Known& known, double records) const;
  // Larger sizes that were seen long ago are tried again.
  void ForgetOld(const Round& round, Known& known) const;
  void NoteMeasured(const Round& round, Known& known);
  void Decide(const RoundPtr& round);
  Duration RunOf(const Round& round) const;
  // Another size is better: asks for it, unless that costs too much yet.
  void RequestSize(const Round& round, Known& known, int wanted) const;
  // Why the job does not ask for a size that may pay yet. Empty: it does.
  std::string TooDear(const Round& round, const GoodputState& state, int wanted) const;
  void SetDecision(Known& known, std::string decision) const;
  // goodput_moves.cc
  void FollowHold(const Round& round, Known& known) const;
  void NoteMoved(const Round& round, Known& known);
  // True: the job moves, and the round ends when that is written.
  bool ConsiderMove(const RoundPtr& round);
  using Rooms = std::map<std::string, int32_t>;  // members by type
  std::vector<goodput::TypeOffer> OffersFor(const Round& round,
                                            const GoodputState& state,
                                            const Rooms* rooms) const;
  std::map<std::string, double> RatiosOfOthers(const Round& round, const GoodputState& state) const;
  goodput::MoveTerms TermsOf(const Round& round, const GoodputState& state) const;
  std::string WhyHeldBack(const Round& round) const;
  bool InOneGroup(const Round& round) const;
  bool SomebodyMoves(const std::string& but) const;
  void StartMove(const RoundPtr& round, const goodput::TypeOffer& offer, double gain);
  // An empty type takes the hold away.
  void WriteHold(const RoundPtr& round, std::string_view type, std::function<void()> then);

  void Write(const RoundPtr& round);
  // Tells the scheduler, if the PodGroup does not say so yet.
  void WriteNote(const RoundPtr& round);
  // The job is not scaled by goodput any more: the scheduler and readers of the status are told.
  void Drop(const json::Value& job);
  void WriteStatus(const RoundPtr& round);

  ReadGoodputRole read_;
  client::Informer& groups_;
  client::Informer& nodes_;
  ScalingDefaults defaults_;
  FindRooms find_rooms_;
  bool hold_under_way_ = false;         // one is being written
  std::map<std::string, Known> known_;  // by the job's key
};

}  // namespace swell::autoscaling
