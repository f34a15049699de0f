#include "jobs/pass/job_dependents.h"

#include <memory>
#include <utility>

#include "base/strings.h"
#include "kube/api/meta/meta.h"

namespace swell::jobs {
namespace {

using Written = Result<json::SharedValue>;

struct Putting {
  client::Client& client;
  std::string ns, owner;
  std::vector<json::Value> objects;
  std::function<void(const Status&, const std::set<std::string>&)> done;
  std::set<std::string> left_out;  // service accounts

  void End(const Status& status) const { done(status, left_out); }
};
using PuttingPtr = std::shared_ptr<Putting>;

client::Resource ResourceOf(const json::Value& object) {
  const std::string_view version = api::ApiVersionOf(object);
  const size_t slash = version.find('/');
  const bool core = slash == std::string_view::npos;
  return {std::string(core ? "" : version.substr(0, slash)),
          std::string(core ? version : version.substr(slash + 1)),
          StrCat(ToLower(api::KindOf(object)), "s"), true};
}

// A quota's refusal is for now; a missing right is for good.
bool IsRightNotOurs(const json::Value& object, const Status& refused) {
  const std::string_view kind = api::KindOf(object);
  return refused.code() == Code::kForbidden &&
         refused.message().find("exceeded quota") == std::string::npos &&
         (kind == "ServiceAccount" || kind == "Role" || kind == "RoleBinding");
}

void PutNext(const PuttingPtr& putting, size_t index);

void Update(const PuttingPtr& putting, size_t index) {
  const json::Value& object = putting->objects[index];
  const client::Resource resource = ResourceOf(object);
  const std::string name(api::Name(object));
  putting->client.Get(resource, putting->ns, name, [=](const Written& there) {
    if (!there.ok()) return putting->End(there.status());
    const auto owner = api::ControllerOf(**there);
    if (!owner || owner->uid != putting->owner) {
      return putting->End(
          Status(Code::kAlreadyExists, StrCat(resource.GroupResource(), " ", Quote(name),
                                              " exists and belongs to another object")));
    }
    putting->client.Patch(resource, putting->ns, name, client::PatchType::kApply,
                          putting->objects[index], [=](const Written& written) {
                            if (!written.ok()) return putting->End(written.status());
                            PutNext(putting, index + 1);
                          });
  });
}

void PutNext(const PuttingPtr& putting, size_t index) {
  if (index == putting->objects.size()) return putting->End(Status::Ok());
  const json::Value& object = putting->objects[index];
  putting->client.Create(ResourceOf(object), putting->ns, object, [=](const Written& made) {
    if (made.ok()) return PutNext(putting, index + 1);
    const bool known = made.status().code() == Code::kAlreadyExists;
    const bool done = known && json::GetBool(putting->objects[index], {"immutable"});
    if (done) return PutNext(putting, index + 1);
    if (known) return Update(putting, index);
    if (!IsRightNotOurs(putting->objects[index], made.status())) return putting->End(made.status());
    if (api::KindOf(putting->objects[index]) == "ServiceAccount") {
      putting->left_out.emplace(api::Name(putting->objects[index]));
    }
    PutNext(putting, index + 1);
  });
}

}  // namespace

void PutDependents(client::Client& client,
                   const json::Value& job,
                   std::vector<json::Value> dependents,
                   std::function<void(const Status&, const std::set<std::string>&)> done) {
  for (json::Value& one : dependents) {
    json::Set(one, {"metadata", "ownerReferences"}, json::Array{api::MakeOwnerReference(job)});
  }
  PutNext(std::make_shared<Putting>(Putting{client,
                                            std::string(api::Namespace(job)),
                                            std::string(api::Uid(job)),
                                            std::move(dependents),
                                            std::move(done),
                                            {}}),
          0);
}

}  // namespace swell::jobs
