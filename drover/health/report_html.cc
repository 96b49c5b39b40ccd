// SPDX-License-Identifier: Apache-2.0
#include "drover/health/report_html.h"

#include <array>

#include "drover/health/report_html_parts.h"
#include "drover/health/report_json.h"
#include "drover/health/thresholds.h"

namespace drover::inline v1::health {
namespace {

constexpr std::size_t kMostLines = 512;  // GPUs whose past is drawn

std::string title_of(const MergedReport& merged) {
  if (merged.single) return merged.nodes.front().name;
  return std::to_string(merged.nodes.size()) + (merged.nodes.size() == 1 ? " node" : " nodes");
}

std::string head(const MergedReport& merged) {
  std::string text = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  text += "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src '";
  text.append(html::kStyleHash).append("'; script-src '").append(html::kScriptHash);
  text += "'; base-uri 'none'; form-action 'none'\">\n";
  text += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  text += "<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n";
  text += "<title>" + html_text("drover inspect: " + title_of(merged)) + "</title>\n<style>";
  return text.append(html::kStyle).append("</style>\n</head>\n");
}

/// What was looked at, when and for how long.
std::string circumstances(const MergedReport& merged) {
  std::string text = html::date_text(merged.unix_time);
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (!merged.single) return text;
  const Report& report = *merged.nodes.front().report;
  add(report.once ? "a single look" : std::to_string(report.samples) + " looks over " + duration_text(report.window_s));
  if (!report.demo.empty()) add("a demonstration: " + report.demo);
  if (report.container) add("in a container");
  if (!report.driver.version.empty()) add("driver " + report.driver.version);
  if (!report.kernel.empty()) add("Linux " + report.kernel);
  return text;
}

std::string header(const MergedReport& merged) {
  const std::string verdict = merged.verdict();
  const std::size_t colon = verdict.find(": ");  // behind the word that the badge shows
  return "<header>\n<p class=\"brand\">drover inspect</p>\n<h1>" + html_text(title_of(merged)) +
         "</h1>\n<p class=\"hint\">" + html_text(circumstances(merged)) + "</p>\n<p class=\"verdict\">" +
         html::code_badge(merged.exit_code()) + " " + html_text(verdict.substr(colon + 2)) + "</p>\n</header>\n";
}

std::string page_of(const MergedReport& merged) {
  struct Part {
    const char *id, *name;
    std::string content;
  };
  const std::array<Part, 8> parts = {{{"findings", "Findings", html::findings_section(merged)},
                                      {"map", "At a glance", html::map_section(merged)},
                                      {"gpus", "GPUs", html::gpus_section(merged)},
                                      {"jobs", "Jobs", html::jobs_section(merged)},
                                      {"users", "Users", html::users_section(merged)},
                                      {"processes", "Processes", html::processes_section(merged)},
                                      {"hosts", "CPUs", html::hosts_section(merged)},
                                      {"limits", "Thresholds", html::limits_section(merged)}}};
  std::string page = head(merged) + "<body>\n" + header(merged) + "<nav aria-label=\"Sections\"><ul>";
  for (const Part& part : parts) {
    if (!part.content.empty())
      page.append("<li><a href=\"#").append(part.id).append("\">").append(part.name).append("</a></li>");
  }
  page += "</ul></nav>\n<main>\n";
  for (const Part& part : parts) page += part.content;
  const std::string json = merged.single ? to_json(*merged.nodes.front().report, -1) : to_json(merged, -1);
  page += "</main>\n<script type=\"application/json\" id=\"data\">" + script_text(json) + "</script>\n<script>";
  return page.append(html::kScript).append("</script>\n</body>\n</html>\n");
}

std::size_t gpus_of(const MergedReport& merged) {
  std::size_t count = 0;
  for (const MergedNode& node : merged.nodes) count += node.report ? node.report->gpus.size() : 0;
  return count;
}

}  // namespace

std::string to_html(const MergedReport& merged) {
  if (gpus_of(merged) <= kMostLines) return page_of(merged);
  MergedReport thin = merged;  // thousands of lines would be more than a browser likes, and than people look at
  for (MergedNode& node : thin.nodes) {
    if (!node.report) continue;
    for (GpuReport& gpu : node.report->gpus) gpu.series.clear();
  }
  return page_of(thin);
}

}  // namespace drover::inline v1::health
