// Registry: an image of a registry, by the distribution protocol (version 2), with its mirrors.
//
// Mirrors are asked first and without credentials. At the registry itself each of the credentials
// is tried, then none. The place and credential that give the manifest serve the blobs, too.
//
// - Threads: as ImageSource says.
// - Ownership: `cancel` outlives it.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "kube/images/cancellation.h"
#include "kube/images/credentials.h"
#include "kube/images/http.h"
#include "kube/images/reference.h"
#include "kube/images/registries.h"
#include "kube/images/source.h"

namespace swell::images {

struct RegistryOptions {
  std::chrono::seconds stall = std::chrono::seconds(30);
  std::chrono::milliseconds retry_wait = std::chrono::milliseconds(1000);  // doubles
  int attempts = 4;                                                        // without any progress
};

class Registry final : public ImageSource {
 public:
  Registry(Reference image,
           std::vector<Endpoint> endpoints,
           std::vector<Credential> credentials,
           RegistryOptions options,
           const Cancellation& cancel);

  Result<std::string> Top() override;
  Result<std::string> ManifestOf(const Descriptor& item) override;
  Status Fetch(const Descriptor& blob, PartFile& part) override;

  // The fingerprint of the credential that was accepted; empty when none was needed. After Top().
  std::string credential() const;

 private:
  // Where the image is asked for, and as whom.
  struct Session {
    Endpoint endpoint;
    const Credential* credential = nullptr;
    std::string token;   // "Bearer …"
    bool basic = false;  // the credential goes with every request
  };

  Result<std::string> TopFrom(Session session);
  Result<std::string> GetManifest(Session& session, const std::string& wanted);
  // Sends it until there is an answer that is not "try again".
  Status SendPatiently(HttpRequest request, HttpAnswer& answer);
  // Answers a request for authentication, once.
  Status Send(Session& session, HttpRequest request, HttpAnswer& answer);
  Status GetToken(Session& session, const std::string& challenge);
  Status FetchOnce(const std::string& url, const Descriptor& blob, PartFile& part);
  Status Explain(const Session& session, const HttpAnswer& answer) const;
  HttpRequest MakeRequest(const Session& session, const std::string& path) const;
  Session CurrentSession() const;

  const Reference image_;
  const std::vector<Endpoint> endpoints_;
  const std::vector<Credential> credentials_;
  const RegistryOptions options_;
  const Cancellation& cancel_;
  mutable Mutex mutex_;
  Session session_ SWELL_GUARDED_BY(mutex_);
};

// The parameters of a WWW-Authenticate header: realm="…",service="…".
std::map<std::string, std::string> ParseChallenge(std::string_view header);

}  // namespace swell::images
