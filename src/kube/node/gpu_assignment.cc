#include "kube/node/gpu_assignment.h"

#include <algorithm>
#include <string_view>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/api/meta/swell_keys.h"

namespace swell::node {

// The pod that uses the device, if it or the new pod has whole devices: a scheduler that is no
// longer the leader may have assigned it a second time. Pods that share a claim share its devices.
const PodWorker* GpuAssignment::FindConflict(int device, bool whole) const {
  for (const auto& [uid, worker] : node_.workers) {
    if (worker.get() == &pod_ || !worker->holds_resources()) continue;
    const std::vector<int>& gpus = worker->gpus();
    if (std::find(gpus.begin(), gpus.end(), device) == gpus.end()) continue;
    if (pod_.claims().MayShare(device, worker->claims())) continue;
    if (whole || worker->claims().Has(device) || worker->requests().contains(kGpuResource)) {
      return worker.get();
    }
  }
  return nullptr;
}

// Whether the pod gets the device that `who` says is its own; adds it to the verdict or makes the
// verdict another one.
bool GpuAssignment::Give(int device, bool whole, const std::string& who) {
  auto reject = [this, &who](const std::string& why) {
    verdict_ = {Verdict::Kind::kRejected, "UnexpectedAdmissionError", StrCat(who, why), {}};
    return false;
  };
  if (node_.bad.contains(device)) {
    return reject(StrCat(": device ", device, " became unhealthy before the pod started"));
  }
  if (const PodWorker* other = FindConflict(device, whole)) {
    if (other->terminating()) {
      verdict_ = {Verdict::Kind::kWait, "", "", {}};
      return false;
    }
    return reject(StrCat(": device ", device, " is used by pod ", api::KeyOf(other->pod())));
  }
  verdict_.gpus.push_back(device);
  return true;
}

PodHost::AdmitResult GpuAssignment::Pick(int64_t wanted) {
  const std::string_view assigned = api::Annotation(pod_.pod(), api::keys::kGpuDevices);
  const std::string who = StrCat("annotation ", api::keys::kGpuDevices, ": ", Quote(assigned));
  for (std::string_view part : Split(assigned, ',')) {
    auto index = ParseInt(Trim(part));
    if (!index || *index < 0 || *index >= node_.devices) {
      return {
          Verdict::Kind::kRejected,
          "UnexpectedAdmissionError",
          StrCat(who, " names a device that this node with ", node_.devices, " GPUs does not have"),
          {}};
    }
    const int device = static_cast<int>(*index);
    const bool whole = wanted > 0 || pod_.claims().Has(device);
    if (!Give(device, whole, who)) return verdict_;
  }
  for (const int device : pod_.claims().Gpus()) {
    const auto& given = verdict_.gpus;
    if (std::find(given.begin(), given.end(), device) != given.end()) continue;
    if (device >= node_.devices) {
      return {Verdict::Kind::kRejected,
              "UnexpectedAdmissionError",
              StrCat("its claims name device ", device, ", which this node with ", node_.devices,
                     " GPUs does not have"),
              {}};
    }
    if (!Give(device, true, "its claims")) return verdict_;
  }
  if (wanted > 0 && assigned.empty()) PickFree(wanted);
  return verdict_;
}

// Picks devices for a pod whose scheduler said nothing of them.
void GpuAssignment::PickFree(int64_t wanted) {
  std::set<int> taken(verdict_.gpus.begin(), verdict_.gpus.end());
  taken.insert(node_.bad.begin(), node_.bad.end());
  for (const auto& [uid, worker] : node_.workers) {
    if (worker.get() == &pod_ || !worker->holds_resources()) continue;
    taken.insert(worker->gpus().begin(), worker->gpus().end());
  }
  for (int index = 0; index < node_.gpus && wanted > 0; ++index) {
    if (taken.contains(index)) continue;
    verdict_.gpus.push_back(index);
    --wanted;
  }
  if (wanted > 0) verdict_ = {Verdict::Kind::kWait, "", "", {}};
}

}  // namespace swell::node
