// ViewText: a view's data as JSON, of which the lists are known item by item, so that only what
// changed needs to be sent.
//
// The difference of two texts is
//
//   {"data": the members that are not long lists,
//    "lists": {"rows": [[0, 17], {…}, [18, 982]]}}
//
// [first, count] are items of the list before, and an object is a new item. Nothing names a row:
// items are the same where their texts are.
//
// - Threads: values; a ViewText does not change.
// - Invariants: a list shorter than kListLeast counts as a member.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"

namespace swell::ui {

class ViewText {
 public:
  static constexpr size_t kListLeast = 8;

  explicit ViewText(const json::Value& data);

  const std::string& text() const { return text_; }
  // Empty: the whole is as good, since most of it changed, or other lists are in it.
  std::string DifferenceFrom(const ViewText& before) const;

 private:
  struct Item {
    size_t begin, size;  // in text_
  };
  struct List {
    std::string name;
    std::vector<Item> items;
  };
  std::string_view TextOf(const Item& item) const {
    return std::string_view(text_).substr(item.begin, item.size);
  }
  bool Compare(const List& list, const ViewText& before, const List& old, std::string& out) const;

  std::string text_;
  std::string members_;  // all but the lists, as an object
  std::vector<List> lists_;
};

}  // namespace swell::ui
