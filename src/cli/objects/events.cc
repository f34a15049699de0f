// swell events.
#include <algorithm>

#include "base/strings.h"
#include "cli/commands.h"
#include "cli/print/text_table.h"
#include "cli/print/view_output.h"
#include "cli/views/events_view.h"
#include "cli/views/job_view.h"
#include "cli/views/own_namespaces.h"
#include "cli/views/view_json.h"
#include "kube/api/meta/meta.h"

namespace swell::cli {
namespace {

class EventsAction final : public Action {
 public:
  void Declare(Flags& flags) override {
    flags.Text("--for", &for_, "[KIND/]NAME",
               "events of one object; those of a job include its pods");
    flags.Text("--types", &types_, "TYPES", "Normal, Warning or both, comma-separated");
    flags.Switch("-A,--all-namespaces", &all_namespaces_, "all namespaces");
    flags.Switch("-w,--watch", &watch_, "print new events as they happen");
    output_.Declare(flags);
  }

  Result<int> Run(Session& session, std::vector<std::string> words) override {
    if (words.size() > (for_.empty() ? 1 : 0)) {
      return Misuse(StrCat("unexpected ", Quote(words.back()), ": expected one job, or --for"));
    }
    if (!words.empty()) for_ = words[0];
    SWELL_RETURN_IF_ERROR(output_.Check());
    SWELL_ASSIGN_OR_RETURN(Api * api, session.Server());
    std::string ns = all_namespaces_ ? "" : session.Namespace();
    if (size_t slash = for_.find('/'); slash != std::string::npos) {
      SWELL_ASSIGN_OR_RETURN(Kinds * kinds, session.ServerKinds());
      SWELL_ASSIGN_OR_RETURN(Kind kind, kinds->Find(for_.substr(0, slash)));
      kind_ = kind.kind;
      for_ = for_.substr(slash + 1);
      // Events about things without a namespace are kept in "default".
      if (!kind.resource.namespaced) ns = "";
    }
    SWELL_RETURN_IF_ERROR(FindJobOf(*api, ns));
    auto list = List(*api, ns);
    std::vector<EventView> events;
    if (list.status().code() == Code::kForbidden && ns.empty() && !watch_) {
      session.ErrLine("You see events of your own namespaces only.");
      SWELL_RETURN_IF_ERROR(ListEach(OwnNamespaces(session, *api), events,
                                     [&](const std::string& in) -> Result<std::vector<EventView>> {
                                       SWELL_ASSIGN_OR_RETURN(auto own, List(*api, in));
                                       return WantedOf(*own);
                                     }));
    } else {
      if (!list.ok()) return list.status();
      events = WantedOf(**list);
    }
    std::stable_sort(events.begin(), events.end(),
                     [](const EventView& a, const EventView& b) { return a.Before(b); });
    if (events.empty() && !missing_.ok()) {
      auto pod = api->Get(client::resources::kPods, ns, for_);
      if (pod.status().code() == Code::kNotFound) return missing_;
    }
    if (output_.is_document()) {
      if (!watch_) {
        output_.Print(session, json::Object{{"events", EventsJson(events)}});
        return 0;
      }
      for (const EventView& event : events) {
        if (!output_.PrintLine(session, EventJson(event))) return 0;
      }
      return Watch(session, *api, ns, std::string(api::ResourceVersionText(**list)));
    }
    if (events.empty() && !watch_) {
      session.ErrLine("No events");
      return 0;
    }
    std::vector<std::string> header{"LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"};
    if (all_namespaces_) header.insert(header.begin(), "NAMESPACE");
    TextTable table(header);
    for (const EventView& event : events) table.Add(Row(session, event));
    session.Out(table.ToString());
    if (!watch_) return 0;
    return Watch(session, *api, ns, std::string(api::ResourceVersionText(**list)));
  }

 private:
  static Result<json::SharedValue> List(Api& api, const std::string& ns) {
    return api.CallObject({.method = "GET", .path = client::resources::kEvents.Path(ns)});
  }
  std::vector<EventView> WantedOf(const json::Value& list) const {
    std::vector<EventView> events;
    for (const json::Value& event : api::Items(list)) {
      EventView view = ViewEvent(event);
      if (Wanted(view)) events.push_back(std::move(view));
    }
    return events;
  }
  // A name without a kind is a job's, if there is one: then an earlier job of that name is another.
  Status FindJobOf(Api& api, const std::string& ns) {
    if (for_.empty() || ns.empty() || !kind_.empty()) return Status::Ok();
    auto job = FindJob(api, ns, for_);
    if (job.status().code() == Code::kAlreadyExists) return job.status();
    if (job.ok()) {
      job_ = std::move(*job);
    } else if (job.status().code() == Code::kNotFound) {
      missing_ = job.status();
    }
    return Status::Ok();
  }
  bool Wanted(const EventView& event) const {
    if (!types_.empty() && ("," + types_ + ",").find("," + event.type + ",") == std::string::npos) {
      return false;
    }
    if (for_.empty()) return true;
    if (job_) return ConcernsJob(*job_, event);
    if (!kind_.empty() && event.object_kind != kind_) {
      return event.object_kind == "Pod" && kind_ != "Pod" && OfJob(event.object);
    }
    return event.object == for_ || (event.object_kind == "Pod" && OfJob(event.object));
  }
  // job-master-0, job-worker-12: a role and an index after the job's name.
  bool OfJob(std::string_view pod) const {
    if (!pod.starts_with(for_ + "-")) return false;
    std::string_view rest = pod.substr(for_.size() + 1);
    size_t dash = rest.find('-');
    return dash != std::string_view::npos && ParseUint(rest.substr(dash + 1)).has_value();
  }
  std::vector<std::string> Row(Session& session, const EventView& event) const {
    std::vector<std::string> row{
        event.LastSeen(session.Now()),
        event.type == "Warning" ? session.Paint(Colour::kYellow, event.type) : event.type,
        event.reason, StrCat(ToLower(event.object_kind), "/", event.object),
        OneLine(event.message)};
    if (all_namespaces_) row.insert(row.begin(), event.ns);
    return row;
  }

  Result<int> Watch(Session& session, Api& api, const std::string& ns, std::string version) {
    bool closed = false;
    while (!closed && !api.interrupted()) {
      LineSplitter lines;
      auto line = [&](std::string_view text) {
        auto change = json::Parse(text);
        if (!change.ok()) return true;
        const json::Value* object = json::Find(*change, {"object"});
        std::string_view type = json::GetString(*change, {"type"});
        if (!object || type == "DELETED") return true;
        if (type == "ERROR") {
          version.clear();  // too old: continue from now
          return false;
        }
        version = api::ResourceVersionText(*object);
        EventView event = ViewEvent(*object);
        if (type == "BOOKMARK" || !Wanted(event)) return true;
        if (output_.is_document()) {
          closed = !output_.PrintLine(session, EventJson(event));
          return !closed;
        }
        TextTable table;
        table.Add(Row(session, event));
        closed = !session.Out(table.ToString());
        return !closed;
      };
      std::vector<Api::StreamRequest> streams(1);
      streams[0].request = {
          .method = "GET",
          .path = client::resources::kEvents.Path(ns),
          .query = StrCat("watch=true&allowWatchBookmarks=true&resourceVersion=", version)};
      streams[0].on_data = [&](std::string_view bytes) { return lines.Feed(bytes, line); };
      Status ended = api.Follow(std::move(streams));
      if (!ended.ok() && ended.code() != Code::kUnavailable && ended.code() != Code::kGone &&
          ended.code() != Code::kExpired) {
        return ended;
      }
      if (!closed && !api.Pause(std::chrono::seconds(1))) break;
    }
    return 0;
  }

  std::string for_, kind_, types_;
  std::optional<JobView> job_;  // that of `for_`
  Status missing_;              // why no job of that name was found
  bool all_namespaces_ = false, watch_ = false;
  ViewOutput output_;
};

}  // namespace

Command EventsCommandSpec() {
  return {
      .name = "events",
      .group = "Inspect",
      .summary = "Show events, oldest first.",
      .usage = "[[KIND/]NAME]",
      .examples = {{"Events of one job and its pods", "swell events mnist"},
                   {"Watch warnings in all namespaces", "swell events -A --types Warning -w"},
                   {"For a program: a document, or one for each event with -w",
                    "swell events mnist -o json"}},
      .completes = Completes::kJob,
      .make = Makes<EventsAction>(),
  };
}

}  // namespace swell::cli
