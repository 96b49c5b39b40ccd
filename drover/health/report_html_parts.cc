// SPDX-License-Identifier: Apache-2.0
#include "drover/health/report_html_parts.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>

#include "drover/health/report_html.h"
#include "drover/health/thresholds.h"
#include "drover/os/terminal.h"

namespace drover::inline v1::health {

std::string html_text(std::string_view text) {
  std::string result;
  for (const char c : os::sanitize(text)) {
    switch (c) {
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '&':
        result += "&amp;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string script_text(std::string_view json) {
  std::string result;
  for (const char c : json) {
    if (c == '<' || c == '>' || c == '&') {
      result += c == '<' ? "\\u003c" : c == '>' ? "\\u003e" : "\\u0026";
    } else {
      result += c;
    }
  }
  // to_json() writes ASCII only, so the line ends of Unicode, which end a script's line, are escaped already.
  return result;
}

namespace html {
namespace {

std::string number_text(double value) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.15g", value);
  return text.data();
}

}  // namespace

Table::Table(std::string_view caption, std::vector<std::string> headings)
    : caption_(caption), headings_(std::move(headings)) {}

std::string Table::begin_cell(std::string_view css, const std::string& sort_by) {
  std::string cell = "<td role=\"cell\" data-label=\"" + html_text(headings_[column_++ % headings_.size()]) + "\"";
  if (!css.empty()) cell.append(" class=\"").append(css).append("\"");
  if (!sort_by.empty()) cell += " data-v=\"" + sort_by + "\"";
  return cell + ">";
}

void Table::text(std::string_view value, std::string_view css) {
  rows_ += begin_cell(css, {}) + (value.empty() ? "<span class=\"none\">-</span>" : html_text(value)) + "</td>";
}

void Table::number(const std::optional<double>& value, const std::string& shown) {
  rows_ += begin_cell("n", value ? number_text(*value) : "-1");
  rows_ += (value ? html_text(shown) : "<span class=\"none\">n/a</span>") + "</td>";
}

void Table::html(const std::string& content, std::string_view css, const std::optional<double>& value) {
  rows_ += begin_cell(css, value ? number_text(*value) : "-1") + content + "</td>";
}

std::string Table::finish() const {
  if (rows_.empty()) return {};
  std::string text = "<table class=\"sortable\" role=\"table\"><caption class=\"hidden\">" + html_text(caption_) +
                     "</caption>\n<thead role=\"rowgroup\"><tr role=\"row\">";
  for (const std::string& heading : headings_)
    text += "<th role=\"columnheader\" scope=\"col\">" + html_text(heading) + "</th>";
  return text + "</tr></thead>\n<tbody role=\"rowgroup\">\n" + rows_ + "</tr>\n</tbody></table>\n";
}

std::string css_of(Severity severity) { return std::string("s-") + to_text(severity); }

std::string badge(Severity severity) {
  const bool note = severity == Severity::kInfo;
  return "<span class=\"badge " + css_of(severity) + "\">" + (note ? "NOTE" : upper(to_text(severity))) + "</span>";
}

std::string code_badge(int code) {
  if (code == 0) return "<span class=\"badge s-ok\">OK</span>";
  return badge(code == 1 ? Severity::kWarning : code == 2 ? Severity::kCritical : Severity::kUnknown);
}

std::string sparkline(const std::string& what, const std::vector<GpuPoint>& points,
                      std::optional<double> (*value)(const GpuPoint&), double most, std::string (*text)(double)) {
  constexpr double kWidth = 120, kHeight = 24;
  std::vector<std::pair<double, double>> known;
  for (const GpuPoint& point : points) {
    if (const auto number = value(point)) known.emplace_back(point.at, *number);
  }
  if (known.size() < 2 || !(known.back().first > known.front().first)) return {};
  double low = known.front().second, high = low;
  for (const auto& [at, number] : known) {
    low = std::min(low, number);
    high = std::max(high, number);
  }
  if (!(most > 0)) most = std::max(high, 1e-9);
  const double seconds = known.back().first - known.front().first;
  std::string line;
  for (const auto& [at, number] : known) {
    const double x = 1 + (kWidth - 2) * (at - known.front().first) / seconds;
    const double y = kHeight - 1 - (kHeight - 2) * std::clamp(number / most, 0.0, 1.0);
    std::array<char, 48> pair{};
    std::snprintf(pair.data(), pair.size(), "%.1f,%.1f ", x, y);
    line += pair.data();
  }
  const std::string words = what + " over " + duration_text(seconds) + ": from " + text(low) + " to " + text(high) +
                            ", last " + text(known.back().second);
  return "<svg class=\"spark\" viewBox=\"0 0 120 24\" width=\"120\" height=\"24\" role=\"img\" aria-label=\"" +
         html_text(words) + "\"><title>" + html_text(words) + "</title><polyline points=\"" + line + "\"/></svg>";
}

std::string date_text(double unix_time) {
  constexpr double kYear9999 = 253'402'300'800;
  if (!(unix_time > 0 && unix_time < kYear9999)) return {};
  const std::chrono::sys_seconds time{std::chrono::seconds(static_cast<std::int64_t>(unix_time))};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02u %02d:%02d:%02d UTC", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()));
  return text.data();
}

std::string section(const std::string& id, const std::string& heading, const std::string& content) {
  if (content.empty()) return {};
  return "<section id=\"" + id + "\" aria-labelledby=\"h-" + id + "\">\n<h2 id=\"h-" + id + "\">" + html_text(heading) +
         "</h2>\n" + content + "</section>\n";
}

}  // namespace html
}  // namespace drover::inline v1::health
