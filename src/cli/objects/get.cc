// swell get: any resource, in the tables the server makes for it.
#include <algorithm>

#include "base/strings.h"
#include "cli/commands.h"
#include "cli/print/output.h"
#include "cli/print/text_table.h"
#include "cli/views/job_table.h"
#include "cli/views/own_namespaces.h"
#include "cli/views/workloads.h"
#include "kube/api/meta/meta.h"

namespace swell::cli {
namespace {

constexpr std::string_view kTable =
    "application/json;as=Table;v=v1;g=meta.k8s.io,"
    "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";

struct Target {
  Kind kind;
  std::vector<std::string> names;  // empty: all
};

class GetAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Group("Selection");
    flags.Switch("-A,--all-namespaces", &all_namespaces_, "all namespaces");
    flags.Text("-l,--selector", &selector_, "LABELS", "only objects with these labels: a=b,c!=d,e");
    flags.Text("--field-selector", &fields_, "FIELDS",
               "only objects with these fields: status.phase=Failed");
    flags.Switch("--ignore-not-found", &ignore_not_found_,
                 "do not fail if an object does not exist");
    flags.Group("Output");
    flags.Text(
        "-o,--output", &output_, "FORMAT",
        "output format: json, yaml, wide, name, jsonpath=TEMPLATE or custom-columns=TITLE:PATH,…");
    flags.Switch("--show-managed-fields", &form_.managed_fields,
                 "keep managedFields in JSON and YAML");
    flags.Text("--sort-by", &sort_by_, "PATH", "field to sort by: .metadata.creationTimestamp");
    flags.Switch("-w,--watch", &watch_, "print changes as they happen");
    flags.Switch("--watch-only", &watch_only_, "print only changes");
    flags.Switch("--show-labels", &show_labels_, "add a column with the labels");
    flags.Switch("--no-headers", &no_headers_, "omit the header");
  }

  Result<int> Run(Session& session, std::vector<std::string> words) override {
    const bool managed_fields = form_.managed_fields;
    SWELL_ASSIGN_OR_RETURN(form_, ParseOutputForm(output_));
    form_.managed_fields = managed_fields;
    form_.headers = !no_headers_;
    if (words.empty()) return Jobs(session);
    if (!sort_by_.empty()) {
      SWELL_ASSIGN_OR_RETURN(sort_path_, ParseJsonPath(sort_by_));
    }
    SWELL_ASSIGN_OR_RETURN(api_, session.Server());
    session_ = &session;
    ns_ = all_namespaces_ ? "" : session.Namespace();
    SWELL_ASSIGN_OR_RETURN(std::vector<Target> targets, Targets(words));
    if (watch_ || watch_only_) return Watch(targets);
    return form_.table() ? Tables(targets) : Objects(targets);
  }

 private:
  Result<int> Jobs(Session& session) {
    if (!selector_.empty() || !fields_.empty() || !sort_by_.empty()) {
      return Misuse(
          "nothing to get; use swell get pods, swell get pytorchjob NAME or swell get all");
    }
    JobTable table = JobSizes(session, form_, all_namespaces_);
    table.headers = !no_headers_;
    return watch_ || watch_only_ ? table.Watch(watch_only_) : table.Show();
  }

  Result<std::vector<Target>> Targets(const std::vector<std::string>& words) {
    // To a list, no name is every name.
    if (std::find(words.begin(), words.end(), "") != words.end()) {
      return Misuse("a name is empty; is a variable of the shell not set?");
    }
    SWELL_ASSIGN_OR_RETURN(Kinds * kinds, session_->ServerKinds());
    std::vector<Target> targets;
    if (words[0].find('/') != std::string::npos) {
      for (const std::string& word : words) {
        size_t slash = word.find('/');
        if (slash == std::string::npos || slash == 0 || slash + 1 == word.size()) {
          return Misuse(StrCat(Quote(word), ": expected KIND/NAME, as the words before it"));
        }
        SWELL_ASSIGN_OR_RETURN(Kind kind, kinds->Find(word.substr(0, slash)));
        targets.push_back({std::move(kind), {word.substr(slash + 1)}});
      }
      return targets;
    }
    std::vector<std::string> names(words.begin() + 1, words.end());
    for (std::string_view word : Split(words[0], ',')) {
      if (word.empty()) continue;
      std::vector<Kind> category;
      if (word == "all") category = kinds->InCategory(word);
      for (Kind& kind : category) targets.push_back({std::move(kind), names});
      if (!category.empty()) continue;
      auto kind = kinds->Find(word);
      if (!kind.ok() && words.size() == 1) {
        // `swell get mnist`, as `swell describe mnist`.
        auto job = FindJob(*api_, session_->Namespace(), word);
        if (job.ok()) {
          SWELL_ASSIGN_OR_RETURN(Kind of_job, kinds->Find(job->kind->resource.GroupResource()));
          targets.push_back({std::move(of_job), {job->name}});
          continue;
        }
        SWELL_ASSIGN_OR_RETURN(const bool workload, AddWorkloads(*kinds, word, targets));
        if (workload) continue;
        return NeitherJobNorKind(kind.status(), word, session_->Namespace());
      }
      if (!kind.ok()) return kind.status();
      targets.push_back({std::move(kind).value(), names});
    }
    if (!names.empty() && (!selector_.empty() || !fields_.empty())) {
      return Misuse("names and selectors cannot be used together");
    }
    return targets;
  }

  // One target for each kind: they share a table. False: none has that name.
  Result<bool> AddWorkloads(Kinds& kinds,
                            std::string_view name,
                            std::vector<Target>& targets) const {
    const auto found = WorkloadsNamed(*api_, session_->Namespace(), name);
    for (const Workload& workload : found) {
      SWELL_ASSIGN_OR_RETURN(Kind kind, kinds.Find(workload.resource->GroupResource()));
      if (targets.empty() || targets.back().kind.resource != kind.resource ||
          targets.back().names.empty()) {
        targets.push_back({std::move(kind), {}});
      }
      targets.back().names.emplace_back(api::Name(*workload.object));
    }
    return !found.empty();
  }

  std::string Query(std::string_view more = {}) const {
    std::string query(more);
    auto add = [&query](std::string_view key, std::string_view value) {
      if (value.empty()) return;
      query += StrCat(query.empty() ? "" : "&", key, "=", api::EscapeQuery(value));
    };
    add("labelSelector", selector_);
    add("fieldSelector", fields_);
    return query;
  }

  Result<int> Objects(const std::vector<Target>& targets) {
    std::vector<json::SharedValue> objects;
    bool one = targets.size() == 1 && targets[0].names.size() == 1;
    for (const Target& target : targets) {
      if (target.names.empty()) {
        SWELL_RETURN_IF_ERROR(
            ListTarget(target.kind, objects, [this, &target](const std::string& ns) {
              return api_->List(target.kind.resource, ns,
                                {.label_selector = selector_, .field_selector = fields_});
            }));
      }
      for (const std::string& name : target.names) {
        auto object = api_->Get(target.kind.resource, ns_, name);
        if (!object.ok() && ignore_not_found_ && object.status().code() == Code::kNotFound)
          continue;
        if (!object.ok()) return object.status();
        objects.push_back(*object);
      }
    }
    SortObjects(objects);
    if (form_.kind == OutputForm::Kind::kName) {
      for (const auto& object : objects) session_->OutLine(ResourceNameOf(*object));
    } else if (one) {
      for (const auto& object : objects) session_->Out(FormatObject(form_, *object, ""));
    } else {
      session_->Out(FormatObject(form_, MakeList(objects), ""));
    }
    return 0;
  }

  // Appends what `list` finds in the namespace, or in all that the user may read.
  template <class T, class List>
  Status ListTarget(const Kind& kind, std::vector<T>& out, const List& list) {
    if (ns_.empty() && kind.resource.namespaced) {
      return ListShown(*session_, *api_, kind.resource.plural, out, list);
    }
    auto found = list(ns_);
    if (!found.ok()) return found.status();
    std::move(found->begin(), found->end(), std::back_inserter(out));
    return Status::Ok();
  }

  void SortObjects(std::vector<json::SharedValue>& objects) const {
    if (!sort_path_) return;
    std::stable_sort(objects.begin(), objects.end(), [this](const auto& a, const auto& b) {
      return Before(sort_path_->Find(*a), sort_path_->Find(*b));
    });
  }

  // Numbers by size, everything else by text; what is missing comes first.
  static bool Before(const std::vector<const json::Value*>& a,
                     const std::vector<const json::Value*>& b) {
    if (a.empty() || b.empty()) return a.empty() && !b.empty();
    if (a[0]->is_number() && b[0]->is_number()) {
      return a[0]->to_number<double>() < b[0]->to_number<double>();
    }
    return json::PlainText(*a[0]) < json::PlainText(*b[0]);
  }

  // A table of one target, rows sorted; nullptr when an absent name shall be ignored.
  Result<json::SharedValue> FetchTable(const Kind& kind,
                                       const std::string& ns,
                                       const std::string& name) {
    std::string include =
        sort_path_ || !form_.table() ? "includeObject=Object" : "includeObject=Metadata";
    std::string token;
    std::shared_ptr<json::Value> whole;
    do {
      std::string query = name.empty() ? Query(StrCat(include, "&limit=500")) : include;
      if (!token.empty()) query += StrCat("&continue=", api::EscapeQuery(token));
      SWELL_ASSIGN_OR_RETURN(json::SharedValue page,
                             api_->CallObject({.method = "GET",
                                               .path = kind.resource.Path(ns, name),
                                               .query = query,
                                               .accept = std::string(kTable)}));
      token = api::ContinueToken(*page);
      if (!whole) {
        whole = std::make_shared<json::Value>(*page);
        continue;
      }
      json::Value* rows = json::FindMutable(*whole, {"rows"});
      for (const json::Value& row : json::GetArray(*page, {"rows"})) {
        if (rows && rows->is_array()) rows->get_array().push_back(row);
      }
    } while (!token.empty());
    return json::SharedValue(whole);
  }

  // One table for a name or a namespace, several for all namespaces.
  Status FetchTables(const Kind& kind,
                     const std::string& name,
                     std::vector<json::SharedValue>& tables) {
    return ListTarget(kind, tables,
                      [&](const std::string& ns) -> Result<std::vector<json::SharedValue>> {
                        SWELL_ASSIGN_OR_RETURN(json::SharedValue table, FetchTable(kind, ns, name));
                        return std::vector<json::SharedValue>{std::move(table)};
                      });
  }

  Result<int> Tables(const std::vector<Target>& targets) {
    bool prefix = targets.size() > 1;
    bool printed = false;
    std::vector<Status> absent;
    for (const Target& target : targets) {
      std::vector<std::string> names = target.names;
      if (names.empty()) names.emplace_back();
      json::Array rows;
      json::Array columns;
      for (const std::string& name : names) {
        std::vector<json::SharedValue> tables;
        const Status found = FetchTables(target.kind, name, tables);
        if (!found.ok()) {
          bool missing = found.code() == Code::kNotFound && !name.empty();
          if (!missing) return found;
          // What is there is shown all the same.
          if (!ignore_not_found_) absent.push_back(found);
          continue;
        }
        for (const json::SharedValue& table : tables) {
          columns = ColumnsOf(*table);
          for (const json::Value& row : RowsOf(*table)) rows.push_back(row);
        }
      }
      if (rows.empty()) continue;
      if (sort_path_) {
        std::stable_sort(rows.begin(), rows.end(),
                         [this](const json::Value& a, const json::Value& b) {
                           const json::Value* x = json::Find(a, {"object"});
                           const json::Value* y = json::Find(b, {"object"});
                           return x && y && Before(sort_path_->Find(*x), sort_path_->Find(*y));
                         });
      }
      if (printed) session_->Out("\n");
      printed = true;
      session_->Out(Format(columns, rows, prefix ? target.kind.SingularName() : "", !no_headers_));
    }
    if (!absent.empty()) {
      for (size_t i = 0; i + 1 < absent.size(); ++i) {
        session_->ErrLine(StrCat("swell: ", ErrorText(absent[i])));
      }
      return absent.back();
    }
    if (!printed && !ignore_not_found_) SayNothingFound();
    return 0;
  }

  void SayNothingFound() {
    session_->ErrLine(ns_.empty() ? "No resources found"
                                  : StrCat("No resources found in ", ns_, " namespace."));
  }

  // A server without tables answers with the object or list itself: NAME and AGE are in it.
  static json::Array ColumnsOf(const json::Value& table) {
    const json::Array& columns = json::GetArray(table, {"columnDefinitions"});
    if (!columns.empty() || api::KindOf(table) == "Table") return columns;
    return json::Array{json::Object{{"name", "Name"}, {"type", "string"}},
                       json::Object{{"name", "Age"}, {"type", "date"}}};
  }
  json::Array RowsOf(const json::Value& table) const {
    if (api::KindOf(table) == "Table") return json::GetArray(table, {"rows"});
    json::Array rows;
    auto add = [&](const json::Value& object) {
      std::string age = AgeOf(api::CreationTimestamp(object), session_->Now());
      rows.push_back(
          json::Object{{"cells", json::Array{api::Name(object), age}}, {"object", object}});
    };
    if (json::Find(table, {"items"})) {
      for (const json::Value& item : api::Items(table)) add(item);
    } else {
      add(table);
    }
    return rows;
  }

  std::string Format(const json::Array& columns,
                     const json::Array& rows,
                     const std::string& prefix,
                     bool header) const {
    TextTable table;
    return FormatInto(table, columns, rows, prefix, header);
  }

  // Rows that follow others go below them.
  std::string FormatInto(TextTable& table,
                         const json::Array& columns,
                         const json::Array& rows,
                         const std::string& prefix,
                         bool header) const {
    std::vector<size_t> shown;
    std::vector<std::string> titles;
    size_t name_column = 0;
    if (all_namespaces_) titles.emplace_back("NAMESPACE");
    for (size_t i = 0; i < columns.size(); ++i) {
      if (json::GetInt(columns[i], {"priority"}) > 0 && form_.kind != OutputForm::Kind::kWide) {
        continue;
      }
      std::string title = ToUpper(json::GetString(columns[i], {"name"}));
      if (title == "NAME") name_column = i;
      shown.push_back(i);
      titles.push_back(std::move(title));
    }
    if (show_labels_) titles.emplace_back("LABELS");
    if (header) table.Add(std::move(titles));
    for (const json::Value& row : rows) {
      std::vector<std::string> line;
      const json::Array& cells = json::GetArray(row, {"cells"});
      if (all_namespaces_) {
        std::string_view ns = json::GetString(row, {"object", "metadata", "namespace"});
        line.emplace_back(ns);
      }
      for (size_t i : shown) {
        std::string cell =
            i < cells.size() && !cells[i].is_null() ? OneLine(json::PlainText(cells[i])) : "<none>";
        if (i == name_column && !prefix.empty()) cell = StrCat(prefix, "/", cell);
        const std::string title = ToUpper(json::GetString(columns[i], {"name"}));
        if (title == "STATUS" || title == "STATE" || title == "PHASE") {
          cell = session_->Paint(StatusColour(cell), cell);
        }
        line.push_back(std::move(cell));
      }
      if (show_labels_) line.push_back(Labels(row));
      table.Add(std::move(line));
    }
    return table.TakeText();
  }

  static std::string Labels(const json::Value& row) {
    std::vector<std::string> labels;
    for (const auto& label : json::GetObject(row, {"object", "metadata", "labels"})) {
      labels.push_back(StrCat(std::string_view(label.key().data(), label.key().size()), "=",
                              json::PlainText(label.value())));
    }
    std::sort(labels.begin(), labels.end());
    return labels.empty() ? "<none>" : Join(labels, ",");
  }

  // Prints changes until Ctrl-C, over every interruption of the connection.
  Result<int> Watch(const std::vector<Target>& targets) {
    if (targets.size() != 1 || targets[0].names.size() > 1) {
      return Misuse("--watch takes one kind, and at most one name");
    }
    const Kind& kind = targets[0].kind;
    std::string name = targets[0].names.empty() ? "" : targets[0].names[0];
    std::string version;  // up to which all is printed; empty: unknown
    for (bool first = true; !api_->interrupted(); first = false) {
      const Status ended = version.empty() ? ListToWatch(kind, name, first, version) : Status::Ok();
      if (done_) return 0;
      if (!ended.ok() && (first || ended.code() != Code::kUnavailable)) return ended;
      if (!version.empty()) {
        SWELL_RETURN_IF_ERROR(WatchOn(kind, name, version));
        if (done_) return 0;
      }
      if (!api_->Pause(std::chrono::seconds(1))) break;
    }
    return 0;
  }

  // What there is, at first or after a gap.
  Status ListToWatch(const Kind& kind, const std::string& name, bool first, std::string& version) {
    SWELL_ASSIGN_OR_RETURN(json::SharedValue table, FetchTable(kind, ns_, name));
    columns_ = ColumnsOf(*table);
    done_ = !(first && watch_only_) && !PrintWatched(RowsOf(*table), first && !no_headers_);
    version = api::ResourceVersionText(*table);
    return Status::Ok();
  }

  // Until the connection breaks; what the server no longer knows by then is looked at anew.
  Status WatchOn(const Kind& kind, const std::string& name, std::string& version) {
    Status ended = WatchFrom(kind, name, version);
    if (ended.ok() || ended.code() == Code::kUnavailable) return Status::Ok();
    if (ended.code() != Code::kExpired && ended.code() != Code::kGone) return ended;
    version.clear();
    return Status::Ok();
  }

  bool PrintWatched(const json::Array& rows, bool header) {
    if (rows.empty() && !header) return true;
    if (!form_.table()) {
      for (const json::Value& row : rows) {
        const json::Value* object = json::Find(row, {"object"});
        if (object && !session_->Out(FormatObject(form_, *object, ResourceNameOf(*object)))) {
          return false;
        }
      }
      return true;
    }
    return session_->Out(FormatInto(watched_, columns_, rows, "", header));
  }

  Status WatchFrom(const Kind& kind, const std::string& name, std::string& version) {
    std::string fields = fields_;
    if (!name.empty()) fields = StrCat("metadata.name=", name);
    std::string query = StrCat("watch=true&allowWatchBookmarks=true&resourceVersion=", version,
                               form_.table() ? "&includeObject=Metadata" : "");
    if (!fields.empty()) query += StrCat("&fieldSelector=", api::EscapeQuery(fields));
    if (!selector_.empty()) query += StrCat("&labelSelector=", api::EscapeQuery(selector_));
    LineSplitter lines;
    Status error;
    auto line = [&](std::string_view text) {
      auto event = json::Parse(text);
      if (!event.ok()) return true;
      const json::Value* object = json::Find(*event, {"object"});
      std::string_view type = json::GetString(*event, {"type"});
      if (type == "ERROR" && object) {
        error = client::StatusFromResponse(static_cast<int>(json::GetInt(*object, {"code"}, 500)),
                                           json::Print(*object));
        return false;
      }
      if (!object) return true;
      const std::string_view reached = api::ResourceVersionText(*object);
      if (!reached.empty()) version = reached;
      if (type == "BOOKMARK") return true;
      json::Array rows =
          form_.table() ? RowsOf(*object) : json::Array{json::Object{{"object", *object}}};
      done_ = !PrintWatched(rows, false);
      return !done_;
    };
    std::vector<Api::StreamRequest> streams(1);
    streams[0].request = {.method = "GET",
                          .path = kind.resource.Path(ns_),
                          .query = query,
                          .accept = form_.table() ? std::string(kTable) : ""};
    streams[0].on_data = [&](std::string_view bytes) { return lines.Feed(bytes, line); };
    Status ended = api_->Follow(std::move(streams));
    return error.ok() ? ended : error;
  }

  bool all_namespaces_ = false, ignore_not_found_ = false, watch_ = false, watch_only_ = false;
  bool show_labels_ = false, no_headers_ = false;
  std::string selector_, fields_, output_, sort_by_;
  OutputForm form_;
  std::optional<json::JsonPath> sort_path_;
  Session* session_ = nullptr;
  Api* api_ = nullptr;
  std::string ns_;
  json::Array columns_;
  TextTable watched_;
  bool done_ = false;
};

}  // namespace

Command GetCommandSpec() {
  return {
      .name = "get",
      .group = "Inspect",
      .summary = "List objects of any kind as a table, JSON or YAML.",
      .usage = "[KIND[,KIND...] [NAME...] | KIND/NAME...]",
      .examples =
          {
              {"Watch the sizes of the jobs", "swell get -w"},
              {"Pods of this namespace with their nodes", "swell get pods -o wide"},
              {"One job as YAML", "swell get pytorchjob mnist -o yaml"},
              {"Failed pods of all namespaces",
               "swell get pods -A --field-selector status.phase=Failed"},
              {"Names of the nodes",
               "swell get nodes -o jsonpath='{range .items[*]}{.metadata.name}{\"\\n\"}{end}'"},
          },
      .completes = Completes::kKindThenName,
      .make = Makes<GetAction>(),
  };
}

}  // namespace swell::cli
