#pragma once

#include "pilot-agent/core/core.hpp"
#include "tests/simulate/random.hpp"

namespace glidepod::simulate {

// What a schedule has, and what goes wrong in it: drawn once from its seed. Each kind of fault is there in
// some schedules only, so that what needs few of them is not buried under the others.
struct Weather {
  explicit Weather(Random& random);

  int containers = 1;
  int slots = 1;
  int images = 3;
  bool names_given = false;   // the agent is told its containers, instead of finding them in the pod
  bool mirror = false;        // admission leads every image to another registry
  bool tags_dropped = false;  // admission leaves an image only its digest, where it has one
  bool young_pod = false;     // its status is still empty when the agent asks
  bool newest_spec = false;   // a kubelet that starts what the pod says by then, not what it said at the kill
  bool home_names = false;    // jobs ask for the pilot's own content by other names
  bool many_names = false;    // contents have several names and repositories, and the status shows any
  bool bare_ids = false;      // imageID without a repository, as of images that were loaded from a file
  bool ids_told = true;       // the agent can tell which container a glue is in
  bool always_pull = false;   // a tag is asked of the registry at every start
  bool provisioner = false;   // one that has images pulled beside the pod
  bool resize_served = false;  // by the cluster
  bool born_ready = false;     // the pod is made with jobs' images for all of its containers but one
  bool pilot_jobs = false;     // some jobs have jobs of their own
  bool announces = false;      // check-job tells of jobs before their input files are there
  bool lively_reuse = false;   // owners come back with the same image
  agent::Policy policy;
  Milliseconds storm{0};  // how long faults and jobs go on

  // Per thousand requests to the API.
  int request_lost = 0, answer_lost = 0, late_effect = 0, refused = 0, busy = 0;
  int slow = 0;            // per thousand, of anything that takes time
  int late_status = 0;     // per thousand statuses
  int bad_images = 0;      // per thousand contents
  int pull_fails = 0;      // per thousand pulls
  int pullers_astray = 0;  // per thousand questions to the provisioner
  int resize_astray = 0;   // per thousand resizes that the kubelet does late, or cannot do, or never does
  int residue = 0;         // per thousand containers: memory that glue cannot give back
  int vanishing = 0;       // per thousand clients
  int signals = 0;         // per thousand clients
  int clumsy_jobs = 0;     // per thousand: jobs that cannot start, leave a mess, or take the memory
  int silent_streams =
      0;  // per thousand watches that tell nothing any more, and are not cut; when all is calm too
  bool tags_move = false;
  // Things that happen at any moment, and more often just after something began.
  bool glue_dies = false, out_of_memory = false, stopped_outside = false, agent_dies = false;
  bool watch_cut = false, api_down = false, kubelet_restarts = false, glue_wedged = false;
  bool links_break = false;   // glue connects again
  bool runtime_dies = false;  // while it starts a container, whose status is final then
  bool ends = false;          // the pilot's command ends by itself after the storm
  bool drained = false;       // the pod is deleted in the storm, and the pilot told to end
  bool withdrawn = false;     // an operator drains the pod in the storm
  bool calm() const { return !faults; }
  bool faults = false;
};

}  // namespace glidepod::simulate
