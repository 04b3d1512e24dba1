#pragma once

#include <string>
#include <string_view>

#include "lib/base/loop.hpp"
#include "lib/base/result.hpp"
#include "lib/wire/messages.hpp"

namespace glidepod::apptainer {

// The name under which HTCondor's starter says in the sandbox where its Chirp server is, and its cookie.
constexpr const char* k_chirp_config = ".chirp.config";

// Has the starter put into the job's own ad what ran: ChirpGlidepodContainer, ChirpGlidepodDigest,
// ChirpGlidepodHow, and ChirpGlidepodBindTime in seconds; those that are known. And ChirpGlidepodSetAside,
// what of its files cannot come back, unless that is empty. By Chirp's set_job_attr_delayed
// (src/condor_starter.V6.1/io_proxy_handler.cpp), which every job has unless a site or its submitter turned
// it off: the schedd is told with the starter's next update, the last one included. Waits for the answers, at
// most so long. The sandbox is the job's: whatever lies there instead is an Error, or costs that time.
Result<void> tell_job_ad(const std::string& sandbox, const wire::Ran& ran, std::string_view set_aside,
                         Milliseconds limit);

}  // namespace glidepod::apptainer
