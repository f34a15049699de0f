#include "ops/cluster/ready_text.h"

#include "base/strings.h"
#include "ops/nodes/machine_limits.h"
#include "ops/nodes/python_choice.h"

namespace swell::ops {

std::string ClusterUrls::Print() const {
  return pages.empty() ? server : StrCat(server, " ", pages);
}

ClusterUrls ClusterUrls::Parse(const std::string& line) {
  const size_t space = line.find(' ');
  return {line.substr(0, space), space == std::string::npos ? "" : line.substr(space + 1)};
}

std::string ReadyText(const DataDir& dir,
                      const std::string& runtime,
                      const ClusterUrls& urls,
                      const std::string& before) {
  std::string text =
      StrCat("The cluster answers at ", urls.server, "\n", MovedText(before, urls.server));
  if (!urls.pages.empty()) text += StrCat("Pages: ", urls.pages, " (swell ui opens them)\n");
  const std::string python = PythonIfNotDefault(dir, runtime);
  if (!python.empty()) text += StrCat("Python: ", python, " (for the catalogue's images)\n");
  text += StrCat("\n  export KUBECONFIG=", dir.Kubeconfig(), "\n");
  const std::string limits = FormatMachineLimits(MachineLimits(dir));
  if (!limits.empty()) text += StrCat("\n", limits);
  return text;
}

}  // namespace swell::ops
