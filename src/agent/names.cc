#include "agent/names.h"

#include <algorithm>
#include <set>
#include <utility>

#include "api/meta.h"
#include "base/strings.h"

namespace swell::agent {
namespace {

constexpr Duration kFlushInterval = std::chrono::milliseconds(100);
constexpr std::string_view kDomain = "cluster.local";

bool Selects(const json::Object& selector, const json::Value& pod) {
  for (const auto& want : selector) {
    if (!want.value().is_string() ||
        api::Label(pod, want.key()) != json::View(want.value().get_string())) {
      return false;
    }
  }
  return true;
}

bool Ended(const json::Value& pod) {
  std::string_view phase = json::GetString(pod, {"status", "phase"});
  return phase == "Succeeded" || phase == "Failed" || api::IsDeleting(pod);
}

// What of a pod the names depend on.
bool SameForNames(const json::Value& a, const json::Value& b) {
  return json::GetString(a, {"status", "podIP"}) == json::GetString(b, {"status", "podIP"}) &&
         Ended(a) == Ended(b) &&
         api::ConditionIsTrue(a, "Ready") == api::ConditionIsTrue(b, "Ready") &&
         json::Print(json::GetObject(a, {"metadata", "labels"})) ==
             json::Print(json::GetObject(b, {"metadata", "labels"}));
}

std::string EnvName(std::string_view name) {
  std::string out = ToUpper(name);
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
}

}  // namespace

ServiceNames::ServiceNames(Executor& executor,
                           std::shared_ptr<api::RestHandler> server,
                           api::UserInfo user)
    : executor_(executor),
      services_(executor, server, user, client::resources::kServices, {}, 11),
      endpoints_(executor, server, user, client::resources::kEndpoints, {}, 12),
      pods_(executor,
            server,
            user,
            client::resources::kPods,
            {.ns = "", .label_selector = "", .field_selector = "spec.nodeName!="},
            13) {
  pods_.AddIndex("namespace",
                 [](const json::Value& pod) { return std::string(api::Namespace(pod)); });
  auto touch = [this](const json::SharedValue&) { Touch(); };
  auto touch_update = [this](const json::SharedValue&, const json::SharedValue&) { Touch(); };
  services_.AddHandlers({touch, touch_update, touch});
  endpoints_.AddHandlers({touch, touch_update, touch});
  pods_.AddHandlers({touch,
                     [this](const json::SharedValue& old_pod, const json::SharedValue& pod) {
                       if (!SameForNames(*old_pod, *pod)) Touch();
                     },
                     touch});
}

ServiceNames::~ServiceNames() { executor_.Cancel(timer_); }

void ServiceNames::Start() {
  services_.Start();
  endpoints_.Start();
  pods_.Start();
}

void ServiceNames::Touch() {
  dirty_ = true;
  if (cooling_ || flush_posted_) return;
  flush_posted_ = true;
  executor_.Post([this, alive = std::weak_ptr<bool>(alive_)] {
    if (alive.expired()) return;
    flush_posted_ = false;
    Flush();
  });
}

void ServiceNames::Flush() {
  if (!dirty_) return;
  dirty_ = false;
  cooling_ = true;
  timer_ = executor_.After(kFlushInterval, [this] {
    cooling_ = false;
    Flush();
  });
  std::vector<Entry> now = Compute();
  std::set<std::string> changed;  // namespaces whose names differ
  auto collect = [&changed](const std::vector<Entry>& from, const std::vector<Entry>& other) {
    for (const Entry& entry : from) {
      if (std::find(other.begin(), other.end(), entry) == other.end()) changed.insert(entry.ns);
    }
  };
  collect(now, entries_);
  collect(entries_, now);
  if (changed.empty()) return;
  entries_ = std::move(now);
  ++generation_;
  // Everybody sees every namespace's full names.
  std::vector<std::shared_ptr<Subscriber>> live;
  for (auto it = subscribers_.begin(); it != subscribers_.end();) {
    if (auto subscriber = it->second.lock()) {
      live.push_back(std::move(subscriber));
      ++it;
    } else {
      it = subscribers_.erase(it);
    }
  }
  for (const auto& subscriber : live) subscriber->changed(generation_);
}

std::vector<std::string> ServiceNames::AddressesOf(const json::Value& service) const {
  std::vector<std::string> ready, running;
  const json::Object& selector = json::GetObject(service, {"spec", "selector"});
  bool publish_all = json::GetBool(service, {"spec", "publishNotReadyAddresses"});
  if (!selector.empty()) {
    for (const json::SharedValue& pod : pods_.ByIndex("namespace", api::Namespace(service))) {
      std::string_view ip = json::GetString(*pod, {"status", "podIP"});
      if (ip.empty() || Ended(*pod) || !Selects(selector, *pod)) continue;
      running.emplace_back(ip);
      if (publish_all || api::ConditionIsTrue(*pod, "Ready")) ready.emplace_back(ip);
    }
  } else if (auto endpoints = endpoints_.Get(api::KeyOf(service))) {
    for (const json::Value& subset : json::GetArray(*endpoints, {"subsets"})) {
      for (const json::Value& address : json::GetArray(subset, {"addresses"})) {
        ready.emplace_back(json::GetString(address, {"ip"}));
      }
    }
  }
  return ready.empty() ? running : ready;
}

std::vector<ServiceNames::Entry> ServiceNames::Compute() const {
  std::vector<Entry> entries;
  for (const auto& [key, service] : services_.objects()) {
    std::string name(api::Name(*service));
    std::string ns(api::Namespace(*service));
    std::vector<std::string> addresses = AddressesOf(*service);
    bool headless = json::GetString(*service, {"spec", "clusterIP"}) == "None";
    if (!headless && addresses.size() > 1) addresses.resize(1);
    for (std::string& ip : addresses) {
      entries.push_back({ns,
                         std::move(ip),
                         {name},
                         {StrCat(name, ".", ns), StrCat(name, ".", ns, ".svc"),
                          StrCat(name, ".", ns, ".svc.", kDomain)}});
    }
  }
  for (const auto& [key, pod] : pods_.objects()) {
    std::string_view ip = json::GetString(*pod, {"status", "podIP"});
    std::string_view subdomain = json::GetString(*pod, {"spec", "subdomain"});
    if (ip.empty() || subdomain.empty() || Ended(*pod)) continue;
    std::string ns(api::Namespace(*pod));
    std::string name =
        StrCat(json::GetString(*pod, {"spec", "hostname"}, api::Name(*pod)), ".", subdomain);
    entries.push_back({ns,
                       std::string(ip),
                       {name},
                       {StrCat(name, ".", ns), StrCat(name, ".", ns, ".svc"),
                        StrCat(name, ".", ns, ".svc.", kDomain)}});
  }
  return entries;
}

std::vector<HostsEntry> ServiceNames::HostsFor(const json::Value& pod) const {
  std::vector<HostsEntry> hosts;
  std::string_view ns = api::Namespace(pod);
  for (const Entry& entry : entries_) {
    HostsEntry line{entry.ip, {}};
    if (entry.ns == ns) line.names = entry.local;
    line.names.insert(line.names.end(), entry.full.begin(), entry.full.end());
    hosts.push_back(std::move(line));
  }
  return hosts;
}

EnvList ServiceNames::ServiceEnv(std::string_view ns) const {
  EnvList env;
  for (const auto& [key, service] : services_.objects()) {
    if (api::Namespace(*service) != ns) continue;
    std::string_view cluster_ip = json::GetString(*service, {"spec", "clusterIP"});
    const json::Array& ports = json::GetArray(*service, {"spec", "ports"});
    // Headless services have no variables; without a proxy nobody listens on the cluster IP, so
    // the variable says where the name leads.
    if (cluster_ip == "None" || cluster_ip.empty() || ports.empty()) continue;
    std::vector<std::string> addresses = AddressesOf(*service);
    if (addresses.empty()) continue;
    std::string name = EnvName(api::Name(*service));
    std::string port = std::to_string(
        json::GetInt(ports.front(), {"targetPort"}, json::GetInt(ports.front(), {"port"})));
    env.emplace_back(name + "_SERVICE_HOST", addresses.front());
    env.emplace_back(name + "_SERVICE_PORT", port);
    for (const json::Value& item : ports) {
      std::string_view port_name = json::GetString(item, {"name"});
      if (port_name.empty()) continue;
      env.emplace_back(
          StrCat(name, "_SERVICE_PORT_", EnvName(port_name)),
          std::to_string(json::GetInt(item, {"targetPort"}, json::GetInt(item, {"port"}))));
    }
    env.emplace_back(name + "_PORT", StrCat("tcp://", addresses.front(), ":", port));
  }
  return env;
}

std::shared_ptr<void> ServiceNames::Subscribe(const std::string& ns,
                                              std::function<void(uint64_t)> changed) {
  auto subscriber = std::make_shared<Subscriber>(Subscriber{ns, std::move(changed)});
  subscribers_[next_subscriber_++] = subscriber;
  return subscriber;
}

}  // namespace swell::agent
