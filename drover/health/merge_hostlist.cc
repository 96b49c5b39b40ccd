// SPDX-License-Identifier: Apache-2.0
#include "drover/health/merge_hostlist.h"

#include <set>

#include "drover/base/errors.h"
#include "drover/os/file_system.h"
#include "drover/os/terminal.h"

namespace drover::inline v1::health {
namespace {

constexpr std::size_t kLongestName = 300;

[[noreturn]] void fail(const std::string& what) { throw InvalidArgument(what); }

std::string quoted(std::string_view text) { return "'" + os::sanitize(text.substr(0, 60)) + "'"; }

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Whether the text between two brackets is a list of numbers and ranges; else it belongs to the name (an IPv6
/// address).
bool is_range(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789-,") == text.npos && is_digit(text.front());
}

/// "08-11" as 08, 09, 10, 11: as many digits as the first has.
void expand_range(std::string_view range, std::vector<std::string>& numbers) {
  const std::size_t dash = range.find('-');
  const std::string_view from = range.substr(0, dash), to = dash == range.npos ? from : range.substr(dash + 1);
  const auto first = os::parse_number(from), last = os::parse_number(to);
  if (!first || !last || from.size() > 9 || to.size() > 9 || *first > *last)
    fail("the range " + quoted(range) + " makes no sense");
  if (*last - *first >= kMostHosts) fail("the range " + quoted(range) + " has more than 10,000 hosts");
  for (std::uint64_t i = *first; i <= *last; ++i) {
    std::string digits = std::to_string(i);
    if (digits.size() < from.size()) digits.insert(0, from.size() - digits.size(), '0');
    numbers.push_back(std::move(digits));
  }
}

std::vector<std::string> expand_numbers(std::string_view list) {
  std::vector<std::string> numbers;
  if (list.back() == ',') fail("the list " + quoted(list) + " ends with a comma");
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    expand_range(list.substr(0, comma), numbers);
    if (numbers.size() > kMostHosts) fail("there are more than 10,000 hosts");
    list.remove_prefix(comma == list.npos ? list.size() : comma + 1);
  }
  return numbers;
}

/// All names that one word stands for.
std::vector<std::string> expand(std::string_view word) {
  std::vector<std::string> names = {""};
  const auto append = [&](std::string_view text) {
    for (std::string& name : names) name += text;
  };
  while (!word.empty()) {
    const std::size_t open = word.find('['), close = word.find(']', open == word.npos ? 0 : open);
    if (open != word.npos && close == word.npos) fail("a bracket of " + quoted(word) + " is not closed");
    if (open == word.npos) {
      append(word);
      break;
    }
    append(word.substr(0, open));
    const std::string_view inside = word.substr(open + 1, close - open - 1);
    if (is_range(inside)) {
      const std::vector<std::string> numbers = expand_numbers(inside);
      if (names.size() * numbers.size() > kMostHosts) fail("there are more than 10,000 hosts");
      std::vector<std::string> longer;
      for (const std::string& name : names) {
        for (const std::string& number : numbers) longer.push_back(name + number);
      }
      names = std::move(longer);
    } else {
      append(word.substr(open, close - open + 1));
    }
    word.remove_prefix(close + 1);
  }
  return names;
}

/// What ssh would take for an option, or what no name of a host or user has, is refused: it ends in a command line.
void check(const std::string& host) {
  static constexpr std::string_view kAllowed = "._-:@%/[]+=";
  const std::size_t at = host.rfind('@');
  const std::string_view bare = std::string_view(host).substr(at == host.npos ? 0 : at + 1);
  if (host.front() == '-' || bare.empty() || bare.front() == '-')
    fail(quoted(host) + " is no name of a host: it begins with '-', or is empty");
  if (host.size() > kLongestName) fail(quoted(host) + "... is too long for the name of a host");
  for (const char c : host) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c);
    if (!letter && kAllowed.find(c) == kAllowed.npos)
      fail(quoted(host) + " is no name of a host: " + quoted(std::string_view(&c, 1)) + " cannot be in one");
  }
}

/// Words end at commas that are not inside brackets.
std::string_view take_item(std::string_view& line) {
  bool inside = false;
  std::size_t end = 0;
  for (; end < line.size() && (inside || line[end] != ','); ++end) {
    if (line[end] == '[' || line[end] == ']') inside = line[end] == '[';
  }
  const std::string_view item = line.substr(0, end);
  line.remove_prefix(end == line.size() ? end : end + 1);
  return item;
}

std::string_view trimmed(std::string_view text) {
  static constexpr std::string_view kBlanks = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlanks);
  return first == text.npos ? std::string_view() : text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

}  // namespace

std::vector<std::string> parse_hosts(std::string_view text) {
  std::vector<std::string> hosts;
  std::set<std::string> seen;
  for (int number = 1; !text.empty(); ++number) {
    std::string_view line = os::take_line(text);
    line = line.substr(0, line.find('#'));
    try {
      while (!line.empty()) {
        const std::string_view item = trimmed(take_item(line));
        if (item.empty()) continue;
        for (std::string& host : expand(item)) {
          check(host);
          if (!seen.insert(host).second) continue;
          if (hosts.size() == kMostHosts) fail("there are more than 10,000 hosts");
          hosts.push_back(std::move(host));
        }
      }
    } catch (const InvalidArgument& error) {
      fail("line " + std::to_string(number) + ": " + error.what());
    }
  }
  return hosts;
}

}  // namespace drover::inline v1::health
