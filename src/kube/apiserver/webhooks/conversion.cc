#include "kube/apiserver/webhooks/conversion.h"

#include <tuple>
#include <utility>

#include "base/strings.h"
#include "kube/api/meta/meta.h"
#include "kube/apiserver/request/errors.h"
#include "kube/apiserver/webhooks/webhook.h"

namespace swell::apiserver {
namespace {

constexpr auto kTimeout = std::chrono::seconds(30);
constexpr size_t kMostOfReview = 500;
constexpr std::string_view kGroup = "apiextensions.k8s.io/";

const Converter* ConverterOf(const Core& core, const api::KindInfo& kind) {
  if (!kind.custom) return nullptr;
  const auto found = core.Get<Webhooks>().converters.find(kind.StoreResource());
  return found == core.Get<Webhooks>().converters.end() ? nullptr : &found->second;
}

bool IsOf(const json::Value& object, const api::KindInfo& kind) {
  return json::GetString(object, {"apiVersion"}) == kind.gvk.ApiVersion();
}

std::string KeyOf(const json::Value& object, const api::KindInfo& to) {
  return StrCat("convert ", to.gvk.ApiVersion(), " ", Digest(json::Print(object)));
}

// Errors of conversion have no reason that Kubernetes would know.
Status ConversionError(Call& call, const std::string& message) {
  call.webhook_error = UnnamedErrorResponse(message);
  return Status(Code::kInternal, message);
}

std::string_view ReviewVersion(const Converter& converter) {
  for (const std::string& version : converter.review_versions) {
    if (version == "v1" || version == "v1beta1") return version;
  }
  return {};
}

// The objects of an answer, or what is wrong with it.
Result<json::Array> ObjectsIn(const json::Value& review,
                              std::string_view version,
                              std::string_view uid) {
  auto problem = [](std::string text) { return Status(Code::kInternal, std::move(text)); };
  const json::Value* response = json::Find(review, {"response"});
  if (version == "v1") {
    const std::string wanted = GvkText(StrCat(kGroup, "v1"), "ConversionReview");
    const std::string got =
        GvkText(json::GetString(review, {"apiVersion"}), json::GetString(review, {"kind"}));
    if (got != wanted) {
      return problem(StrCat("expected webhook response of ", wanted, ", got ", got));
    }
  }
  if (response == nullptr || !response->is_object()) return problem("no response provided");
  if (version == "v1" && json::GetString(*response, {"uid"}) != uid) {
    return problem(StrCat("expected response.uid=", Quote(uid), ", got ",
                          Quote(json::GetString(*response, {"uid"}))));
  }
  const std::string_view status = json::GetString(*response, {"result", "status"});
  if (status != "Success") {
    const std::string_view message = json::GetString(*response, {"result", "message"});
    return problem(message.empty()
                       ? StrCat("response.result.status was '", status, "', not 'Success'")
                       : std::string(message));
  }
  return json::GetArray(*response, {"convertedObjects"});
}

// Empty: the converted object is the same one.
std::string Difference(const json::Value& from, const json::Value& to) {
  const std::tuple<const char*, std::string_view, std::string_view> parts[] = {
      {"kind", json::GetString(from, {"kind"}), json::GetString(to, {"kind"})},
      {"name", api::Name(from), api::Name(to)},
      {"namespace", api::Namespace(from), api::Namespace(to)},
      {"UID", api::Uid(from), api::Uid(to)}};
  for (const auto& [what, before, after] : parts) {
    if (before != after) {
      return StrCat("must have the same ", what, ": ", before, " != ", after);
    }
  }
  return {};
}

// A webhook may convert labels and annotations, nothing else of the metadata.
std::string TakeMetadata(const json::Value& from, json::Value& to) {
  const json::Value* given = json::Find(to, {"metadata"});
  if (given == nullptr) return "missing metadata in converted object";
  if (!given->is_object()) return "invalid metadata in converted object";
  json::Object metadata = json::GetObject(from, {"metadata"});
  for (const char* field : {"labels", "annotations"}) {
    const json::Value* map = given->get_object().if_contains(field);
    if (map == nullptr || map->is_null()) {
      json::StableErase(metadata, field);
      continue;
    }
    if (!map->is_object()) return StrCat("invalid metadata.", field, " in converted object");
    for (const auto& [key, value] : map->get_object()) {
      if (!value.is_string()) {
        return StrCat("metadata.", field, "[", std::string_view(key.data(), key.size()),
                      "] must be a string in converted object");
      }
    }
    metadata[field] = *map;
  }
  json::Set(to, {"metadata"}, std::move(metadata));
  return {};
}

// Checks one converted object against the one that was sent, and completes it.
Status Fit(const json::Value& from,
           json::Value& to,
           const api::KindInfo& wanted,
           std::string_view what) {
  auto invalid = [&](std::string_view part, std::string_view why) {
    return Status(Code::kInternal, StrCat(what, " returned invalid ", part, ": ", why));
  };
  if (!to.is_object()) return invalid("object", "it must be an object");
  const std::string_view got = json::GetString(to, {"apiVersion"});
  if (got != wanted.gvk.ApiVersion()) {
    return invalid("object at index 0", StrCat("invalid groupVersion (expected ",
                                               wanted.gvk.ApiVersion(), ", received ", got, ")"));
  }
  const std::string difference = Difference(from, to);
  if (!difference.empty()) return invalid("object", difference);
  const std::string metadata = TakeMetadata(from, to);
  return metadata.empty() ? Status::Ok() : invalid("metadata", metadata);
}

struct Batch {
  std::vector<std::string> keys;
  std::vector<json::Value> objects;
};

// Sends the objects; what comes back is filed under their keys.
void AskConverter(const Core& core,
                  Call& call,
                  const Converter& converter,
                  const api::KindPtr& to,
                  const std::string& about,
                  Batch batch) {
  const std::string version(ReviewVersion(converter));
  const std::string uid = core.random.Uuid();
  json::Array objects(batch.objects.begin(), batch.objects.end());
  json::Value review =
      json::Object{{"kind", "ConversionReview"},
                   {"apiVersion", StrCat(kGroup, version)},
                   {"request", json::Object{{"uid", uid},
                                            {"desiredAPIVersion", to->gvk.ApiVersion()},
                                            {"objects", std::move(objects)}}}};
  const std::string key = batch.keys[0];
  auto file = [batch = std::move(batch), to, version, uid,
               about = StrCat("conversion webhook for ", about)](Callouts& known,
                                                                 const Callouts::Answer& answer) {
    auto all = [&](const Status& why) {
      for (const std::string& one : batch.keys) known.Put(one, why);
    };
    if (!answer.ok()) return all(answer.status().WithContext(StrCat(about, " failed")));
    auto converted = ObjectsIn(*answer, version, uid);
    if (!converted.ok()) return all(converted.status().WithContext(StrCat(about, " failed")));
    if (converted->size() != batch.objects.size()) {
      return all(Status(Code::kInternal, StrCat(about, " returned ", converted->size(),
                                                " objects, expected ", batch.objects.size())));
    }
    for (size_t i = 0; i < batch.keys.size(); ++i) {
      json::Value& object = (*converted)[i];
      const Status fits = Fit(batch.objects[i], object, *to, about);
      known.Put(batch.keys[i],
                fits.ok() ? Callouts::Answer(std::move(object)) : Callouts::Answer(fits));
    }
  };
  SendReview(core, call, key, converter.webhook, review, kTimeout, false, std::move(file));
}

}  // namespace

bool HasConverter(const Core& core, const api::KindInfo& kind) {
  return ConverterOf(core, kind) != nullptr;
}

Status ConvertObject(const Core& core, Call& call, json::Value& object, const api::KindInfo& to) {
  if (IsOf(object, to)) return Status::Ok();
  const Converter* converter = ConverterOf(core, to);
  if (converter == nullptr) return core.scheme->Convert(object, to);
  if (ReviewVersion(*converter).empty()) {
    return ConversionError(call, "no supported conversion review versions");
  }
  const std::string key = KeyOf(object, to);
  if (const Callouts::Answer* answer = CalloutsOf(core, call).Find(key)) {
    if (!answer->ok()) return ConversionError(call, answer->status().message());
    object = **answer;
    return Status::Ok();
  }
  const std::string about = GvkText(json::GetString(object, {"apiVersion"}), to.gvk.kind);
  AskConverter(core, call, *converter, std::make_shared<const api::KindInfo>(to), about,
               {{key}, {object}});
  return WaitingForCallout();
}

Status ConvertAhead(const Core& core,
                    Call& call,
                    const std::vector<store::EntryPtr>& entries,
                    const api::KindInfo& to) {
  const Converter* converter = ConverterOf(core, to);
  if (converter == nullptr) return Status::Ok();
  const Callouts& callouts = CalloutsOf(core, call);
  const auto kind = std::make_shared<const api::KindInfo>(to);
  bool asked = false;
  Batch next;
  std::string about;
  auto send = [&] {
    if (next.keys.empty()) return;
    asked = true;
    AskConverter(core, call, *converter, kind, about, std::exchange(next, {}));
  };
  for (const store::EntryPtr& entry : entries) {
    const json::SharedValue object = StoredObject(core, to, *entry);
    if (IsOf(*object, to)) continue;
    std::string key = KeyOf(*object, to);
    if (callouts.Find(key) != nullptr) continue;
    about = GvkText(json::GetString(*object, {"apiVersion"}), to.gvk.kind);
    next.keys.push_back(std::move(key));
    next.objects.push_back(*object);
    if (next.keys.size() == kMostOfReview) send();
  }
  send();
  return asked ? WaitingForCallout() : Status::Ok();
}

void SetConverter(Core& core, const std::string& resource, const json::Value* conversion) {
  auto& converters = core.Get<Webhooks>().converters;
  if (conversion == nullptr || json::GetString(*conversion, {"strategy"}) != "Webhook") {
    if (const auto found = converters.find(resource); found != converters.end()) {
      converters.erase(found);
    }
    return;
  }
  Converter converter;
  converter.webhook = Webhook::FromJson(json::Find(*conversion, {"webhook", "clientConfig"}));
  for (const json::Value& version :
       json::GetArray(*conversion, {"webhook", "conversionReviewVersions"})) {
    if (version.is_string())
      converter.review_versions.emplace_back(json::View(version.get_string()));
  }
  converters.insert_or_assign(resource, std::move(converter));
}

}  // namespace swell::apiserver
