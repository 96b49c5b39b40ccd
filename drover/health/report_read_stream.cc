// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "drover/base/errors.h"
#include "drover/health/report_read.h"
#include "drover/os/terminal.h"

namespace drover::inline v1::health {
namespace {

constexpr std::string_view kBlanks = " \t\r\n\x1e";  // 1e: RFC 7464 puts it before each object

/// Where the object that begins at `begin` ends; or what is wrong with it, and where.
struct Extent {
  std::size_t end = 0;
  const char* problem = nullptr;
  std::size_t at = 0;
};

Extent extent_of(std::string_view text, std::size_t begin) {
  int depth = 0;
  bool inside_text = false;
  for (std::size_t i = begin; i < text.size(); ++i) {
    if (i - begin >= kMostReportBytes) return {0, "it is longer than 8 MiB", i};
    const char c = text[i];
    if (inside_text) {
      if (c == '\n') return {0, "it ends in the middle", i};  // of a text
      if (static_cast<unsigned char>(c) < 0x20) return {0, "a text has a control character", i};
      if (c == '\\') ++i;
      if (c == '"') inside_text = false;
    } else if (c == '"') {
      inside_text = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMostDepth) return {0, "it is nested deeper than 32 levels", i};
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return {i + 1, nullptr, 0};
    }
  }
  return {0, "it ends in the middle", text.size()};
}

/// Goes through a text once; knows the line of where it is.
class Cursor {
 public:
  Cursor(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  std::size_t position() const { return position_; }
  void move(std::size_t to) {
    line_ += static_cast<std::size_t>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(position_),
                                                 text_.begin() + static_cast<std::ptrdiff_t>(to), '\n'));
    position_ = to;
  }
  std::string place() const { return name_ + ", line " + std::to_string(line_); }
  /// The place of something behind this one.
  std::string line_of(std::size_t at) const {
    const std::string_view before = text_.substr(position_, at - position_);
    const auto lines = static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'));
    return "line " + std::to_string(line_ + lines);
  }

 private:
  const std::string_view text_;
  const std::string& name_;
  std::size_t position_ = 0, line_ = 1;
};

ReadReport bad(const Cursor& cursor, std::string problem) {
  return {.place = cursor.place(), .report = std::nullopt, .problem = std::move(problem), .node = {}};
}

/// What stands at the cursor; `next` is behind it, or at it when the end is not known.
ReadReport read_one(std::string_view text, const Cursor& cursor, std::size_t& next) {
  const std::size_t begin = next = cursor.position();
  if (text[begin] != '{') {
    const std::string_view line = text.substr(begin, std::min<std::size_t>(text.find('\n', begin) - begin, 60));
    return bad(cursor, "this is no report of drover inspect --json: " + os::sanitize(line));
  }
  const Extent extent = extent_of(text, begin);
  if (extent.problem != nullptr)
    return bad(cursor, std::string(extent.problem) + " (" + cursor.line_of(extent.at) + ")");
  next = extent.end;
  try {
    return {.place = cursor.place(),
            .report = read_report(text.substr(begin, extent.end - begin)),
            .problem = {},
            .node = {}};
  } catch (const InvalidArgument& error) {
    return bad(cursor, error.what());
  }
}

}  // namespace

std::vector<ReadReport> read_reports(std::string_view text, const std::string& name) {
  std::vector<ReadReport> result;
  Cursor cursor(text, name);
  if (text.substr(0, 3) == "\xef\xbb\xbf") cursor.move(3);  // a byte order mark
  for (;;) {
    const std::size_t begin = text.find_first_not_of(kBlanks, cursor.position());
    if (begin == text.npos) break;
    cursor.move(begin);
    if (result.size() == kMostReports) {
      result.back() = bad(cursor, "there are more than 10,000 reports; what follows is left out");
      break;
    }
    std::size_t next = 0;
    result.push_back(read_one(text, cursor, next));
    if (next == begin) {  // go on where a line begins with a brace: nothing inside a report does
      const std::size_t brace = text.find("\n{", begin);
      next = brace == text.npos ? text.size() : brace + 1;
    }
    cursor.move(next);
  }
  if (result.empty()) result.push_back(bad(cursor, "it is empty"));
  return result;
}

}  // namespace drover::inline v1::health
