// Revisions: the pod templates that a StatefulSet or DaemonSet has had, as ControllerRevision
// objects, for rolling from one to the next and for `kubectl rollout history|undo`.
// - Threads: core executor only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kube/controllers/workload.h"
#include "kube/controllers/write_batch.h"

namespace swell::controllers {

inline constexpr std::string_view kRevisionLabel = "controller-revision-hash";

struct Revision {
  std::string name;
  std::string hash;  // the label's value on pods of a DaemonSet; a StatefulSet's have the name
  int64_t number = 0;
  json::SharedValue object;  // null while it is being created
};

class Revisions {
 public:
  Revisions(Context& context, client::Client& client)
      : objects_(context.informers.Of(client::resources::kControllerRevisions)), client_(client) {}

  client::Informer& objects() { return objects_; }
  // Oldest first.
  std::vector<Revision> Of(const json::Value& owner) const;
  // The one of the owner's present template; made, or made the newest again, where it is not.
  Revision Ensure(const json::Value& owner, WriteBatch& writes);
  // Removes the oldest beyond the owner's limit that are not among `used` names.
  void Trim(const json::Value& owner, const std::vector<std::string>& used, WriteBatch& writes);

 private:
  client::Informer& objects_;
  client::Client& client_;
};

// The owner with the template that the revision recorded; the owner itself when it has none.
json::Value WithTemplateOf(const json::Value& owner, const Revision& revision);

}  // namespace swell::controllers
