#include "cli/flags.h"

#include <algorithm>

#include "base/check.h"
#include "base/nearest_word.h"
#include "base/strings.h"

namespace swell::cli {
namespace {

constexpr std::string_view kMisuse = "Misuse";

// The value of the flag in arguments[*at]: from the same word, implied, or the next word.
Result<std::string> ReadValue(const Flag& flag,
                              const std::optional<std::string>& attached,
                              const std::vector<std::string>& arguments,
                              size_t end,
                              size_t* at) {
  if (attached) return *attached;
  if (!flag.implied.empty()) return flag.implied;
  if (flag.kind == Flag::Kind::kSwitch) return std::string("true");
  const bool more = *at + 1 < end;
  if (flag.kind == Flag::Kind::kMaybe && (!more || arguments[*at + 1].starts_with('-'))) {
    return std::string();
  }
  if (!more) return Misuse(StrCat("--", flag.Long(), ": a value is missing"));
  return arguments[++*at];
}

// "None, Running or All".
std::string OneOf(std::vector<std::string> choices) {
  const std::string last = choices.back();
  choices.pop_back();
  return choices.empty() ? last : StrCat(Join(choices, ", "), " or ", last);
}

// As Go's commands read it: kubectl, Arena and Run:ai take each of these.
std::optional<bool> ReadBool(std::string_view text) {
  for (std::string_view yes : {"true", "True", "TRUE", "t", "T", "1"}) {
    if (text == yes) return true;
  }
  for (std::string_view no : {"false", "False", "FALSE", "f", "F", "0"}) {
    if (text == no) return false;
  }
  return std::nullopt;
}

Status Store(Flag& flag, std::string value) {
  const bool first = !flag.seen;
  flag.seen = true;
  if (!flag.refusal.empty()) {
    return Misuse(StrCat("--", flag.Long(), " is not supported: ", flag.refusal));
  }
  auto wrong = [&](std::string_view what) {
    return Misuse(StrCat("--", flag.Long(), " ", Quote(value), ": expected ", what));
  };
  switch (flag.kind) {
    case Flag::Kind::kSwitch: {
      const std::optional<bool> on = ReadBool(value);
      if (!on) return wrong("true or false");
      *static_cast<bool*>(flag.to) = *on != flag.turns_off;
      break;
    }
    case Flag::Kind::kText:
      if (!flag.choices.empty() &&
          std::find(flag.choices.begin(), flag.choices.end(), value) == flag.choices.end()) {
        return WrongValue(StrCat("--", flag.Long()), value, flag.choices);
      }
      *static_cast<std::string*>(flag.to) = std::move(value);
      break;
    case Flag::Kind::kMaybe:
      *static_cast<std::optional<std::string>*>(flag.to) = std::move(value);
      break;
    case Flag::Kind::kList: {
      auto& list = *static_cast<std::vector<std::string>*>(flag.to);
      if (first) list.clear();
      list.push_back(std::move(value));
      break;
    }
    case Flag::Kind::kInt: {
      const auto number = ParseInt(value);
      if (!number) return wrong("a whole number");
      *static_cast<int64_t*>(flag.to) = *number;
      break;
    }
  }
  return Status::Ok();
}

std::string_view Singular(std::string_view word) {
  if (word.ends_with('s')) word.remove_suffix(1);
  return word;
}

// "--gpu-quota, --gpu-limit or --gpu-lending-limit" for "--gpus": the first flags that have the
// word between their dashes.
std::string WithThePart(std::string_view typed, const std::vector<std::string>& names) {
  constexpr size_t kMost = 3;
  const std::string_view wanted = Singular(typed.substr(std::min<size_t>(typed.size(), 2)));
  std::vector<std::string> found;
  for (const std::string& name : names) {
    const std::vector<std::string_view> parts = Split(std::string_view(name).substr(2), '-');
    const bool has = std::any_of(parts.begin(), parts.end(), [wanted](std::string_view part) {
      return Singular(part) == wanted;
    });
    if (has && !wanted.empty() && found.size() < kMost) found.push_back(name);
  }
  return found.empty() ? "" : OneOf(found);
}

}  // namespace

std::string Flag::Long() const {
  size_t at = names.find("--");
  return at == std::string::npos ? Short() : names.substr(at + 2);
}

std::string Flag::Short() const {
  return names.size() >= 2 && names[0] == '-' && names[1] != '-' ? names.substr(1, 1) : "";
}

Flag& Flags::Add(
    std::string names, Flag::Kind kind, void* to, std::string value_name, std::string help) {
  Flag flag;
  flag.names = std::move(names);
  SWELL_CHECK(Find("--" + flag.Long()) == nullptr);
  SWELL_CHECK(flag.Short().empty() || Find("-" + flag.Short()) == nullptr);
  flag.kind = kind;
  flag.to = to;
  flag.value_name = std::move(value_name);
  flag.help = std::move(help);
  flag.group = group_;
  flags_.push_back(std::move(flag));
  return flags_.back();
}

Flag& Flags::Switch(std::string names, bool* to, std::string help) {
  return Add(std::move(names), Flag::Kind::kSwitch, to, "", std::move(help));
}
Flag& Flags::SwitchOff(std::string names, bool* to, std::string help) {
  Flag& flag = Switch(std::move(names), to, std::move(help));
  flag.turns_off = true;
  return flag;
}
Flag& Flags::Choice(std::string names,
                    std::string* to,
                    std::string value_name,
                    std::vector<std::string> choices,
                    std::string help) {
  Flag& flag = Text(std::move(names), to, std::move(value_name), std::move(help));
  flag.choices = std::move(choices);
  return flag;
}
Flag& Flags::Text(std::string names, std::string* to, std::string value_name, std::string help) {
  return Add(std::move(names), Flag::Kind::kText, to, std::move(value_name), std::move(help));
}
Flag& Flags::Maybe(std::string names,
                   std::optional<std::string>* to,
                   std::string value_name,
                   std::string help) {
  return Add(std::move(names), Flag::Kind::kMaybe, to, std::move(value_name), std::move(help));
}
Flag& Flags::Int(std::string names, int64_t* to, std::string value_name, std::string help) {
  return Add(std::move(names), Flag::Kind::kInt, to, std::move(value_name), std::move(help));
}
Flag& Flags::List(std::string names,
                  std::vector<std::string>* to,
                  std::string value_name,
                  std::string help) {
  return Add(std::move(names), Flag::Kind::kList, to, std::move(value_name), std::move(help));
}

void Flags::AddName(std::string_view dashed, std::string_view name) {
  const Flag* known = Find(dashed);
  if (known == nullptr || Find(name) != nullptr) return;
  flags_[static_cast<size_t>(known - flags_.data())].also.emplace_back(name);
}

void Flags::Refuse(std::string names, std::string why) {
  Flag& flag = Add(std::move(names), Flag::Kind::kMaybe, nullptr, "", "");
  flag.refusal = std::move(why);
  flag.hidden = true;
}

const Flag* Flags::Find(std::string_view dashed) const {
  for (const Flag& flag : flags_) {
    if (std::find(flag.also.begin(), flag.also.end(), dashed) != flag.also.end()) return &flag;
    if (dashed == "--" + flag.Long() || (!flag.Short().empty() && dashed == "-" + flag.Short())) {
      return &flag;
    }
  }
  return nullptr;
}

bool Flags::Seen(std::string_view name) const {
  for (const Flag& flag : flags_) {
    if (flag.Long() == name) return flag.seen;
  }
  return false;
}

std::string Flags::Nearest(std::string_view unknown) const {
  std::vector<std::string> names;
  for (const Flag& flag : flags_) {
    if (!flag.hidden) names.push_back("--" + flag.Long());
  }
  const std::string_view typed = unknown.substr(0, unknown.find('='));
  std::string near = NearestWord(typed, names);
  return near.empty() ? WithThePart(typed, names) : near;
}

Status Flags::Parse(const std::vector<std::string>& arguments, std::vector<std::string>* words) {
  // After "--" everything is a word, whatever it looks like.
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  const auto end = static_cast<size_t>(dashes - arguments.begin());
  for (size_t i = 0; i < end; ++i) {
    const std::string& word = arguments[i];
    // A dash alone means standard input.
    if (word.size() < 2 || word[0] != '-') {
      if (stops_at_first_word_) {
        words->insert(words->end(), arguments.begin() + static_cast<std::ptrdiff_t>(i),
                      arguments.end());
        return Status::Ok();
      }
      words->push_back(word);
      continue;
    }
    // --name=value, or -abc: several switches, or a flag and its value.
    const bool is_long = word[1] == '-';
    for (size_t at = is_long ? 0 : 1; at < word.size();) {
      size_t next = is_long ? std::min(word.find('='), word.size()) : at + 1;
      const std::string name = is_long ? word.substr(0, next) : StrCat("-", word.substr(at, 1));
      auto* flag = const_cast<Flag*>(Find(name));
      if (flag == nullptr) {
        const std::string near = Nearest(word);
        return Misuse(StrCat("unknown flag ", word.substr(0, word.find('=')), DidYouMean(near)));
      }
      std::optional<std::string> attached;
      if (next < word.size() && (word[next] == '=' || flag->TakesValue())) {
        attached = word.substr(next + (word[next] == '=' ? 1 : 0));
        next = word.size();
      }
      SWELL_ASSIGN_OR_RETURN(std::string value, ReadValue(*flag, attached, arguments, end, &i));
      SWELL_RETURN_IF_ERROR(Store(*flag, std::move(value)));
      at = next;
    }
  }
  if (words_before_dashes_ != nullptr) *words_before_dashes_ = words->size();
  if (dashes != arguments.end()) words->insert(words->end(), dashes + 1, arguments.end());
  return Status::Ok();
}

Status Misuse(std::string message) {
  StatusDetails details;
  details.causes.push_back({std::string(kMisuse), "", ""});
  return Status(Code::kBadRequest, std::move(message), std::move(details));
}

Status WrongValue(std::string_view flag,
                  std::string_view value,
                  const std::vector<std::string>& choices) {
  const std::string near = NearestWord(ToLower(value), choices);
  return Misuse(StrCat(flag, " ", Quote(value), ": expected ", OneOf(choices), DidYouMean(near)));
}

bool IsMisuse(const Status& status) {
  const auto& causes = status.details().causes;
  return causes.size() == 1 && causes[0].reason == kMisuse;
}

}  // namespace swell::cli
