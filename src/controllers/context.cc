#include "controllers/context.h"

#include "api/meta.h"
#include "base/strings.h"

namespace swell::controllers {
namespace {

std::vector<std::string> NonEmpty(std::string value) {
  if (value.empty()) return {};
  return {std::move(value)};
}

void IndexPods(client::Informer& pods) {
  pods.AddIndex("node", [](const json::Value& pod) {
    return NonEmpty(std::string(json::GetString(pod, {"spec", "nodeName"})));
  });
  pods.AddIndex("group", [](const json::Value& pod) {
    std::string_view group = api::Label(pod, keys::kPodGroup);
    return NonEmpty(group.empty() ? "" : StrCat(api::Namespace(pod), "/", group));
  });
  pods.AddIndex("owner", [](const json::Value& pod) {
    auto owner = api::ControllerOf(pod);
    return NonEmpty(owner ? owner->uid : "");
  });
}

}  // namespace

Informers::Informers(Executor& executor,
                     std::shared_ptr<api::RestHandler> server,
                     api::UserInfo user,
                     uint64_t seed)
    : executor_(executor), server_(std::move(server)), user_(std::move(user)), seed_(seed) {}

client::Informer& Informers::Of(const client::Resource& resource) {
  auto& informer = informers_[resource];
  if (!informer) {
    informer = std::make_unique<client::Informer>(executor_, server_, user_, resource,
                                                  client::InformerOptions{}, ++seed_);
    if (resource.plural == "pods") IndexPods(*informer);
    unstarted_.push_back(informer.get());
  }
  return *informer;
}

client::Informer* Informers::Find(const client::Resource& resource) const {
  auto it = informers_.find(resource);
  return it == informers_.end() ? nullptr : it->second.get();
}

void Informers::Start() {
  for (client::Informer* informer : std::exchange(unstarted_, {})) informer->Start();
}

bool Informers::synced() const {
  for (const auto& [resource, informer] : informers_) {
    if (!informer->synced()) return false;
  }
  return true;
}

void Informers::WhenSynced(std::function<void()> done) {
  for (auto& [resource, informer] : informers_) {
    if (informer->synced()) continue;
    informer->WhenSynced([this, done = std::move(done)]() mutable { WhenSynced(std::move(done)); });
    return;
  }
  done();
}

}  // namespace swell::controllers
