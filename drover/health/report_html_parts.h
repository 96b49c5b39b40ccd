// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drover/health/merge.h"

/// The parts of the page of report_html.h. Pure.
namespace drover::inline v1::health::html {

/// The page's own style and script, and their hashes for the policy ('sha256-...'): a test compares them, and the
/// browser refuses what does not agree.
extern const std::string_view kStyle, kScript, kStyleHash, kScriptHash;

/// A table whose columns a script makes sortable. In a narrow window each row becomes a card, so each cell knows the
/// heading of its column.
class Table {
 public:
  Table(std::string_view caption, std::vector<std::string> headings);

  void row() { rows_ += rows_.empty() ? "<tr role=\"row\">" : "</tr>\n<tr role=\"row\">", column_ = 0; }
  /// Text from elsewhere.
  void text(std::string_view value, std::string_view css = "text");
  /// `shown` stands for `value`, by which it sorts; without a value it is "n/a".
  void number(const std::optional<double>& value, const std::string& shown);
  /// HTML of our own, sorted by `value`.
  void html(const std::string& content, std::string_view css, const std::optional<double>& value);
  bool empty() const noexcept { return rows_.empty(); }
  std::string finish() const;

 private:
  std::string begin_cell(std::string_view css, const std::string& sort_by);

  std::string caption_;
  std::vector<std::string> headings_;
  std::string rows_;
  std::size_t column_ = 0;
};

/// "<span class=badge ...>WARNING</span>"
std::string badge(Severity severity);
/// The same for an exit code: OK, WARNING, CRITICAL, UNKNOWN.
std::string code_badge(int code);
std::string css_of(Severity severity);

/// A line over time as SVG; empty with fewer than two points. `what` and the values, in words, are its description.
std::string sparkline(const std::string& what, const std::vector<GpuPoint>& points,
                      std::optional<double> (*value)(const GpuPoint&), double most, std::string (*text)(double));

/// "2026-11-30 08:45:25 UTC"; empty for times that no calendar has.
std::string date_text(double unix_time);

// The sections, in their order. Each is empty when it has nothing to say.
std::string findings_section(const MergedReport& merged);
std::string map_section(const MergedReport& merged);
std::string gpus_section(const MergedReport& merged);
std::string jobs_section(const MergedReport& merged);
std::string users_section(const MergedReport& merged);
std::string processes_section(const MergedReport& merged);
std::string hosts_section(const MergedReport& merged);
std::string limits_section(const MergedReport& merged);

/// A section with a heading; empty when the content is.
std::string section(const std::string& id, const std::string& heading, const std::string& content);

}  // namespace drover::inline v1::health::html
