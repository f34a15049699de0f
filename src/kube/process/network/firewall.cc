#include "kube/process/network/firewall.h"

#include "base/log.h"
#include "base/strings.h"
#include "kube/process/network/nftables.h"

namespace swell::process {

Firewall::Firewall(RuleScope scope, Post post) : scope_(std::move(scope)), post_(std::move(post)) {}

Firewall::~Firewall() {
  scope_of_calls_.Close();
  worker_.reset();
}

std::string Firewall::RemovalText() const {
  return StrCat("add table bridge ", scope_.table, "\ndelete table bridge ", scope_.table, "\n");
}

Status Firewall::Start() {
  const Result<std::string> tables = AskNftables("list tables bridge\n");
  usable_ = tables.status();
  if (!usable_.ok()) return usable_;
  const std::string own = StrCat("table bridge ", scope_.table);
  for (std::string_view line : Split(*tables, '\n')) inherited_ = inherited_ || Trim(line) == own;
  active_ = inherited_;
  // Whether tables can be made is seen by making one.
  if (!inherited_) usable_ = RunNftables(RemovalText());
  return usable_;
}

bool Firewall::Allows(const std::string& from, const std::string& to, uint16_t port) const {
  if (!told_) return !inherited_;
  return !rules_ || rules_->Allows(from, to, "TCP", port);
}

void Firewall::Enforce(node::SharedRules rules, Done done) {
  if (!usable_.ok()) return done(rules->pods.empty() ? Status::Ok() : usable_);
  told_ = true;
  if (rules->pods.empty()) rules = nullptr;
  if (!rules && !active_ && !under_way_) {
    rules_ = nullptr;
    return done(Status::Ok());
  }
  rules_ = std::move(rules);
  waiting_.push_back(std::move(done));
  Apply();
}

void Firewall::SetServices(std::set<std::pair<std::string, uint16_t>> services) {
  if (services == scope_.services) return;
  scope_.services = std::move(services);
  if (told_ && (active_ || under_way_)) Apply();
}

void Firewall::Apply() {
  again_ = under_way_;
  if (under_way_) return;
  under_way_ = true;
  RuleText made;
  if (rules_) made = MakeRuleText(*rules_, scope_, chains_);
  std::string text = inherited_ || !rules_ ? RemovalText() : "";
  text += made.text;
  auto on_done =
      scope_of_calls_.Wrap([this, chains = std::move(made.chains), kept = rules_ != nullptr,
                            asked = std::exchange(waiting_, {})](const Status& status) {
        under_way_ = false;
        if (status.ok()) {
          chains_ = chains;
          active_ = kept;
          inherited_ = false;
        } else {
          SWELL_LOG_WARNING("network", "rules not kept", {"error", status.ToString()});
        }
        for (const Done& done : asked) done(status);
        if (again_) Apply();
      });
  if (!worker_) worker_ = std::make_unique<IdleWorker>();
  worker_->Post([post = post_, text = std::move(text), on_done] {
    post([on_done, status = RunNftables(text)] { on_done(status); });
  });
}

void Firewall::Shutdown() {
  worker_.reset();
  if (!active_ && !under_way_) return;
  const Status removed = RunNftables(RemovalText());
  if (!removed.ok()) SWELL_LOG_WARNING("network", "rules left", {"error", removed.ToString()});
}

}  // namespace swell::process
