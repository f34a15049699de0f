// Flags: the options of one command, declared as variables, parsed as kubectl's users type them.
//
//   flags.Text("-o,--output", &output, "FORMAT", "json, yaml, wide, name or jsonpath=…");
//   flags.List("-e,--env", &env, "K=V", "environment, repeatable");
//   Status parsed = flags.Parse(arguments, &positionals);
//
// Accepted: --flag value, --flag=value, --flag= (empty), -f value, -fvalue, -f=value, -ab for
// switches, --switch=false, and -- to end the flags. Flags and words may be mixed.
//
// - Threads: one thread.
// - Ownership: the variables outlive the Flags.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace swell::cli {

struct Flag {
  enum class Kind { kSwitch, kText, kMaybe, kInt, kList };
  std::string names;  // "-o,--output"
  Kind kind = Kind::kSwitch;
  void* to = nullptr;
  std::string value_name;
  std::string help;
  std::string group;
  std::string implied;  // value of the flag when it stands alone: --dry-run means =client
  std::vector<std::string> choices;  // of a text; empty: any
  bool turns_off = false;            // of a switch: giving it makes the variable false
  std::vector<std::string> also;     // further names, hidden: what other versions call it
  std::string refusal;               // why it cannot be had here; giving it is an error
  bool hidden = false;
  bool seen = false;

  std::string Long() const;   // "output"; the short letter when there is no long name
  std::string Short() const;  // "o" or ""
  bool TakesValue() const { return kind != Kind::kSwitch; }
};

class Flags {
 public:
  // Titles the flags declared after it, in help.
  void Group(std::string title) { group_ = std::move(title); }
  Flag& Switch(std::string names, bool* to, std::string help);
  // A switch that makes a true variable false: --no-default-scheduler.
  Flag& SwitchOff(std::string names, bool* to, std::string help);
  Flag& Text(std::string names, std::string* to, std::string value_name, std::string help);
  // A text that is one of `choices`.
  Flag& Choice(std::string names,
               std::string* to,
               std::string value_name,
               std::vector<std::string> choices,
               std::string help);
  // A text that may also stand alone, with an empty value, as the last word or before another flag.
  Flag& Maybe(std::string names,
              std::optional<std::string>* to,
              std::string value_name,
              std::string help);
  Flag& Int(std::string names, int64_t* to, std::string value_name, std::string help);
  Flag& List(std::string names,
             std::vector<std::string>* to,
             std::string value_name,
             std::string help);
  // One more name for a declared flag, not shown in help. Without effect on a flag that is not
  // declared, or where the name is taken.
  void AddName(std::string_view dashed, std::string_view name);
  // A flag that others have and that is told why it is not here, rather than that it is unknown.
  void Refuse(std::string names, std::string why);
  // How many of the words stand before "--"; what follows it is never a name of ours.
  void CountWordsBeforeDashes(size_t* to) { words_before_dashes_ = to; }
  // The first word and all behind it are words: a program and its own flags.
  void StopAtFirstWord() { stops_at_first_word_ = true; }

  // kBadRequest, in words for the user, for anything that cannot be understood.
  Status Parse(const std::vector<std::string>& arguments, std::vector<std::string>* words);
  // Whether the user gave the flag; by long name.
  bool Seen(std::string_view name) const;

  const Flag* Find(std::string_view dashed) const;  // "--output" or "-o"
  const std::vector<Flag>& all() const { return flags_; }

 private:
  Flag& Add(std::string names, Flag::Kind kind, void* to, std::string value_name, std::string help);
  std::string Nearest(std::string_view unknown) const;

  std::string group_;
  std::vector<Flag> flags_;
  size_t* words_before_dashes_ = nullptr;
  bool stops_at_first_word_ = false;
};

// An error that is the caller's mistake: exit status 2, with a pointer to --help.
Status Misuse(std::string message);
bool IsMisuse(const Status& status);
// "--flag "valu": expected value or other; did you mean value?"
Status WrongValue(std::string_view flag,
                  std::string_view value,
                  const std::vector<std::string>& choices);

}  // namespace swell::cli
