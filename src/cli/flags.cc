#include "cli/flags.h"

#include <algorithm>
#include <list>

#include <CLI/CLI.hpp>

#include "base/strings.h"

namespace swell::cli {
namespace {

constexpr std::string_view kMisuse = "Misuse";

// CLI11 takes the word after "--flag=" as its value; here an empty value is an empty value. Short
// flags may be written -o=json, and flags with an implied value may stand alone.
std::vector<std::string> Normalise(const Flags& flags, const std::vector<std::string>& arguments) {
  std::vector<std::string> out;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument.size() < 2 || argument[0] != '-') {
      out.push_back(argument);
      continue;
    }
    size_t equals = argument.find('=');
    const Flag* flag = flags.Find(argument.substr(0, equals));
    if (flag && flag->TakesValue() && equals != std::string::npos) {
      out.push_back(argument.substr(0, equals));
      out.push_back(argument.substr(equals + 1));
    } else if (flag && !flag->implied.empty()) {
      out.push_back(argument);
      out.push_back(flag->implied);
    } else if (flag && flag->kind == Flag::Kind::kMaybe &&
               (i + 1 == arguments.size() || arguments[i + 1].starts_with('-'))) {
      out.push_back(argument);
      out.emplace_back();
    } else {
      out.push_back(argument);
    }
  }
  return out;
}

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
}

// What the parsed texts become, after CLI11 is done with them.
struct Parsed {
  Flag* flag;
  CLI::Option* option;
  std::vector<std::string> texts;
  bool on = false;
};

Status StoreOne(Parsed& parsed) {
  Flag& flag = *parsed.flag;
  flag.seen = true;
  if (!flag.refusal.empty()) {
    return Misuse(StrCat("--", flag.Long(), " is not supported: ", flag.refusal));
  }
  switch (flag.kind) {
    case Flag::Kind::kSwitch:
      *static_cast<bool*>(flag.to) = parsed.on != flag.turns_off;
      return Status::Ok();
    case Flag::Kind::kText:
      if (!flag.choices.empty() && std::find(flag.choices.begin(), flag.choices.end(),
                                             parsed.texts.back()) == flag.choices.end()) {
        return Misuse(StrCat("--", flag.Long(), ": ", Quote(parsed.texts.back()), " is not one of ",
                             Join(flag.choices, ", ")));
      }
      *static_cast<std::string*>(flag.to) = parsed.texts.back();
      return Status::Ok();
    case Flag::Kind::kMaybe:
      *static_cast<std::optional<std::string>*>(flag.to) = parsed.texts.back();
      return Status::Ok();
    case Flag::Kind::kList:
      *static_cast<std::vector<std::string>*>(flag.to) = parsed.texts;
      return Status::Ok();
    case Flag::Kind::kInt: {
      auto number = ParseInt(parsed.texts.back());
      if (!number) {
        return Misuse(
            StrCat("--", flag.Long(), ": ", Quote(parsed.texts.back()), " is not a whole number"));
      }
      *static_cast<int64_t*>(flag.to) = *number;
      return Status::Ok();
    }
  }
  return Status::Ok();
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
  return NearestWord(unknown.substr(0, unknown.find('=')), names);
}

Status Flags::Parse(std::vector<std::string> arguments, std::vector<std::string>* words) {
  auto end = std::find(arguments.begin(), arguments.end(), "--");
  // After "--" everything is a word, whatever it looks like.
  std::vector<std::string> after(end == arguments.end() ? end : end + 1, arguments.end());
  arguments.erase(end, arguments.end());
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::list<Parsed> parsed;
  for (Flag& flag : flags_) {
    Parsed& one = parsed.emplace_back(Parsed{&flag, nullptr, {}, false});
    const std::string names =
        StrCat(flag.names, flag.also.empty() ? "" : ",", Join(flag.also, ","));
    if (flag.kind == Flag::Kind::kSwitch) {
      one.option = app.add_flag(names, one.on);
      one.option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    } else {
      // The raw results are read below: CLI11's conversions give "{}" and "[a,b]" meanings.
      one.option = app.add_option(names, [](const CLI::results_t&) { return true; });
      one.option->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
      one.option->allow_extra_args(false);
    }
  }
  CLI::Option* rest = app.add_option("words", [](const CLI::results_t&) { return true; });
  rest->expected(0, 100'000)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  rest->allow_extra_args(false);
  std::vector<std::string> reversed = Normalise(*this, arguments);
  std::reverse(reversed.begin(), reversed.end());
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::ArgumentMismatch& error) {
    // What it says after the flag's name is for programmers.
    const std::string_view what = error.what();
    return Misuse(StrCat(what.substr(0, what.find(':')), ": a value is missing"));
  } catch (const CLI::ParseError& error) {
    return Misuse(error.what());
  }
  for (const std::string& extra : app.remaining()) {
    // A dash alone is standard input's name.
    if (extra.empty() || extra[0] != '-' || extra == "-") {
      words->push_back(extra);
      continue;
    }
    std::string near = Nearest(extra);
    return Misuse(StrCat("unknown flag ", extra.substr(0, extra.find('=')),
                         near.empty() ? "" : StrCat("; did you mean ", near, "?")));
  }
  words->insert(words->begin(), rest->results().begin(), rest->results().end());
  if (words_before_dashes_ != nullptr) *words_before_dashes_ = words->size();
  words->insert(words->end(), after.begin(), after.end());
  for (Parsed& one : parsed) {
    if (one.option->count() == 0) continue;
    if (one.flag->TakesValue()) one.texts = one.option->results();
    SWELL_RETURN_IF_ERROR(StoreOne(one));
  }
  return Status::Ok();
}

std::string NearestWord(std::string_view typed, const std::vector<std::string>& candidates) {
  std::string best;
  size_t best_distance = std::max<size_t>(2, typed.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    size_t distance = EditDistance(typed, candidate);
    if (typed.size() >= 3 && candidate.starts_with(typed)) distance = 1;
    if (distance < best_distance && distance < candidate.size()) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

Status Misuse(std::string message) {
  StatusDetails details;
  details.causes.push_back({std::string(kMisuse), "", ""});
  return Status(Code::kBadRequest, std::move(message), std::move(details));
}

bool IsMisuse(const Status& status) {
  const auto& causes = status.details().causes;
  return causes.size() == 1 && causes[0].reason == kMisuse;
}

}  // namespace swell::cli
