#include "kube/images/registries.h"

#include <algorithm>

#include "base/file.h"
#include "base/host_port.h"
#include "base/nearest_word.h"
#include "base/strings.h"
#include "json/yaml.h"
#include "kube/images/reference.h"

namespace swell::images {
namespace {

bool HasScheme(std::string_view url) {
  return url.starts_with("http://") || url.starts_with("https://");
}

Result<std::vector<std::string>> Mirrors(const json::Value& value) {
  std::vector<std::string> out;
  const json::Value* list = json::Find(value, {"mirrors"});
  if (list == nullptr) return out;
  if (!list->is_array()) return Status(Code::kInvalid, "mirrors: must be a list of addresses");
  for (const json::Value& item : list->get_array()) {
    std::string url(item.is_string() ? json::View(item.get_string()) : std::string_view());
    while (url.ends_with('/')) url.pop_back();
    if (HostOf(url).empty()) {
      return Status(Code::kInvalid,
                    "mirrors: an entry is not an address: expected https://HOST[:PORT]");
    }
    out.push_back(std::move(url));
  }
  return out;
}

// A field that nobody reads would be a setting that does not apply.
Status CheckFields(const json::Value& value, const std::vector<std::string>& known) {
  if (!value.is_object()) {
    return Status(Code::kInvalid, StrCat("expected the fields ", Join(known, ", ")));
  }
  for (const auto& field : value.get_object()) {
    const std::string name(field.key());
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string nearest = NearestWord(name, known);
    return Status(Code::kInvalid, StrCat(Quote(name), " is not a field; ",
                                         nearest.empty() ? StrCat("expected ", Join(known, ", "))
                                                         : StrCat("did you mean ", nearest, "?")));
  }
  return Status::Ok();
}

Status CheckDocument(const json::Value& document) {
  SWELL_RETURN_IF_ERROR(CheckFields(document, {"registries"}));
  const json::Value* list = json::Find(document, {"registries"});
  if (list == nullptr || list->is_null() || list->is_array()) return Status::Ok();
  return Status(Code::kInvalid, "registries: must be a list");
}

Status CheckEntry(const json::Value& item) {
  SWELL_RETURN_IF_ERROR(CheckFields(item, {"host", "mirrors", "ca", "insecure"}));
  const json::Value* insecure = json::Find(item, {"insecure"});
  if (insecure == nullptr || insecure->is_bool()) return Status::Ok();
  return Status(Code::kInvalid, "insecure: must be true or false");
}

}  // namespace

Result<RegistriesConfig> RegistriesConfig::Load(const std::string& file) {
  RegistriesConfig out;
  if (!FileExists(file)) return out;
  SWELL_ASSIGN_OR_RETURN(std::string text, ReadFile(file, 1 << 20));
  auto documents = json::ParseYaml(text);
  if (!documents.ok()) return documents.status().WithContext(file);
  for (const json::Value& document : *documents) {
    if (document.is_null()) continue;
    Status checked = CheckDocument(document);
    if (!checked.ok()) return checked.WithContext(file);
    int index = 0;
    for (const json::Value& item : json::GetArray(document, {"registries"})) {
      const std::string where = StrCat(file, ": registries[", index++, "]");
      checked = CheckEntry(item);
      if (!checked.ok()) return checked.WithContext(where);
      Entry entry;
      entry.host = json::GetString(item, {"host"});
      if (entry.host.empty() || HasScheme(entry.host)) {
        return Status(Code::kInvalid, StrCat(where,
                                             ": host: expected HOST or HOST:PORT, as image "
                                             "names have it"));
      }
      auto mirrors = Mirrors(item);
      if (!mirrors.ok()) return mirrors.status().WithContext(where);
      entry.mirrors = std::move(*mirrors);
      entry.ca_file = json::GetString(item, {"ca"});
      if (!entry.ca_file.empty() && !FileExists(entry.ca_file)) {
        return Status(Code::kInvalid,
                      StrCat(where, ": ca: there is no file ", Quote(entry.ca_file)));
      }
      entry.insecure = json::GetBool(item, {"insecure"});
      out.entries_.push_back(std::move(entry));
    }
  }
  return out;
}

std::vector<Endpoint> RegistriesConfig::EndpointsOf(const std::string& host) const {
  std::vector<Endpoint> out;
  const auto known = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.host == host; });
  const bool listed = known != entries_.end();
  // A mirror that is listed itself is reached as its own entry says.
  auto settings = [&](std::string_view name) {
    return std::find_if(entries_.begin(), entries_.end(),
                        [&](const Entry& entry) { return entry.host == name; });
  };
  if (listed) {
    for (const std::string& mirror : known->mirrors) {
      const std::string name(HostOf(mirror));
      const auto entry = settings(name);
      Endpoint one{.url = mirror, .mirror = true, .listed = true};
      if (entry != entries_.end()) {
        one.ca_file = entry->ca_file;
        one.insecure = entry->insecure;
      }
      if (!HasScheme(mirror)) {
        const bool plain = entry == entries_.end() && IsLoopback(name);
        one.url = StrCat(plain ? "http://" : "https://", mirror);
      }
      out.push_back(std::move(one));
    }
  }
  Endpoint own;
  own.url = StrCat(!listed && IsLoopback(host) ? "http://" : "https://",
                   host == "docker.io" ? "registry-1.docker.io" : host);
  own.listed = listed;
  if (listed) {
    own.ca_file = known->ca_file;
    own.insecure = known->insecure;
  }
  out.push_back(std::move(own));
  return out;
}

}  // namespace swell::images
