// What Kubernetes' libraries add to the language: values are those that 1.37.2 has for the same
// expressions.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/json_test_util.h"
#include "kube/api/cel/cel_access.h"
#include "kube/api/cel/cel_test_util.h"

namespace swell::api {
namespace {

using cel_test::Case;
using cel_test::Eval;
using json::J;

TEST(CelLibraries, Times) {
  const Case kCases[] = {
      {"timestamp('2024-02-29T10:20:30Z')", "2024-02-29T10:20:30Z"},
      {"timestamp('2024-02-29T10:20:30Z') + duration('24h')", "2024-03-01T10:20:30Z"},
      {"timestamp('2024-03-01T00:00:00Z') - timestamp('2024-02-01T00:00:00Z')", "2505600s"},
      {"timestamp('2024-03-01T00:00:00Z') - duration('1s')", "2024-02-29T23:59:59Z"},
      {"timestamp('2024-03-01T00:00:00Z') > timestamp('2024-02-01T00:00:00Z')", "true"},
      {"timestamp(1700000000)", "2023-11-14T22:13:20Z"},
      {"int(timestamp('2024-02-29T10:20:30Z'))", "1709202030"},
      {"int(timestamp('1969-12-31T23:59:59.5Z'))", "-1"},
      {"int(timestamp('1969-12-31T23:59:58Z'))", "-2"},
      {"int(timestamp('1970-01-01T00:00:00.5Z'))", "0"},
      {"string(timestamp('1969-12-31T23:59:59.5Z'))", "1969-12-31T23:59:59.5Z"},
      {"timestamp('1969-12-31T23:59:59.5Z').getSeconds()", "59"},
      {"timestamp('2024-02-29T10:20:30Z').getFullYear()", "2024"},
      {"timestamp('2024-02-29T10:20:30Z').getMonth()", "1"},
      {"timestamp('2024-02-29T10:20:30Z').getDate()", "29"},
      {"timestamp('2024-02-29T10:20:30Z').getDayOfMonth()", "28"},
      {"timestamp('2024-02-29T10:20:30Z').getDayOfWeek()", "4"},
      {"timestamp('2024-02-29T10:20:30Z').getDayOfYear()", "59"},
      {"timestamp('2024-02-29T10:20:30.5Z').getMilliseconds()", "500"},
      {"timestamp('2024-02-29T23:20:30Z').getHours('Europe/Berlin')", "0"},
      {"timestamp('2024-02-29T23:20:30Z').getHours('+02:30')", "1"},
      {"timestamp('2024-02-29T23:20:30Z').getMinutes('-02:30')", "50"},
      {"timestamp('2024-02-29T23:20:30Z').getDate('02:00')", "1"},
      {"type(timestamp('2024-02-29T10:20:30Z')) == type(timestamp('2024-02-29T10:20:30Z'))",
       "true"},
      {"timestamp('0001-01-01T00:00:00Z') < timestamp('2024-02-29T10:20:30Z')", "true"},
      {"string(timestamp('2024-02-29T10:20:30.250+02:00'))", "2024-02-29T08:20:30.25Z"},
      {"timestamp(9223372036).getFullYear()", "2262"},
      {"timestamp(9223372036).getHours('+02:00')", "timestamp overflow"},
      {"timestamp('tomorrow')", "type conversion error: \"tomorrow\""},
      {"timestamp('2024-02-29T10:20:30Z').getHours('Nowhere/Land')",
       "unknown time zone Nowhere/Land"},
      {"timestamp('2024-02-29T10:20:30Z') + 1", "no such overload"},
      {"timestamp('2024-02-29T10:20:30Z') + timestamp('2024-02-29T10:20:30Z')", "no such overload"},
  };
  for (const Case& c : kCases) EXPECT_EQ(Eval(c.text), c.result) << c.text;
}

TEST(CelLibraries, Addresses) {
  const Case kCases[] = {
      {"ip('10.0.0.1')", "10.0.0.1"},
      {"isIP('::ffff:10.0.0.1')", "false"},
      {"isIP('010.0.0.1')", "false"},
      {"isIP('fe80::1%eth0')", "false"},
      {"ip('2001:DB8::0:1')", "2001:db8::1"},
      {"ip.isCanonical('2001:DB8::1')", "false"},
      {"ip.isCanonical('2001:db8::1')", "true"},
      {"ip.isCanonical('10.0.0.1')", "true"},
      {"ip('10.0.0.1').family()", "4"},
      {"ip('::1').family()", "6"},
      {"ip('127.0.0.1').isLoopback()", "true"},
      {"ip('224.0.0.5').isLinkLocalMulticast()", "true"},
      {"ip('ff02::1').isLinkLocalMulticast()", "true"},
      {"ip('169.254.1.1').isLinkLocalUnicast()", "true"},
      {"ip('10.0.0.1').isGlobalUnicast()", "true"},
      {"ip('224.0.0.5').isGlobalUnicast()", "false"},
      {"ip('255.255.255.255').isGlobalUnicast()", "false"},
      {"ip('0.0.0.0').isUnspecified()", "true"},
      {"ip('10.0.0.1') == ip('10.0.0.1')", "true"},
      {"cidr('10.0.0.0/8').containsIP('10.1.2.3')", "true"},
      {"cidr('10.0.0.0/8').containsIP(ip('11.1.2.3'))", "false"},
      {"cidr('10.0.0.0/8').containsIP('fd00::1')", "false"},
      {"cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')", "true"},
      {"cidr('10.1.0.0/16').containsCIDR(cidr('10.0.0.0/8'))", "false"},
      {"cidr('10.1.2.3/16').masked()", "10.1.0.0/16"},
      {"cidr('10.1.2.3/16').ip()", "10.1.2.3"},
      {"cidr('10.1.2.3/16').prefixLength()", "16"},
      {"cidr('10.1.2.3/16') == cidr('10.1.2.3/16').masked()", "false"},
      {"isCIDR('10.0.0.1/8')", "true"},
      {"isCIDR('10.0.0.0/08')", "false"},
      {"isCIDR('10.0.0.0')", "false"},
      {"isCIDR('::ffff:10.0.0.0/104')", "false"},
      {"cidr('10.0.0.0/8').masked().prefixLength()", "8"},
      {"ip('::ffff:10.0.0.1')",
       "IP Address \"::ffff:10.0.0.1\" parse error during conversion from string"},
      {"cidr('10.0.0.0/8').containsIP(1)", "no such overload"},
      {"ip(1)", "no such overload"},
  };
  for (const Case& c : kCases) EXPECT_EQ(Eval(c.text), c.result) << c.text;
}

TEST(CelLibraries, Urls) {
  const Case kCases[] = {
      {"url('https://user:pw@example.com:80/a b?x=1&y=2&x=3&z=a%20b+c#frag').getScheme()", "https"},
      {"url('https://user:pw@example.com:80/a b?x=1&y=2&x=3#frag').getHost()", "example.com:80"},
      {"url('https://user:pw@example.com:80/a b?x=1&y=2&x=3#frag').getHostname()", "example.com"},
      {"url('https://user:pw@example.com:80/a b?x=1&y=2&x=3#frag').getPort()", "80"},
      {"url('https://user:pw@example.com:80/a b?x=1&y=2&x=3#frag').getEscapedPath()", "/a%20b"},
      {"url('https://example.com/a%2Fb').getEscapedPath()", "/a%2Fb"},
      {"url('https://example.com?x=1&y=2&x=3&z=a%20b+c').getQuery()['x'][1]", "3"},
      {"url('https://example.com?x=1&y=2&x=3&z=a%20b+c').getQuery()['z'][0]", "a b c"},
      {"url('https://[::1]:8080/').getHostname()", "::1"},
      {"url('https://[::1]:8080/').getHost()", "[::1]:8080"},
      {"url('https://[::1]/').getPort()", ""},
      {"url('/path').getHost()", ""},
      {"isURL('https://a:b:c/')", "false"},
      {"isURL('../relative')", "false"},
      {"isURL('/absolute')", "true"},
      {"isURL('mailto:a@b.c')", "true"},
      {"isURL('http://exa mple.com/')", "false"},
      {"isURL('http://example.com/%zz')", "false"},
      {"isURL('HTTP://example.com')", "true"},
      {"isURL(':foo')", "false"},
      {"isURL('1http://foo')", "false"},
      {"isURL('')", "false"},
      {"isURL('http://')", "true"},
      {"isURL('http://[::1')", "false"},
      {"isURL('http://a:/')", "true"},
      {"isURL('oci://ghcr.io/org/chart')", "true"},
      {"isURL('https://example.com/a#b')", "true"},
      {"url('../a')",
       "URL parse error during conversion from string: parse \"../a\": invalid URI for request"},
  };
  for (const Case& c : kCases) EXPECT_EQ(Eval(c.text), c.result) << c.text;
}

TEST(CelLibraries, Versions) {
  const Case kCases[] = {
      {"semver('1.2.3').major()", "1"},
      {"semver('1.2.3-alpha.1').isLessThan(semver('1.2.3'))", "true"},
      {"semver('1.2.3-alpha.2').compareTo(semver('1.2.3-alpha.10'))", "-1"},
      {"semver('1.10.0').isGreaterThan(semver('1.9.0'))", "true"},
      {"semver('1.2.3+b1') == semver('1.2.3')", "true"},
      {"isSemver('v1.2.3')", "false"},
      {"isSemver('v1.2', true)", "true"},
      {"semver('v01.2', true).minor()", "2"},
      {"isSemver('1.2.3-01')", "false"},
      {"isSemver('1.2')", "false"},
      {"isSemver('1.2.3-')", "false"},
      {"semver('one')", "invalid semantic version: \"one\""},
  };
  for (const Case& c : kCases) EXPECT_EQ(Eval(c.text), c.result) << c.text;
}

TEST(CelLibraries, Formats) {
  const Case kCases[] = {
      {"format.dns1123Label().validate('my-name').hasValue()", "false"},
      {"format.dns1123Label().validate('My_Name').value()[0].contains('RFC 1123 label')", "true"},
      {"format.dns1123Subdomain().validate('a..b').value()[0].contains('subdomain')", "true"},
      {"format.dns1035Label().validate('1a').value()[0].contains('DNS-1035')", "true"},
      {"format.qualifiedName().validate('a/b/c').hasValue()", "true"},
      {"format.labelValue().validate('a b').value()[0].contains('valid label')", "true"},
      {"format.dns1123LabelPrefix().validate('abc-').hasValue()", "false"},
      {"format.uuid().validate('123e4567-e89b-12d3-a456-426614174000').hasValue()", "false"},
      {"format.uuid().validate('x').value()[0]", "does not match the UUID format"},
      {"format.byte().validate('aGVsbG8=').hasValue()", "false"},
      {"format.byte().validate('%%').value()[0]", "invalid base64"},
      {"format.date().validate('2021-01-01').hasValue()", "false"},
      {"format.date().validate('2021-13-01').value()[0]", "invalid date"},
      {"format.datetime().validate('2021-01-01T00:00:00Z').hasValue()", "false"},
      {"format.datetime().validate('x').value()[0]", "invalid datetime"},
      {"format.uri().validate('http://example.com').hasValue()", "false"},
      {"format.uri().validate('x').value()[0]", "parse \"x\": invalid URI for request"},
      {"format.named('dns1123Label').hasValue()", "true"},
      {"format.named('nothing').hasValue()", "false"},
      {"format.named('uuid').value().validate('x').hasValue()", "true"},
  };
  for (const Case& c : kCases) EXPECT_EQ(Eval(c.text), c.result) << c.text;
}

TEST(CelLibraries, Strings) {
  const Case kCases[] = {
      {"'abc 123'.find('[0-9]+')", "123"},
      {"'abc 123'.find('[0-9]*')", ""},
      {"'%d'.format([size('123 abc 456'.findAll('[0-9]*'))])", "6"},
      {"'%s'.format(['123 abc 456'.findAll('[0-9]+')])", "[\"123\", \"456\"]"},
      {"'%s'.format(['123 abc 456'.findAll('[0-9]+', 1)])", "[\"123\"]"},
      {"'%s and %d, %.2f %x %X %o %b %e %%'.format(['a', 3, 1.234, 255, 'hi', 8, 5, 12.5])",
       "a and 3, 1.23 ff 6869 10 101 1.250000×10⁰¹ %"},
      {"'%s'.format([[1, 2]])", "[1, 2]"},
      {"'%s'.format([['a', 'b']])", "[\"a\", \"b\"]"},
      {"'%s'.format([{'a': 1, 'b': 2}])", "{\"a\":1, \"b\":2}"},
      {"'%s'.format([duration('90s')])", "90s"},
      {"'%s'.format([timestamp('2024-02-29T10:20:30Z')])", "2024-02-29T10:20:30Z"},
      {"'%s %s %s'.format([true, null, 1.5])", "true null 1.5"},
      {"'%f'.format([1.5])", "1.500000"},
      {"'%s'.format([1.0])", "1"},
      {"strings.quote('a')", "\"a\""},
      {"'%s %s'.format(['a'])", "index 1 out of range"},
      {"'%q'.format(['a'])",
       "could not parse formatting clause: unrecognized formatting clause \"q\""},
      {"'%d'.format(['a'])", "error during formatting: %d clause can not be used on string"},
  };
  for (const Case& c : kCases) EXPECT_EQ(Eval(c.text), c.result) << c.text;
}

TEST(CelLibraries, SetsAndLists) {
  const Case kCases[] = {
      {"sets.contains([1, 2, 3], [2])", "true"},
      {"sets.equivalent([1, 2], [2, 1, 1])", "true"},
      {"sets.intersects([1], [2])", "false"},
      {"[3, 1, 2].sort()[0]", "1"},
      {"[1, 2, 2].distinct().size()", "2"},
      {"[1, 2, 3].reverse()[0]", "3"},
      {"[1, 2, 3, 4].slice(1, 3).size()", "2"},
      {"[[1], [2, 3]].flatten().size()", "3"},
      {"lists.range(3).size()", "3"},
      {"[1, 2].first().value()", "1"},
      {"[1, 2].last().orValue(0)", "2"},
      {"[{'a': 2}, {'a': 1}].sortBy(x, x.a)[0].a", "1"},
      {"[1, 'a'].sort()", "no such overload"},
      {"[1, 2].slice(1, 3)", "index out of bounds"},
      {"[[1, [2]], [3]].flatten(2)", "[1 2 3]"},
      {"lists.range(10000000)", "call cost exceeds limit, no further evaluation"},
  };
  for (const Case& c : kCases) EXPECT_EQ(Eval(c.text), c.result) << c.text;
}

TEST(CelLibraries, QuantitiesAndNumbers) {
  const Case kCases[] = {
      {"quantity('1Gi').add(1024).asInteger()", "1073742848"},
      {"quantity('50k').sub(quantity('20k')).asInteger()", "30000"},
      {"quantity('50k').sub(20000).asInteger()", "30000"},
  };
  for (const Case& c : kCases) EXPECT_EQ(Eval(c.text), c.result) << c.text;
}

TEST(CelLibraries, OptionalValues) {
  const Case kCases[] = {
      {"optional.of(1).hasValue()", "true"},
      {"optional.none().orValue(3)", "3"},
      {"optional.ofNonZeroValue('').hasValue()", "false"},
      {"optional.of(1).or(optional.of(2)).value()", "1"},
      {"{'a': 1}.?a.orValue(0)", "1"},
      {"{'a': 1}.?b.orValue(7)", "7"},
      {"{'a': {'b': 1}}.?a.b.orValue(0)", "1"},
      {"{'a': {'b': 1}}.?a.c.hasValue()", "false"},
      {"{'a': 1}[?'a'].hasValue()", "true"},
      {"[1, 2][?5].orValue(9)", "9"},
      {"optional.of(2).optMap(x, x * 2).value()", "4"},
      {"optional.of(2).optFlatMap(x, optional.of(x + 1)).value()", "3"},
      {"[?optional.of(1), ?optional.none(), 3].size()", "2"},
      {"{?'a': optional.none(), 'b': 1}.size()", "1"},
      {"optional.none().value()", "optional.none() dereference"},
      {"optional.of(1).orValue(1 / 0)", "1"},
      {"optional.none().or(2)", "no such overload"},
      {"{'a': 1}.?a + 1", "no such overload"},
      {"has({'a': {'b': 1}}.?a.b) && !has({'a': {'b': 1}}.?z.b)", "true"},
      {"optional.unwrap([optional.of(1), optional.none()])", "[1]"},
      {"['a'].map(ip, ip.isCanonical)", "no such overload"},
  };
  for (const Case& c : kCases) EXPECT_EQ(Eval(c.text), c.result) << c.text;
}

TEST(CelLibraries, MacrosOfTwoVariables) {
  const Case kCases[] = {
      {"[1, 2].all(i, v, i < v)", "true"},
      {"[1, 2].exists(i, v, i == v)", "false"},
      {"[1, 2].existsOne(i, v, v == 2)", "true"},
      {"{'a': 1}.all(k, v, k == 'a' && v == 1)", "true"},
      {"[1, 2, 3].transformList(i, v, i + v).size()", "3"},
      {"[1, 2, 3].transformList(i, v, v > 1, i)[0]", "1"},
      {"{'a': 1, 'b': 2}.transformMap(k, v, v * 10)['b']", "20"},
      {"{'a': 1, 'b': 2}.transformMap(k, v, v > 1, v * 10).size()", "1"},
      {"['a', 'b'].transformMap(i, v, v)[1]", "b"},
  };
  for (const Case& c : kCases) EXPECT_EQ(Eval(c.text), c.result) << c.text;
}

TEST(CelLibraries, Bytes) {
  const Case kCases[] = {
      {"string(b'abc')", "abc"},
      {"string(bytes('straße'))", "straße"},
      {"size(bytes('straße')) == 7 && size('straße') == 6", "true"},
      {"b'\\xff\\000' == br'\\xff'", "false"},
      {"size(b'\\xff\\000')", "2"},
      {"string(b'\\xff')", "invalid UTF-8 in bytes, cannot convert to string"},
      {"b'a' + b'b' == bytes('ab')", "true"},
      {"b'a' < b'b' && b'b' >= b'ab'", "true"},
      {"b'a' == 'a'", "false"},
      {"type(b'a') == bytes", "true"},
      {"'%x %s'.format([b'az', b'az'])", "617a az"},
      {"bytes(1)", "no such overload"},
      {"b'a'.contains(b'a')", "no such overload"},
      {"'\\141' + '\\x62'", "ab"},
  };
  for (const Case& one : kCases) EXPECT_EQ(Eval(one.text), one.result) << one.text;
  EXPECT_NE(Eval("b'\\u0041'").find("bad escape sequence"), std::string::npos);
}

TEST(CelLibraries, WhatLaterVersionsBrought) {
  const Case kCases[] = {
      {"[1, 2].exists_one(i, v, v > i)", "false"},
      {"[1, 2].exists_one(i, v, v == 2 && i == 1)", "true"},
      {"{'a': 'x', 'b': 'y'}.transformMapEntry(k, v, {v: k})['y']", "b"},
      {"['a', 'b'].transformMapEntry(i, v, i > 0, {v: i}).size()", "1"},
      {"['a', 'a'].transformMapEntry(i, v, {v: i})", "insert failed: key a already exists"},
      {"['a'].transformMapEntry(i, v, v)", "no such overload"},
      {"bool('t') && bool('1') && !bool('F')", "true"},
      {"bool('yes')", "type conversion error: \"yes\""},
  };
  for (const Case& one : kCases) EXPECT_EQ(Eval(one.text), one.result) << one.text;
}

// What an expression makes of an authorizer that lets only "get" of anything pass, and says what it
// was asked.
std::string Judged(std::string_view text) {
  const auto program = CelProgram::Compile(text, {std::string(kCelAuthorizer)});
  if (!program.ok()) return program.status().message();
  CelAccessQuestion requested;
  requested.resource = "pods";
  requested.name = "p";
  const CelProgram::Values variables = {
      {std::string(kCelAuthorizer),
       MakeCelAuthorizer(
           [](const CelAccessQuestion& asked) {
             return CelAccessAnswer{
                 asked.verb == "get",
                 Join(std::vector<std::string>{asked.account_ns, asked.account, asked.verb,
                                               asked.group, asked.resource, asked.subresource,
                                               asked.ns, asked.name, asked.path},
                      ",")};
           },
           requested)}};
  CelBudget budget;
  const auto value = (*program)->Evaluate(variables, budget);
  return value.ok() ? CelText(*value) : value.status().message();
}

TEST(CelLibraries, Rights) {
  const Case kCases[] = {
      {"authorizer.group('').resource('pods').check('get').allowed()", "true"},
      {"authorizer.group('').resource('pods').check('list').allowed()", "false"},
      {"authorizer.group('g').resource('r').subresource('s').namespace('ns').name('n').check('v')."
       "reason()",
       ",,v,g,r,s,ns,n,"},
      {"authorizer.group('').resource('r').fieldSelector('a=b').labelSelector('c=d').check('get')."
       "allowed()",
       "true"},
      {"authorizer.path('/healthz').check('get').reason()", ",,get,,,,,,/healthz"},
      {"authorizer.serviceAccount('ns', 'robot').path('/x').check('get').reason()",
       "ns,robot,get,,,,,,/x"},
      {"authorizer.requestResource.check('get').reason()", ",,get,,pods,,,p,"},
      {"authorizer.requestResource.name('q').check('get').reason()", ",,get,,pods,,,q,"},
      {"authorizer.path('/x').check('get').errored()", "false"},
      {"authorizer.path('/x').check('get').error() == ''", "true"},
      {"authorizer.path(' ')", "path must not be empty"},
      {"authorizer.group('').resource('')", "resource must not be empty"},
      {"authorizer.serviceAccount('not@a', 'a')", "Invalid service account namespace"},
      {"authorizer.serviceAccount('a', 'not*a')", "Invalid service account name"},
      {"authorizer.resource('pods')", "no such overload"},
      {"authorizer.check('get')", "no such overload"},
      {"authorizer.group('').check('get')", "no such overload"},
      {"authorizer.none", "no such attribute(s): authorizer.none"},
      {"authorizer.serviceAccount('a', 'b').requestResource",
       "no such attribute(s): authorizer.requestResource"},
      {"type(authorizer.group('')) == 'kubernetes.authorization.GroupCheck'", "true"},
      {"lists.range(28).all(i, authorizer.path('/x').check('get').allowed())", "true"},
      {"lists.range(29).all(i, authorizer.path('/x').check('get').allowed())",
       "call cost exceeds limit, no further evaluation"},
  };
  for (const Case& one : kCases) EXPECT_EQ(Judged(one.text), one.result) << one.text;
}

TEST(CelLibraries, TextsOfSchemasAreTheTimesThatTheySpell) {
  const char* self = R"({"from": "2024-02-29T10:20:30Z", "till": "2024-03-01T10:20:30+00:00"})";
  const Case kCases[] = {
      {"self.till - self.from", "86400s"},
      {"self.from.getFullYear()", "2024"},
      {"self.from == timestamp('2024-02-29T11:20:30+01:00')", "true"},
      {"self.from < timestamp('2024-03-01T00:00:00Z')", "true"},
      {"self.from + duration('1h')", "2024-02-29T11:20:30Z"},
      {"self.from - 'yesterday'", "no such overload"},
  };
  for (const Case& c : kCases) EXPECT_EQ(Eval(c.text, self), c.result) << c.text;
}

TEST(CelLibraries, ABudgetThatIsSpentStaysSpent) {
  const std::string huge = "lists.range(9223372036854775807) == []";
  EXPECT_EQ(Eval(StrCat(huge, " || ", huge, " || lists.range(10).size() == 10")),
            "call cost exceeds limit, no further evaluation");
}

constexpr char kTooMuch[] = "call cost exceeds limit, no further evaluation";

TEST(CelLibraries, AListThatHoldsAnotherTwiceCostsBoth) {
  std::string list = "[1]";
  for (int i = 0; i < 30; ++i) list += ".map(x, [x, x])";
  EXPECT_EQ(Eval(StrCat(list, " == ", list)), kTooMuch);
  EXPECT_EQ(Eval(StrCat(list, " in [", list, "]")), kTooMuch);
  EXPECT_EQ(Eval(StrCat("'%s'.format([", list, "]).size()")), kTooMuch);
  EXPECT_EQ(Eval("'%s'.format([[1].map(x, [x, x])])"), "[[1, 1]]");
}

TEST(CelLibraries, CopiesOfATextCost) {
  const std::string text = StrCat("\"", std::string(100'000, 'a'), "\"");
  EXPECT_EQ(Eval("lists.range(100).map(i, self).size()", text), "100");
  for (const char* more :
       {"lists.range(100000).map(i, self).size()", "lists.range(100000).all(i, self != 'a')",
        "[[self]].all(l, lists.range(100000).all(i, l.reverse() != []))",
        "[optional.of(self)].all(o, lists.range(100000).all(i, [?o] != []))",
        "[optional.of(self)].all(o, lists.range(100000).all(i, o.optMap(x, 1).hasValue()))",
        "[{self: 1}].all(m, lists.range(100000).all(i, m.exists(k, true)))"}) {
    EXPECT_EQ(Eval(more, text), kTooMuch) << more;
  }
}

TEST(CelLibraries, SearchesCostWhatTheyCompare) {
  const std::string text = StrCat("\"", std::string(100'000, 'a'), "\"");
  EXPECT_EQ(Eval("self.contains(self.substring(50000) + 'b')", text), kTooMuch);
  EXPECT_EQ(Eval("self.contains('b')", text), "false");
  EXPECT_EQ(Eval("[lists.range(4000).transformMap(i, v, v)].all(m, "
                 "lists.range(4000).all(i, m[i] == i))"),
            kTooMuch);
  EXPECT_EQ(Eval("[lists.range(50000)].all(l, lists.range(50000).all(i, !sets.intersects(l, [])))"),
            kTooMuch);
  EXPECT_EQ(Eval("[url('https://host/?x=' + self)].all(u, "
                 "lists.range(10000).all(i, u.getQuery().size() == 1))",
                 text),
            kTooMuch);
  EXPECT_EQ(Eval("lists.range(1000).distinct().size()"), "1000");
  // A condition of a device may take a thousand steps: what it names of the device is cheap.
  std::string named = "self.attributes['gpu'].model == 'a'";
  for (int i = 0; i < 59; ++i) named += " && self.attributes['gpu'].model == 'a'";
  CelBudget budget{1000};
  const json::Value device = J(R"({"attributes": {"gpu": {"model": "a"}}})");
  const auto holds = CelProgram::Compile(named).value()->Evaluate(device, nullptr, budget);
  ASSERT_TRUE(holds.ok()) << holds.status().message();
}

TEST(CelLibraries, FieldsThatMayBeMissing) {
  const char* self = R"({"spec": {"tier": "gold", "ips": ["10.0.0.1", "::1"]}, "labels": {}})";
  const Case kCases[] = {
      {"self.?spec.tier.orValue('none')", "gold"},
      {"self.spec.?size.orValue(3)", "3"},
      {"self.?status.phase.orValue('Pending')", "Pending"},
      {"self.labels[?'team'].hasValue()", "false"},
      {"self.spec.?ips[0].orValue('')", "10.0.0.1"},
      {"self.spec.ips[?7].hasValue()", "false"},
      {"self.spec.tier.?x", "no such overload"},
      {"self.spec.ips.all(ip, isIP(ip) && ip(ip).isGlobalUnicast())", "false"},
      {"self.spec.?tier.optMap(t, t + '!').orValue('')", "gold!"},
  };
  for (const Case& c : kCases) EXPECT_EQ(Eval(c.text, self), c.result) << c.text;
}

TEST(CelLibraries, UnknownNamesAreRefusedWhenTheyAreWritten) {
  for (const char* text :
       {"sets.union([1], [2])", "format.nothing()", "optional.some(1)", "[1].existsOne(x, x == 1)",
        "ip.isCanonical()", "authorizer.path('/')"}) {
    EXPECT_NE(Eval(text).find("undeclared reference"), std::string::npos) << text;
  }
  EXPECT_NE(Eval("[1].all(1, v, true)").find("argument must be a simple name"), std::string::npos);
}

}  // namespace
}  // namespace swell::api
