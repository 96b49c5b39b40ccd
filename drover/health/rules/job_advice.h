// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "drover/health/rules/job_view.h"

/// What the findings of R5 to R8 say beside the verdict: why a wait may be none of its fault, and what to do. Pure.
namespace drover::inline v1::health {

/// One that has no other process to wait for: what it does may just be slow.
bool is_alone(const JobView& view);

/// Ask, keep evidence, and end it. A note is no more than a guess, and ends nobody; one that names a rank to look at
/// first needs no evidence from those that wait for it. `mend` is what may help without ending anybody; empty: nothing.
void advise(const JobView& view, Finding& finding, const std::string& mend = {});

/// Ranks on other nodes, which nobody sees from here: nobody is to be ended before they are looked at. Whether there
/// are.
bool name_other_nodes(const JobView& view, Finding& finding);

/// A rank here that may be at work, or only polls: nobody is to be ended before that is known. Whether there is one.
bool name_who_may_work(const JobView& view, Finding& finding);

/// Ranks that others may wait for, with good reason: one at work here, or on nodes that are not looked at.
bool explain_waiting(const JobView& view, double held, Finding& finding);

}  // namespace drover::inline v1::health
