#include "cli/jobs/submit_warnings.h"

#include <algorithm>
#include <set>

#include "base/nearest_word.h"
#include "base/strings.h"
#include "cli/jobs/too_large.h"
#include "cli/views/job_view.h"
#include "kube/api/meta/meta.h"
#include "kube/api/objects/pod.h"

namespace swell::cli {
namespace {

std::set<std::string> ImagesOf(const json::Value& job, const JobKindInfo& kind) {
  std::set<std::string> images;
  for (const JobTemplate& one : TemplatesOf(job, kind)) {
    for (const json::Array& containers :
         {api::InitContainers(*one.pod), api::Containers(*one.pod)}) {
      for (const json::Value& container : containers) {
        images.emplace(json::GetString(container, {"image"}));
      }
    }
  }
  return images;
}

std::set<std::string> ClaimsOf(const json::Value& job, const JobKindInfo& kind) {
  std::set<std::string> claims;
  for (const JobTemplate& one : TemplatesOf(job, kind)) {
    for (const json::Value& volume : json::GetArray(*one.pod, {"spec", "volumes"})) {
      claims.emplace(json::GetString(volume, {"persistentVolumeClaim", "claimName"}));
    }
  }
  claims.erase("");
  return claims;
}

// Users who may not list claims are told nothing.
void WarnOfClaims(Api& api,
                  const json::Value& job,
                  const std::set<std::string>& claims,
                  std::vector<std::string>& warnings) {
  if (claims.empty()) return;
  const std::string ns(api::Namespace(job));
  const auto list = api.List(client::resources::kPersistentVolumeClaims, ns);
  if (!list.ok()) return;
  std::vector<std::string> names;
  for (const json::SharedValue& one : *list) names.emplace_back(api::Name(*one));
  for (const std::string& claim : claims) {
    if (std::find(names.begin(), names.end(), claim) != names.end()) continue;
    const std::string near = NearestName(claim, names);
    warnings.push_back(StrCat("there is no volume claim ", Quote(claim), " in the namespace ", ns,
                              near.empty() ? "." : StrCat("; did you mean ", near, "?"),
                              " The job waits until it is created"));
  }
}

}  // namespace

std::vector<std::string> SubmitWarnings(Session& session, Api& api, const json::Value& job) {
  std::vector<std::string> warnings;
  const JobKindInfo* kind = KindOfJob(job);
  const auto& meant_image = session.env().what_if.meant_image;
  if (kind != nullptr && meant_image) {
    for (const std::string& image : ImagesOf(job, *kind)) {
      const std::string meant = meant_image(api.connection().url, image);
      if (meant.empty()) continue;
      warnings.push_back(StrCat("no image named ", image, " is known here; did you mean ", meant,
                                "? It is looked for at its registry"));
    }
  }
  if (kind != nullptr) WarnOfClaims(api, job, ClaimsOf(job, *kind), warnings);
  if (std::string text = TooLargeText(api, job); !text.empty()) {
    warnings.push_back(std::move(text));
  }
  return warnings;
}

void PrintSubmitWarnings(Session& session,
                         std::string_view program,
                         Api& api,
                         const json::Value& job) {
  for (const std::string& text : SubmitWarnings(session, api, job)) {
    session.ErrLine(StrCat(program, ": warning: ", text));
  }
}

}  // namespace swell::cli
