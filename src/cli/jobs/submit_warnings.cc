#include "cli/jobs/submit_warnings.h"

#include <set>

#include "base/strings.h"
#include "cli/jobs/too_large.h"
#include "cli/views/job_view.h"
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
