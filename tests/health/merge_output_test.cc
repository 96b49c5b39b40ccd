// SPDX-License-Identifier: Apache-2.0
// Reports of several nodes in all forms of output.
#include <gtest/gtest.h>

#include "drover/health/report_html.h"
#include "drover/health/report_json.h"
#include "drover/health/report_prometheus.h"
#include "health/merged_jobs.h"

namespace {

using namespace drover::health;
using namespace drover_test;

TEST(Merge, AllOutputsTakeAnEmptyReport) {
  const MergedReport one = merge_one(Report());
  const MergedReport many = merge({read(Report())});
  for (const MergedReport* const merged : {&one, &many}) {
    EXPECT_NE(to_html(*merged).find("</html>"), std::string::npos);
    EXPECT_NE(to_json(*merged).find("drover.inspect.merged"), std::string::npos);
    EXPECT_NE(to_prometheus(*merged).find("drover_node_up"), std::string::npos);
  }
}

TEST(Merge, NumbersThatNoMachineHasAreShown) {
  std::vector<ReadReport> reports = job(kBlocked, kSpins);
  for (ReadReport& one : reports) {
    for (GpuReport& gpu : one.report->gpus) {
      gpu.power_w.value = gpu.temperature_c.value = gpu.clock_mhz.value = 1e18;
      gpu.memory_used.value = gpu.memory_total.value = ~std::uint64_t{0};
    }
  }
  const MergedReport merged = merge(std::move(reports));
  EXPECT_NE(odd(merged)->because.at(1).find(", 1000000000000000000 W,"), std::string::npos);
  EXPECT_NE(to_html(merged).find("17179869184/17179869184 GiB"), std::string::npos);
}

TEST(Html, NothingFromElsewhereBreaksOut) {
  EXPECT_EQ(html_text("<b>&\"'\x1b\n"), "&lt;b&gt;&amp;&quot;&#39;\\x1b\\x0a");
  EXPECT_EQ(html_text("caf\xC3\xA9"), "caf\xC3\xA9");
  EXPECT_EQ(script_text("{\"a\": \"</script><!--&\"}"), "{\"a\": \"\\u003c/script\\u003e\\u003c!--\\u0026\"}");
  Report report = node("<i>n1</i>", 0, 1, {kSpins});
  const std::string evil = "</script><img src=x onerror=alert(1)>\xE2\x80\xA8\xE2\x80\xAE'\"";
  report.gpus[0].name = report.gpus[0].uuid = report.gpus[0].problem = evil;
  report.gpus[0].processes[0].process.command = report.gpus[0].processes[0].process.user = evil;
  report.findings[0].verdict = report.findings[0].job = evil;
  report.findings[0].because = report.findings[0].action = report.findings[0].limits = {evil};
  report.warnings = report.limits = {evil};
  report.cpu.model = report.driver.version = report.kernel = evil;
  for (const std::string& page : {to_html(merge_one(report)), to_html(merge({read(report)}))}) {
    EXPECT_EQ(page.find("<img"), std::string::npos);
    EXPECT_EQ(page.find("<i>"), std::string::npos);
    EXPECT_EQ(page.find("\xE2\x80\xA8"), std::string::npos);
    EXPECT_EQ(page.find("</script>", page.find("<script>") + 1), page.rfind("</script>"));
  }
}

}  // namespace
