#include "kube/controllers/cluster/certificate_signer.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/controllers/queue.h"
#include "kube/controllers/workload.h"
#include "kube/controllers/write_batch.h"

namespace swell::controllers {
namespace {

const client::Resource kRequests{"certificates.k8s.io", "v1", "certificatesigningrequests", false};
constexpr std::string_view kSigner = "kubernetes.io/kube-apiserver-client";
constexpr Duration kUsualValidity = std::chrono::hours(24 * 365);

bool WaitsForUs(const json::Value& request) {
  return json::GetString(request, {"spec", "signerName"}) == kSigner &&
         api::ConditionIsTrue(request, "Approved") && !api::ConditionIsTrue(request, "Denied") &&
         !api::ConditionIsTrue(request, "Failed") && !api::IsDeleting(request) &&
         json::GetString(request, {"status", "certificate"}).empty();
}

Result<ClientCertificateRequest> Read(const json::Value& request) {
  auto invalid = [](std::string why) { return Status(Code::kInvalid, std::move(why)); };
  ClientCertificateRequest out;
  bool client = false;
  for (const json::Value& usage : json::GetArray(request, {"spec", "usages"})) {
    const std::string_view name = usage.is_string() ? json::View(usage.get_string()) : "";
    client = client || name == "client auth";
    out.digital_signature = out.digital_signature || name == "digital signature";
    out.key_encipherment = out.key_encipherment || name == "key encipherment";
    if (name != "client auth" && name != "digital signature" && name != "key encipherment") {
      return invalid(StrCat("invalid usage for client certificate: ", name));
    }
  }
  if (!client) return invalid("missing required usage for client certificate: client auth");
  auto pem = Base64Decode(json::GetString(request, {"spec", "request"}));
  if (!pem) return invalid("the request is not base64");
  out.pem = std::move(*pem);
  const int64_t seconds = json::GetInt(request, {"spec", "expirationSeconds"});
  out.validity = seconds > 0 ? std::min<Duration>(std::chrono::seconds(seconds), kUsualValidity)
                             : kUsualValidity;
  return out;
}

}  // namespace

CertificateSigner::CertificateSigner(Context context, SignClientCertificate sign)
    : sign_(std::move(sign)),
      context_(context),
      requests_(context_.informers.Of(kRequests)),
      queue_(MakeQueue(
          context_, "certificatesigningrequests", 4, this, &CertificateSigner::Reconcile)),
      client_(context_.executor, context_.server, context_.user, "csrsigning") {
  Follow(requests_, Queued(queue_));
}

void CertificateSigner::Reconcile(const std::string& name, client::WorkQueue::Done done) {
  const json::SharedValue request = requests_.Get(name);
  if (!request || !WaitsForUs(*request)) return done(Duration::zero());
  auto wanted = Read(*request);
  auto certificate = wanted.ok() ? sign_(*wanted) : wanted.status();
  json::Value signed_request = *request;
  if (certificate.ok()) {
    json::Set(signed_request, {"status", "certificate"}, Base64Encode(*certificate));
  } else {
    json::Array conditions = json::GetArray(*request, {"status", "conditions"});
    conditions.push_back(json::Object{{"type", "Failed"},
                                      {"status", "True"},
                                      {"reason", "SignerValidationFailure"},
                                      {"message", certificate.status().message()}});
    json::Set(signed_request, {"status", "conditions"}, std::move(conditions));
  }
  client_.Update(kRequests, signed_request, Ends(std::move(done)), "status");
}

}  // namespace swell::controllers
