#include "kube/api/schema/schema_formats.h"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace swell::api {
namespace {

struct Texts {
  std::vector<std::string> fine, wrong;
};

TEST(SchemaFormats, HoldTextsToWhatTheyName) {
  const std::map<std::string, Texts> formats = {
      {"bsonobjectid", {{"507f1f77bcf86cd799439011"}, {"507f1f77bcf86cd79943901", "x"}}},
      {"byte", {{"YQ==", "YWJj"}, {"", "YQ=", "a b="}}},
      {"cidr", {{"10.0.0.0/8", "fd00::/8"}, {"10.0.0.0", "10.0.0.0/33"}}},
      {"creditcard", {{"4111 1111 1111 1111"}, {"4111 1111 1111 1112", "12"}}},
      {"date", {{"2026-02-28", "9999-12-31"}, {"2026-02-29", "2026-2-01", "x"}}},
      {"date-time",
       {{"2026-01-01T00:00:00Z", "9999-12-31t23:59:59.5+01:00"},
        {"2026-01-01", "2026-01-01T24:00:00Z", "2026-01-01 00:00:00Z"}}},
      {"duration", {{"1h30m", "22 ns", "5 minutes", "0", "1.5s"}, {"", "5", "5 parsecs", "h"}}},
      {"email",
       {{"a@b", "a.b+c@d.e", "Name <a@b.c>", "\"a b\"@c"},
        {"", "a", "a@", "@b", "a..b@c", "a b@c"}}},
      {"hexcolor", {{"#fff", "A0B1C2"}, {"#ff", "red"}}},
      {"hostname",
       {{"a", "a-b", "example.com", "1.example.com"}, {"", "a_b", "-a.com", "a.b.c1", "a b"}}},
      {"ipv4", {{"1.2.3.4"}, {"1.2.3", "::1", "01.2.3.4"}}},
      {"ipv6", {{"::1", "fd00::1:2"}, {"1.2.3.4", ":::", "1::2::3"}}},
      {"isbn", {{"0321751043", "978-0321751041"}, {"0321751044", "1"}}},
      {"isbn10", {{"0-321-75104-3", "080442957X"}, {"978-0321751041"}}},
      {"isbn13", {{"9780321751041"}, {"9780321751042", "0321751043"}}},
      {"mac",
       {{"00:00:5e:00:53:01", "00-00-5E-00-53-01", "0000.5e00.5301", "02:00:5e:10:00:00:00:01"},
        {"", "00:00:5e:00:53", "00:00:5e-00-53-01", "00:00:5e:00:53:0g"}}},
      {"password", {{"", "x"}, {}}},
      {"rgbcolor", {{"rgb(0, 128,255)"}, {"rgb(0,0,256)", "rgb(0,0)"}}},
      {"ssn", {{"078-05-1120", "078 05 1120"}, {"078051120", "78-05-1120"}}},
      {"uri",
       {{"/a", "http://a.b:80/c%20d?e", "mailto:x", "*", "https://u:p@[::1]:6443/"},
        {"", "a", "http://a b/", "http://a:b/", "/%zz", ":x", "http://[::1"}}},
      {"uuid",
       {{"6BA7B810-9DAD-11D1-80B4-00C04FD430C8", "6ba7b8109dad11d180b400c04fd430c8"},
        {"", "6ba7b810-9dad-11d1-80b4-00c04fd430c", "6ba7b810-9dad-11d1-80b4-00c04fd430cg"}}},
      {"uuid4",
       {{"16fd2706-8baf-433b-82eb-8c7fada847da"}, {"6ba7b810-9dad-11d1-80b4-00c04fd430c8"}}},
      {"semver", {{"", "x"}, {}}},
  };
  for (const auto& [format, texts] : formats) {
    for (const std::string& text : texts.fine)
      EXPECT_TRUE(HasFormat(text, format)) << format << " " << text;
    for (const std::string& text : texts.wrong)
      EXPECT_FALSE(HasFormat(text, format)) << format << " " << text;
  }
}

}  // namespace
}  // namespace swell::api
