// ViewText: the whole is the view, and the differences lead from one to the next.
#include "ui/view_text.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/strings.h"

namespace swell::ui {
namespace {

// What a tab does with a difference.
json::Value Applied(const json::Value& before, const std::string& difference) {
  const json::Value delta = json::Parse(difference).value();
  json::Object data = json::GetObject(delta, {"data"});
  for (const auto& list : json::GetObject(delta, {"lists"})) {
    const json::Array& old = before.get_object().at(list.key()).get_array();
    json::Array items;
    for (const json::Value& step : list.value().get_array()) {
      if (step.is_object()) {
        items.push_back(step);
        continue;
      }
      const auto first = step.get_array()[0].to_number<size_t>();
      const auto count = step.get_array()[1].to_number<size_t>();
      for (size_t i = first; i < first + count; ++i) items.push_back(old.at(i));
    }
    data[list.key()] = std::move(items);
  }
  return data;
}

json::Value Rows(const std::vector<int>& rows, int total = 0) {
  json::Array list;
  for (int row : rows) {
    list.push_back(json::Object{{"id", row}, {"text", std::string(40, 'x')}});
  }
  return json::Object{{"total", total}, {"rows", std::move(list)}, {"partial", true}};
}

std::vector<int> Count(int from, int to) {
  std::vector<int> rows;
  for (int i = from; i < to; ++i) rows.push_back(i);
  return rows;
}

TEST(ViewText, TheWholeIsTheView) {
  for (const json::Value& data :
       {Rows(Count(0, 20)), Rows({}), json::Value(json::Array{1, 2}),
        json::Value(json::Object{{"rows", json::Array{1, 2, 3, 4, 5, 6, 7, 8, 9}}})}) {
    EXPECT_EQ(json::Parse(ViewText(data).text()).value(), data) << json::Print(data);
  }
}

TEST(ViewText, ADifferenceNamesWhatStayedAndHasWhatIsNew) {
  std::vector<int> rows = Count(0, 100);
  const ViewText before(Rows(rows));
  rows[50] = 1000;
  rows.erase(rows.begin() + 70);
  rows.push_back(1001);
  const std::string text(40, 'x');
  EXPECT_EQ(
      ViewText(Rows(rows, 3)).DifferenceFrom(before),
      StrCat(R"({"data":{"total":3,"partial":true},"lists":{"rows":[[0,50],{"id":1000,)",
             R"("text":")", text, R"("},[51,19],[71,29],{"id":1001,"text":")", text, R"("}]}})"));
}

TEST(ViewText, WhereMostChangedTheWholeIsSent) {
  const ViewText before(Rows(Count(0, 50)));
  EXPECT_EQ(ViewText(Rows(Count(100, 150))).DifferenceFrom(before), "");
  EXPECT_EQ(ViewText(Rows(Count(0, 3))).DifferenceFrom(before), "") << "no list is long enough";
}

TEST(ViewText, DifferencesLeadFromAnyViewToAnyOther) {
  Random random(7);
  int told = 0;
  std::vector<int> rows = Count(0, 200);
  json::Value last = Rows(rows);
  for (int round = 0; round < 200; ++round) {
    for (uint64_t changes = random.Below(6); changes > 0; --changes) {
      const auto at = static_cast<std::ptrdiff_t>(random.Below(rows.size()));
      const int fresh = 1000 + static_cast<int>(random.Below(100));  // may be there twice
      switch (random.Below(4)) {
        case 0:
          rows[static_cast<size_t>(at)] = fresh;
          break;
        case 1:
          rows.insert(rows.begin() + at, fresh);
          break;
        case 2:
          if (rows.size() > 50) rows.erase(rows.begin() + at);
          break;
        default:
          std::rotate(rows.begin(), rows.begin() + at, rows.end());
      }
    }
    const json::Value now = Rows(rows, round);
    const std::string difference = ViewText(now).DifferenceFrom(ViewText(last));
    if (!difference.empty()) {
      ++told;
      EXPECT_EQ(Applied(last, difference), now);
    }
    last = now;
  }
  EXPECT_GT(told, 150);
}

}  // namespace
}  // namespace swell::ui
