// Users of an embedded cluster: their names, roles and credentials.
//
// A user is a Secret (kube/apiserver/access/registered_users.h) and the bindings of a role. The
// cluster signs the credentials itself, so an admin needs nothing but a kubeconfig.
//
// - Threads: main thread; every call blocks until the cluster answers.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"
#include "kube/client/client.h"
#include "ops/flags.h"
#include "ops/remote_process.h"

namespace swell {

struct UserFlags {
  std::string data_dir;
  RemoteFlags remote;
  std::string role;
  std::vector<std::string> projects;
  std::vector<std::string> groups;
  std::string duration = "365d";
  std::string run_as;
  std::string file;
  bool certificate = false;
};

struct User {
  std::string secret, uid, name, role, projects, groups, run_as, created;
};

// Misuse if a user of that name cannot exist, or the flags do not describe a new user.
Status CheckUserName(const std::string& name);
Status CheckCreate(const UserFlags& flags);

class Users {
 public:
  using Print = std::function<void(std::string_view)>;

  // Connects. `print` gets kubeconfigs that go to standard output, `note` lines about what was
  // done.
  static Result<std::unique_ptr<Users>> Open(const UserFlags& flags, Print print, Print note);

  Status Create(const UserFlags& flags, const std::string& name);
  Status Delete(const std::string& name);
  Status WriteKubeconfig(const UserFlags& flags, const User& user);
  Result<User> Find(const std::string& name);
  Result<std::vector<User>> All();
  WallTime Now() const { return process_->clock().Now(); }

 private:
  Users(Print print, Print note) : print_(std::move(print)), note_(std::move(note)) {}
  Result<std::vector<json::Value>> List(const client::Resource& resource,
                                        const std::string& ns,
                                        const std::string& selector);
  Result<json::SharedValue> Make(const client::Resource& resource,
                                 std::string_view ns,
                                 const json::Value& object);
  Status Remove(const client::Resource& resource, std::string_view ns, std::string_view name);
  Result<std::vector<std::string>> NamespacesOf(const std::vector<std::string>& projects);
  Status Bind(const User& user, const std::vector<std::string>& namespaces);
  Result<client::ClusterAccess> Credentials(const UserFlags& flags, const User& user);

  Result<json::SharedValue> AskCredentials(const User& user, bool certificate, Duration valid);

  Print print_, note_;
  std::unique_ptr<RemoteProcess> process_;
};

}  // namespace swell
