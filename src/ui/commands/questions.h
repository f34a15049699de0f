// What the pages ask of the commands' code: why a job waits (`swell why`), where one would go
// (`swell submit --dry-run=plan`), what would follow from a change of the cluster, and for a
// TensorBoard beside a job (`arena submit --tensorboard`), and of users (`swell user`). Each answer
// is a document for the pages; docs/ui.md describes them.
// - Threads: block on the session's loop; see CommandRunner.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "cli/access/users.h"
#include "cli/session.h"

namespace swell::ui {

Result<json::Value> AskWhy(cli::Session& session,
                           cli::Api& api,
                           const std::string& ns,
                           const std::string& name,
                           const std::string& kind);
// `job`: its manifest.
Result<json::Value> AskPlan(cli::Session& session, cli::Api& api, const json::Value& job);
// {"quota": [{"project", "pool", "gpu"}], "addNodes": [{"like", "count"}], "addJob": manifest}
Result<json::Value> AskWhatIf(cli::Session& session, cli::Api& api, const json::Value& change);

struct TensorboardQuestion {
  bool start = false;  // makes a missing one
  bool opens = false;  // the pages open it, so it needs no node port
};
// {"state": "None" | "Starting" | "Ready" | "Failed", "url", "port", "message", "opens", "closed"}
// of the TensorBoard beside the job; "closed" says why the pages do not open it. Asked again until
// it is ready or failed.
Result<json::Value> AskTensorboard(cli::Session& session,
                                   cli::Api& api,
                                   const std::string& ns,
                                   const std::string& name,
                                   const std::string& kind,
                                   TensorboardQuestion question);
// {"namespace", "service"} of a job's TensorBoard that is ready and that the user may reach.
// kForbidden names the right that is missing, kConflict says that it is not ready.
Result<json::Value> AskOpening(cli::Session& session,
                               cli::Api& api,
                               const std::string& ns,
                               const std::string& name);
// Why the pages open no programs of pods.
inline constexpr std::string_view kNoPrograms =
    "this server of the pages has no port for programs that pods serve: give it "
    "--ui-programs-address HOST:PORT";

// {"name", "role", "projects", "groups", "runAs", "days"} → {"name", "kubeconfig"}: makes the user.
Result<json::Value> AskCreateUser(cli::Api& api,
                                  const cli::ClusterAddress& address,
                                  const json::Value& user);
// {"name", "days"} → {"name", "kubeconfig"}: new credentials of a user.
Result<json::Value> AskUserKubeconfig(cli::Api& api,
                                      const cli::ClusterAddress& address,
                                      const json::Value& user);
Result<json::Value> AskDeleteUser(cli::Api& api, const std::string& name);

}  // namespace swell::ui
