// Definition: what schemas/crds.txt says of each kind that Swell brings, beside its fields.
//
//   definition NAME key=value...     on one line, before the kind's type, in its package
//     group, version, plural         of the resource
//     short, categories              names that kubectl takes, with commas between
//     scope=Cluster, status=no       unlike most: cluster-wide; without the subresource status
//     also=VERSION                   a further version with the same fields
//     scale=SPEC,STATUS,SELECTOR     paths of the subresource scale
//     columns=NAME|TYPE|PATH[|PRIORITY];...
//     roles=FIELD                    a job kind: the field of spec that has its roles, - if none
//     suspend=PATH                   a job kind: the field below spec that suspends it
//     workload=CLASS                 a job kind: the class of all its jobs, train or interactive
//
// A job kind that Swell runs itself is one such line with its types, and one file in src/jobs.
// - Threads: any; read once.
#pragma once

#include <string>
#include <vector>

namespace swell::api {

struct Definition {
  std::string package;  // of its types
  std::string group, version, kind, plural;
  std::string short_names, categories;
  bool namespaced = true;
  bool has_status = true;
  std::string also_served;
  std::string scale;
  std::string columns;
  std::string roles;     // empty: no job kind
  std::string suspend;   // "runPolicy.suspend"
  std::string workload;  // empty: each job's label says it

  bool is_job() const { return !roles.empty(); }
  // "pytorchjobs.kubeflow.org"
  std::string GroupResource() const { return plural + "." + group; }
};

// In the order of the text.
const std::vector<Definition>& Definitions();
// Those of job kinds.
std::vector<Definition> JobDefinitions();
// The groups of jobs and of what makes jobs, beside swell.dev, each once, with commas between.
std::string JobGroups();
// What people write in those groups: jobs, and how many members they have. What becomes of them,
// the status, is for controllers to write.
std::string JobResources();

}  // namespace swell::api
