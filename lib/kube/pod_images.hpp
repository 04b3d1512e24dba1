#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/kube/client.hpp"

namespace glidepod::kube {

// Changes the images of one pod's containers, each from what the API last showed and from nothing else: every
// request tests, with the change, that the image is still that one (JSON Patch, RFC 6902). An attempt that
// was given up, and that the API hears of after a later change, finds another image and does nothing. Where
// the image may come back, the pod's version is tested too: that grows with every change of the pod, so it
// costs requests, and is never seen again.
class PodImages {
 public:
  using Operation = Client::Operation;

  // The client must outlive it and its operations, and it them.
  PodImages(Client& client, PodName pod) : client_(client), pod_(std::move(pod)) {}

  // Tells of the pod as the API shows it; an older state than the known one is ignored. Optional: a pod that
  // was never seen is asked for, and an outdated state costs two more requests.
  void saw(const Pod& pod);
  struct Wanted {
    std::string container, image;
    bool once = false;  // no container of this pod had, or will ever have, an image of this name
  };
  // Whatever the image is now: one that somebody else has set is replaced too. The handler is called once,
  // never from inside this call: the pod with the change, or an Error with a Failure.
  std::unique_ptr<Operation> change(Wanted wanted, SteadyTime deadline, PodHandler handler);

 private:
  class Change;
  Client& client_;
  PodName pod_;
  std::string version_;
  std::vector<ContainerSpec> containers_;  // in the pod's order
  std::map<std::string, std::string>
      once_;  // by container: its image, if the container never gets that image again
};

}  // namespace glidepod::kube
