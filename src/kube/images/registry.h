// Registry: an image of a registry, by the distribution protocol (version 2), with its mirrors.
//
// Mirrors are asked first and without credentials. At the registry itself each of the credentials
// is tried, then none. The place and credential that give the manifest serve the blobs, too. A
// mirror that cannot give one is left at once for the next place, which continues behind what came.
// So is one that gives other bytes than the digest says; then the next place begins anew.
//
// A server that says when it wants to be asked again (Retry-After) is left alone until then: here
// for a few seconds; longer waits are in the details of the error (retry_after_s).
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

// The one whom errors tell what to do: the author of a pod, or a person at a terminal.
enum class Puller { kPod, kPerson };

struct RegistryOptions {
  Puller puller = Puller::kPod;
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
    size_t place = 0;  // of the endpoint, in the order in which they are asked
    const Credential* credential = nullptr;
    std::string token;   // "Bearer …"
    bool basic = false;  // the credential goes with every request
  };

  // Asks for a manifest from that place on. The place that gives it is asked for what follows.
  Result<std::string> AskFrom(size_t place, const std::string& wanted);
  Result<std::string> AskAt(Session session, const std::string& wanted);
  Result<std::string> GetManifest(Session& session, const std::string& wanted);
  // Sends it until there is an answer that is not "try again".
  Status SendPatiently(const Session& session, HttpRequest request, HttpAnswer& answer);
  int AttemptsAt(const Session& session) const;
  // Answers a request for authentication, once.
  Status Send(Session& session, HttpRequest request, HttpAnswer& answer);
  Status GetToken(Session& session, const std::string& challenge);
  Status FetchAt(const Session& session, const Descriptor& blob, PartFile& part);
  Status FetchOnce(const std::string& url, const Descriptor& blob, PartFile& part);
  // Leaves that place for the next one that has the image, unless another thread did.
  Status LeaveMirror(size_t place);
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
  std::string top_digest_;  // after Top()
};

// The parameters of a WWW-Authenticate header: realm="…",service="…".
std::map<std::string, std::string> ParseChallenge(std::string_view header);

}  // namespace swell::images
