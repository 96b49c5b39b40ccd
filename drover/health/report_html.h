// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "drover/health/merge.h"

namespace drover::inline v1::health {

/// The report as one HTML page that needs nothing else: no network, no fonts, no other file; its policy
/// (Content-Security-Policy) forbids the browser to load or run anything but the page's own style and script, which
/// are known by their hashes. All that matters is there without a script too. The JSON of the report is inside, in the
/// element `data`. Of more than 512 GPUs the past
/// is left out, in both. Pure.
std::string to_html(const MergedReport& merged);

/// Text from elsewhere made safe as HTML text and as a quoted attribute value: control characters are shown as
/// `\xNN` (os::sanitize), and none of < > & " ' is left. Pure.
std::string html_text(std::string_view text);

/// JSON made safe to stand in a script element, by escapes that mean the same inside its texts. Pure.
std::string script_text(std::string_view json);

}  // namespace drover::inline v1::health
